/* SPDX-License-Identifier: Apache-2.0
 * Replicas that do not make the same collective calls: an error on all, never a hang or a wrong
 * sum. */
#include "training.h"

struct plan {
    uint32_t calls[4]; /* collectives of each replica */
    uint32_t sizes[4]; /* elements in each */
    cadre_status seen[4];
};

static cadre_status planned(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct plan *plan = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *tensor;
    int64_t dims[1] = {plan->sizes[id]};
    CADRE_TRY(cadre_tensor_create(CADRE_F32, 1, dims, &tensor));
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < plan->calls[id]; i++) {
        status = cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL);
    }
    cadre_tensor_release(tensor);
    plan->seen[id] = status;
    return status;
}

static void another_number_of_calls_is_an_error(void **state)
{
    (void)state;
    static const uint32_t calls[][4] = {
        {1, 2, 1, 1}, {2, 1, 2, 2}, {0, 1, 1, 1}, {1, 0, 0, 0}, {3, 3, 3, 0}};
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (uint32_t n = 2; n <= 4; n += 2) {
            cadre_strategy *strategy = training_strategy(n);
            struct plan plan = {.sizes = {1, 1, 1, 1}};
            for (int r = 0; r < 4; r++) {
                plan.calls[r] = calls[i][r];
            }
            bool same = n == 2 && plan.calls[0] == plan.calls[1];
            if (same) {
                assert_public_ok(cadre_run(strategy, planned, &plan, NULL, 0, NULL));
            } else {
                assert_public_error(cadre_run(strategy, planned, &plan, NULL, 0, NULL),
                    CADRE_INVALID_ARGUMENT, "disagree");
            }
            cadre_strategy_release(strategy);
        }
    }
}

static void another_size_is_an_error_on_all(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(3);
    struct plan plan = {.sizes = {4, 4, 5}, .calls = {1, 1, 1}};
    assert_public_error(
        cadre_run(strategy, planned, &plan, NULL, 0, NULL), CADRE_INVALID_ARGUMENT, "replica");
    for (int r = 0; r < 3; r++) {
        assert_int_equal(plan.seen[r], CADRE_INVALID_ARGUMENT);
    }
    plan.sizes[2] = 4;
    assert_public_ok(cadre_run(strategy, planned, &plan, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

/* Looks at no status. */
static cadre_status careless(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct plan *plan = user;
    planned(replica, inputs, outputs, plan);
    return CADRE_OK;
}

static void a_failure_that_is_ignored_fails_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct plan plan = {.sizes = {4, 5}, .calls = {1, 1}};
    assert_public_error(
        cadre_run(strategy, careless, &plan, NULL, 0, NULL), CADRE_INVALID_ARGUMENT, "replica");
    assert_int_equal(cadre_strategy_position(strategy), 0);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_number_of_calls_is_an_error),
        cmocka_unit_test(another_size_is_an_error_on_all),
        cmocka_unit_test(a_failure_that_is_ignored_fails_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
