/* SPDX-License-Identifier: Apache-2.0
 * What replicas do together inside of a step: cadre/collective.h, cadre/sparse.h. Each function
 * here is one collective of two replicas, and returns what replica r has then. */
#include "documents.h"

/* Runs one collective; both replicas must have what stands here: "replica 0's replica 1's". */
static void assert_collective(cadre_replica_function function, const char *wanted)
{
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *output;
    OK(cadre_run(strategy, function, NULL, NULL, 1, &output));
    assert_replicas(output, 0, wanted);
    cadre_strategy_release(strategy);
}

/* What replica r begins with in all of them: [1 2] and [10 20]. */
static cadre_tensor *own(cadre_replica *replica)
{
    return cadre_replica_id(replica) == 0 ? floats(1, 2) : floats(10, 20);
}

/* The sum in another tensor; the input stays as it is. */
static cadre_status sum_apart(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *input = own(replica);
    outputs[0] = floats(0, 0);
    cadre_status status = cadre_all_reduce_into(replica, CADRE_SUM, &input, 1, outputs, NULL);
    assert_given(input, cadre_replica_id(replica) == 0 ? "[1 2]" : "[10 20]");
    return status;
}

/* A sum that is made while the replica computes; it ends when it is waited for. */
static cadre_status sum_meanwhile(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_collective *handle;
    outputs[0] = own(replica);
    CADRE_TRY(cadre_all_reduce_start(replica, CADRE_SUM, outputs, 1, NULL, &handle));
    while (!cadre_collective_done(handle)) {
        /* the work of other layers stands here */
    }
    return cadre_collective_wait(handle);
}

/* All replicas' tensors, one behind the other. */
static cadre_status gather(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *input = own(replica);
    cadre_status status = cadre_all_gather(replica, &input, 1, 0, NULL, outputs);
    cadre_tensor_release(input);
    return status;
}

/* The gradient of a gathered tensor goes back to where its parts came from: each replica has one of
 * the whole, they are summed, and each gets the part that was its own. */
static cadre_status gather_back(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *upstream = floats(1, 2, 3, 4); /* on both: the sum is [2 4 6 8] */
    cadre_status status = cadre_all_gather_gradient(replica, upstream, 0, 2, NULL, outputs);
    cadre_tensor_release(upstream);
    return status;
}

/* The sum, of which each replica gets its part of the rows. */
static cadre_status sum_and_scatter(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_tensor *input = own(replica);
    cadre_status status = cadre_reduce_scatter(replica, CADRE_SUM, input, NULL, &outputs[0]);
    cadre_tensor_release(input);
    return status;
}

/* One replica's tensor, to all. */
static cadre_status send_to_all(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    outputs[0] = own(replica);
    return cadre_broadcast(replica, 1, outputs, 1);
}

/* Rows of a table with their numbers, of all replicas: nothing is added up. */
static cadre_status join_rows(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    cadre_sparse mine = {.values = rows(2, own(replica)),
        .indices = integers(4 + (int64_t)cadre_replica_id(replica)),
        .rows = 9};
    cadre_sparse all;
    cadre_status status = cadre_all_reduce_sparse(replica, CADRE_SUM, &mine, NULL, &all);
    if (status == CADRE_OK) {
        assert_tensor(all.indices, "[4 5]");
        outputs[0] = cadre_tensor_retain(all.values);
    }
    cadre_sparse_release(&all);
    cadre_sparse_release(&mine);
    return status;
}

static void all_collectives(void **state)
{
    (void)state;
    assert_collective(sum_apart, "[11 22] [11 22]");
    assert_collective(sum_meanwhile, "[11 22] [11 22]");
    assert_collective(gather, "[1 2 10 20] [1 2 10 20]");
    assert_collective(gather_back, "[2 4] [6 8]");
    assert_collective(sum_and_scatter, "[11] [22]");
    assert_collective(send_to_all, "[10 20] [10 20]");
    assert_collective(join_rows, "[[1 2] [10 20]] [[1 2] [10 20]]");
}

/* How they are carried is set once for all of a strategy: sums in packs of about so many bytes, and
 * how long a replica is waited for. */
static void a_strategy_has_options(void **state)
{
    (void)state;
    const cadre_collective_options options = {.bytes_per_pack = 1 << 20, .timeout_seconds = 60};
    const cadre_collective_options wrong = {.timeout_seconds = -1};
    cadre_strategy *strategy = training_strategy(2);
    cadre_per_replica *output;
    OK(cadre_strategy_set_communication(strategy, &options));
    OK(cadre_run(strategy, sum_apart, NULL, NULL, 1, &output));
    assert_replicas(output, 0, "[11 22] [11 22]"); /* they change speed only */
    REFUSED(cadre_strategy_set_communication(strategy, &wrong), CADRE_INVALID_ARGUMENT, "");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_collectives),
        cmocka_unit_test(a_strategy_has_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
