/* SPDX-License-Identifier: Apache-2.0
 * Losses and metrics that all replicas make together: cadre/loss.h, cadre/metric.h. */
#include "documents.h"

/* Replica 0 has a batch of three rows, replica 1 one of a single row. */
static cadre_tensor *own_losses(const cadre_replica *replica)
{
    return cadre_replica_id(replica) == 0 ? floats(1, 2, 3) : floats(6);
}

static cadre_status average_loss(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *losses = own_losses(replica);
    cadre_tensor *global_rows;
    CADRE_TRY(cadre_tensor_from_i64(4, &global_rows));
    cadre_status status =
        cadre_compute_average_loss(replica, losses, NULL, global_rows, &outputs[0]);
    cadre_tensor_release(global_rows);
    cadre_tensor_release(losses);
    return status;
}

/* Each replica divides by the rows of all, so that the sum of what they have is the mean over the
 * global batch: 12 of 4 rows. */
static void losses_add_up(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *losses;
    cadre_tensor *sum;
    OK(cadre_run(strategy, average_loss, NULL, NULL, 1, &losses));
    assert_replicas(losses, 0, "1.5 1.5");
    OK(cadre_reduce(strategy, CADRE_SUM, losses, CADRE_AXIS_NONE, &sum));
    assert_given(sum, "3");
    cadre_strategy_release(strategy);
}

static cadre_status penalty(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *of_weights = floats(3, 5); /* the same on all replicas */
    cadre_status status = cadre_scale_regularization_loss(replica, of_weights, &outputs[0]);
    cadre_tensor_release(of_weights);
    return status;
}

/* A penalty is the same on all: each has its n-th part, and their sum counts it once. */
static void a_penalty_counts_once(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *losses;
    OK(cadre_run(strategy, penalty, NULL, NULL, 1, &losses));
    assert_replicas(losses, 0, "4 4");
    cadre_strategy_release(strategy);
}

static cadre_status count(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_tensor *losses = own_losses(replica);
    cadre_status status = cadre_metric_update(replica, user, losses, NULL, NULL);
    cadre_tensor_release(losses);
    return status;
}

/* A metric is updated in each step with the replica's values, and read between steps: over all
 * replicas and steps since it was set back. Its state is a variable of its name. */
static void a_metric_counts_over_steps(void **state)
{
    (void)state;
    double result;
    cadre_strategy *strategy = training_strategy(2);
    cadre_metric *metric;
    OK(cadre_metric_create(strategy, CADRE_METRIC_MEAN, "loss", NULL, &metric));
    cadre_variable *counted;
    OK(cadre_variable_find(strategy, "loss", &counted));
    on_each_replica(strategy, count, metric);
    on_each_replica(strategy, count, metric);
    OK(cadre_metric_result(NULL, metric, &result));
    assert_true(result == 3); /* (1 + 2 + 3 + 6) / 4 */
    OK(cadre_metric_reset(metric));
    OK(cadre_metric_result(NULL, metric, &result));
    assert_true(result == 0);
    cadre_metric_release(metric);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_add_up),
        cmocka_unit_test(a_penalty_counts_once),
        cmocka_unit_test(a_metric_counts_over_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
