/* SPDX-License-Identifier: Apache-2.0
 * cadre_on_apply: what it calls, when, and what may be done there. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "job.h"
#include "training.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

enum { WIDTH = 3, STEPS = 5 };

/* What the replicas of a step do, and what was seen. */
struct plan {
    cadre_strategy *strategy;
    cadre_variable *variable;
    cadre_variable *on_read;
    uint32_t functions; /* each adds */
    uint32_t failing;   /* local replica that fails after it added; UINT32_MAX: none */
    atomic_uint calls;
    atomic_uint wrong; /* what is refused was not, or the order is another */
};

/* Adds one to each element. */
static void increment(cadre_replica *replica, void *user)
{
    struct plan *plan = user;
    float *values = cadre_variable_write(replica, plan->variable);
    const float *read = cadre_variable_read(replica, plan->variable);
    for (int i = 0; i < WIDTH; i++) {
        values[i] += 1;
    }
    atomic_fetch_add(&plan->calls, 1);
    atomic_fetch_add(&plan->wrong, read != values || cadre_replica_current() != replica);
}

/* Comes second: sees what the first one wrote. */
static void twice(cadre_replica *replica, void *user)
{
    struct plan *plan = user;
    float *values = cadre_variable_write(replica, plan->variable);
    for (int i = 0; i < WIDTH; i++) {
        values[i] *= 2;
    }
}

static cadre_status train(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct plan *plan = user;
    const float *values = cadre_variable_read(replica, plan->variable);
    const float before = values[0];
    for (uint32_t i = 0; i < plan->functions; i++) {
        CADRE_TRY(cadre_on_apply(replica, i == 0 ? increment : twice, plan));
    }
    CADRE_TRY(cadre_barrier());
    atomic_fetch_add(&plan->wrong, values[0] != before); /* not before the step is through */
    return cadre_replica_local_id(replica) == plan->failing
               ? cadre_fail(CADRE_DATA_LOSS, "as ordered")
               : CADRE_OK;
}

static struct plan begin(uint32_t replicas)
{
    struct plan plan = {.functions = 1, .failing = UINT32_MAX};
    const int64_t dims[1] = {WIDTH};
    plan.strategy = training_strategy(replicas);
    assert_public_ok(
        cadre_variable_create(plan.strategy, "weights", CADRE_F32, 1, dims, NULL, &plan.variable));
    assert_public_ok(cadre_variable_create(plan.strategy, "count", CADRE_F32, 0, NULL,
        &(cadre_variable_options){
            .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM},
        &plan.on_read));
    return plan;
}

static void assert_values(const struct plan *plan, float wanted)
{
    for (uint32_t local = 0; local < plan->variable->component_count; local++) {
        const float *values = plan->variable->components[local].value;
        for (int i = 0; i < WIDTH; i++) {
            assert_true(values[i] == wanted);
        }
    }
}

static void test_it_writes_when_the_step_is_through(void **state)
{
    (void)state;
    for (uint32_t replicas = 1; replicas <= 3; replicas++) {
        struct plan plan = begin(replicas);
        for (uint32_t step = 1; step <= STEPS; step++) {
            assert_public_ok(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL));
            assert_values(&plan, (float)step);
            assert_int_equal(plan.calls, step * replicas);
        }
        assert_int_equal(plan.wrong, 0);
        for (uint32_t local = 0; local < replicas; local++) {
            assert_null(plan.variable->components[local].kept); /* no copy, which is the point */
        }
        cadre_strategy_release(plan.strategy);
    }
}

static void test_functions_are_called_in_order(void **state)
{
    (void)state;
    struct plan plan = begin(2);
    plan.functions = 3; /* + 1, * 2, * 2 */
    assert_public_ok(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL));
    assert_values(&plan, 4);
    plan.functions = 0;
    assert_public_ok(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL));
    assert_values(&plan, 4); /* those of the step before are forgotten */
    cadre_strategy_release(plan.strategy);
}

static void test_a_step_that_fails_applies_nothing(void **state)
{
    (void)state;
    struct plan plan = begin(2);
    for (plan.failing = 0; plan.failing < 2; plan.failing++) {
        assert_public_error(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL), CADRE_DATA_LOSS,
            "as ordered");
        assert_int_equal(plan.calls, 0);
        assert_values(&plan, 0);
    }
    plan.failing = UINT32_MAX;
    assert_public_ok(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL));
    assert_values(&plan, 1);
    cadre_strategy_release(plan.strategy);
}

/* ---- what is refused ---- */

static void overreach(cadre_replica *replica, void *user)
{
    struct plan *plan = user;
    cadre_tensor *tensor = training_f32(1, (const float[]){1});
    const bool refused =
        cadre_variable_write(replica, plan->on_read) == NULL &&
        strstr(cadre_error_message(), "'count' is combined when read") != NULL &&
        cadre_all_reduce(replica, CADRE_SUM, &tensor, 1, NULL) == CADRE_FAILED_PRECONDITION &&
        cadre_on_apply(replica, increment, plan) == CADRE_FAILED_PRECONDITION &&
        cadre_variable_assign_literal(replica, plan->variable, CADRE_ASSIGN, 7) ==
            CADRE_FAILED_PRECONDITION &&
        cadre_run(plan->strategy, train, plan, NULL, 0, NULL) == CADRE_FAILED_PRECONDITION;
    atomic_fetch_add(&plan->wrong, !refused);
    atomic_fetch_add(&plan->calls, 1);
    cadre_tensor_release(tensor);
}

static cadre_status ask_for_overreach(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_on_apply(replica, overreach, user);
}

static void test_nothing_that_can_fail_is_allowed_there(void **state)
{
    (void)state;
    struct plan plan = begin(2);
    assert_public_ok(cadre_run(plan.strategy, ask_for_overreach, &plan, NULL, 0, NULL));
    assert_int_equal(plan.calls, 2);
    assert_int_equal(plan.wrong, 0);
    assert_values(&plan, 0);
    cadre_strategy_release(plan.strategy);
}

static cadre_status ask_wrongly(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct plan *plan = user;
    if (plan->functions == 0) {
        cadre_on_apply(replica, NULL, plan); /* fails the step although the status is not read */
    }
    for (uint32_t i = 0; i < plan->functions; i++) {
        CADRE_TRY(cadre_on_apply(replica, increment, plan));
    }
    return CADRE_OK;
}

static void test_bad_calls(void **state)
{
    (void)state;
    struct plan plan = begin(1);
    assert_public_error(cadre_on_apply(NULL, increment, &plan), CADRE_FAILED_PRECONDITION,
        "cadre_on_apply was called outside of a replica function");
    plan.functions = 0;
    assert_public_error(cadre_run(plan.strategy, ask_wrongly, &plan, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "function");
    plan.functions = APPLY_MAX + 1;
    assert_public_error(cadre_run(plan.strategy, ask_wrongly, &plan, NULL, 0, NULL),
        CADRE_RESOURCE_EXHAUSTED, "more than 8 times");
    assert_values(&plan, 0);
    plan.functions = APPLY_MAX;
    assert_public_ok(cadre_run(plan.strategy, ask_wrongly, &plan, NULL, 0, NULL));
    assert_values(&plan, APPLY_MAX);
    cadre_strategy_release(plan.strategy);
}

/* ---- in a job ---- */

static const char *self;

static int run_task(void)
{
    struct plan plan = {.functions = 2, .failing = UINT32_MAX};
    const int64_t dims[1] = {WIDTH};
    plan.strategy = job_strategy();
    CADRE_CHECK(
        cadre_variable_create(plan.strategy, "weights", CADRE_F32, 1, dims, NULL, &plan.variable));
    for (int step = 0; step < STEPS; step++) {
        CADRE_CHECK(cadre_run(plan.strategy, train, &plan, NULL, 0, NULL));
    }
    const float *values = cadre_variable_read(NULL, plan.variable);
    if (values[0] != 62 || plan.wrong > 0) { /* 2, 6, 14, 30, 62 */
        fprintf(stderr, "%g instead of 62, %u wrong\n", (double)values[0], plan.wrong);
        return 1;
    }
    return cadre_finish(plan.strategy);
}

static void *run_meanwhile(void *user)
{
    struct plan *plan = user;
    cadre_status status = cadre_run(plan->strategy, train, plan, NULL, 0, NULL);
    atomic_fetch_add(&plan->wrong, status != CADRE_FAILED_PRECONDITION);
    return NULL;
}

static void let_another_try(cadre_replica *replica, void *user)
{
    struct plan *plan = user;
    pthread_t thread;
    (void)replica;
    assert_int_equal(pthread_create(&thread, NULL, run_meanwhile, plan), 0);
    pthread_join(thread, NULL);
    atomic_fetch_add(&plan->calls, 1);
}

static cadre_status ask_for_the_try(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    return cadre_on_apply(replica, let_another_try, user);
}

static void test_other_threads_wait_for_the_end(void **state)
{
    (void)state;
    struct plan plan = begin(2);
    assert_public_ok(cadre_run(plan.strategy, ask_for_the_try, &plan, NULL, 0, NULL));
    assert_int_equal(plan.calls, 2);
    assert_int_equal(plan.wrong, 0);
    cadre_strategy_release(plan.strategy);
}

static void test_in_a_job(void **state)
{
    (void)state;
    job_must_succeed(self, "apply", 2, 2);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "apply") == 0) {
        return run_task();
    }
    self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_writes_when_the_step_is_through),
        cmocka_unit_test(test_functions_are_called_in_order),
        cmocka_unit_test(test_a_step_that_fails_applies_nothing),
        cmocka_unit_test(test_nothing_that_can_fail_is_allowed_there),
        cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_other_threads_wait_for_the_end),
        cmocka_unit_test(test_in_a_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
