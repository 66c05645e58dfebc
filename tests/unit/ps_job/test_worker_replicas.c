/* SPDX-License-Identifier: Apache-2.0
 * Closures that run on several replicas of their worker: 2 workers of 3 replicas each, which are
 * threads of this program. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/checkpoint.h"
#include "cadre/cluster_coordinator.h"
#include "cadre/collective.h"
#include "cadre/metric.h"
#include "cadre/program.h"
#include "cadre/random.h"
#include "cadre/reduce.h"
#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "tests/lib/test.h"
#include "tests/unit/ps_job/worker_calls.h"
#include "worker/library/runtime/closures/scheduler.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/strategy/strategy.h"

/* --- they meet --- */

/* The id of each, and the sum of all ids and 1. */
static cadre_status sum_ids(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    cadre_closure *closure = user;
    uint32_t index = 9;
    (void)inputs;
    CADRE_TRY(cadre_worker_index(&index));
    if (index != cadre_task_index() || cadre_task_type_of() != CADRE_TASK_WORKER ||
        cadre_closure_argument_count(closure) != 0 ||
        cadre_strategy_current() != cadre_replica_strategy(replica)) {
        return cadre_fail(
            CADRE_INTERNAL, "replica %u is not the worker's", cadre_replica_id(replica));
    }
    CADRE_TRY(cadre_tensor_from_f32((float)cadre_replica_id(replica) + 1, &outputs[0]));
    CADRE_TRY(cadre_tensor_from_f32((float)cadre_replica_id(replica) + 1, &outputs[1]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[1], 1, NULL);
}

static cadre_status look_at_strategy(const cadre_strategy *strategy)
{
    bool right = cadre_strategy_num_replicas_in_sync(strategy) == REPLICAS &&
                 cadre_strategy_local_replicas(strategy) == REPLICAS && cadre_has_strategy() &&
                 cadre_in_cross_replica_context() && strategy != chief &&
                 cadre_replica_current() == NULL;
    return right ? CADRE_OK : cadre_fail(CADRE_INTERNAL, "the worker's strategy is another one");
}

static cadre_status meet(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_strategy *strategy = cadre_strategy_current();
    cadre_per_replica *results[2];
    cadre_tensor *joined = NULL;
    (void)user;
    CADRE_TRY(look_at_strategy(strategy));
    CADRE_TRY(cadre_run(strategy, sum_ids, closure, NULL, 2, results));
    CADRE_TRY(
        cadre_gather_tensor(strategy, cadre_local_results(results[0], 0)[0], 0, &joined) == CADRE_OK
            ? CADRE_INTERNAL /* a scalar has no axis */
            : CADRE_OK);
    CADRE_TRY(cadre_reduce(strategy, CADRE_SUM, results[0], CADRE_AXIS_NONE, &outputs[0]));
    for (uint32_t i = 0; i < REPLICAS; i++) {
        const float *sum = cadre_tensor_const_data(cadre_local_results(results[1], 0)[i]);
        if (*sum != 6) {
            return cadre_fail(CADRE_INTERNAL, "replica %u has the sum %g", i, (double)*sum);
        }
    }
    return CADRE_OK;
}

static void closures_run_on_the_replicas_of_their_worker(void **state)
{
    (void)state;
    uint64_t before = cadre_strategy_position(chief);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(cadre_schedule(chief, "meet", NULL, 0, NULL), CADRE_OK);
    }
    if (cadre_join(chief) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_true(call_f32("meet") == 6);
    assert_int_equal(cadre_strategy_position(chief), before + 2); /* a join each */
    assert_int_equal(cadre_strategy_num_replicas_in_sync(chief), REPLICAS);
    assert_int_equal(cadre_strategy_local_replicas(chief), 1);
}

/* --- what a worker has its own of --- */

struct own {
    cadre_variable *steps;
    cadre_metric *loss;
};

static cadre_status make_own(void **ret_resource, void *user)
{
    (void)user;
    struct own *own = calloc(1, sizeof *own);
    *ret_resource = own;
    const cadre_variable_options options = {.placement = CADRE_PLACEMENT_PER_WORKER};
    CADRE_TRY(cadre_variable_create(NULL, "steps", CADRE_F32, 0, NULL, &options, &own->steps));
    return cadre_metric_create(NULL, CADRE_METRIC_SUM, "loss", NULL, &own->loss);
}

static void end_own(void *resource, void *user)
{
    (void)user;
    struct own *own = resource;
    cadre_metric_release(own->loss);
    free(own);
}

static cadre_status add_all(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    cadre_tensor *sum = NULL;
    (void)user;
    CADRE_TRY(cadre_tensor_from_f32(0, &sum));
    for (uint32_t i = 0; i < cadre_per_replica_count(inputs[0]); i++) {
        *(float *)cadre_tensor_data(sum) +=
            *(const float *)cadre_tensor_const_data(cadre_local_results(inputs[0], 0)[i]);
    }
    cadre_tensor *const sums[] = {sum, sum, sum};
    cadre_status status = cadre_values_from_tensors(strategy, sums, REPLICAS, &outputs[0]);
    cadre_tensor_release(sum);
    return status;
}

static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct own *own = user;
    cadre_tensor *one = NULL;
    cadre_tensor *sum = NULL;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    CADRE_TRY(cadre_merge_call(replica, add_all, NULL, &one, 1, 1, &sum));
    if (*(const float *)cadre_tensor_const_data(sum) != REPLICAS) {
        return cadre_fail(CADRE_INTERNAL, "the merge call sums other replicas");
    }
    *(float *)cadre_variable_write(replica, own->steps) += 1;
    cadre_status status = cadre_metric_update(replica, own->loss, one, NULL, NULL);
    cadre_tensor_release(one);
    cadre_tensor_release(sum);
    return status;
}

static cadre_status count_on_replica(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    void *resource = NULL;
    double loss = 0;
    (void)user;
    CADRE_TRY(cadre_closure_resource(closure, 0, &resource));
    struct own *own = resource;
    CADRE_TRY(cadre_run(cadre_strategy_current(), count_step, own, NULL, 0, NULL));
    CADRE_TRY(cadre_metric_result(NULL, own->loss, &loss));
    const float *steps = cadre_variable_read(NULL, own->steps);
    if (loss != (double)(*steps * REPLICAS)) {
        return cadre_fail(CADRE_INTERNAL, "%g steps have counted %g", (double)*steps, loss);
    }
    return cadre_tensor_from_f32(1, &outputs[0]);
}

static cadre_status send_count(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    void *resource = NULL;
    (void)user;
    CADRE_TRY(cadre_closure_resource(closure, 0, &resource));
    struct own *own = resource;
    return cadre_tensor_from_f32(
        *(const float *)cadre_variable_read(NULL, own->steps), &outputs[0]);
}

/* Variables and metrics are the worker's: what all have counted together is what was done. */
static void variables_are_the_workers(void **state)
{
    (void)state;
    enum { TIMES = 30 };
    cadre_per_worker *own = NULL;
    cadre_remote_value *values[WORKERS];
    assert_int_equal(cadre_create_per_worker_resource(chief, "own", &own), CADRE_OK);
    const cadre_closure_argument argument = {.per_worker = own};
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(cadre_schedule(chief, "count_on_replica", &argument, 1, NULL), CADRE_OK);
    }
    if (cadre_join(chief) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_int_equal(cadre_schedule(chief, "send_count", &argument, 1, &values[0]), CADRE_OK);
    assert_int_equal(cadre_join(chief), CADRE_OK);
    cadre_tensor *steps = NULL;
    assert_int_equal(cadre_fetch(values[0], &steps, 1, NULL), CADRE_OK);
    float counted = *(const float *)cadre_tensor_const_data(steps);
    assert_true(counted >= 0 && counted <= TIMES);
    cadre_tensor_release(steps);
    cadre_remote_value_release(values[0]);
}

/* --- what fails --- */

static cadre_status fail_on_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)user;
    if (cadre_replica_id(replica) == 1) {
        return cadre_fail(CADRE_DATA_LOSS, "its data are gone");
    }
    CADRE_TRY(cadre_tensor_from_f32(1, &outputs[0]));
    return cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL);
}

static cadre_status fail_in_replica(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_per_replica *result = NULL;
    (void)closure;
    (void)outputs;
    (void)user;
    return cadre_run(cadre_strategy_current(), fail_on_one, NULL, NULL, 1, &result);
}

static void an_error_is_the_closures(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * WORKERS; i++) {
        assert_int_equal(call("fail_in_replica", NULL, 0, NULL), CADRE_DATA_LOSS);
        assert_true(call_f32("meet") == 6);
    }
    for (int i = 0; i < 20; i++) { /* of both workers */
        assert_int_equal(cadre_schedule(chief, "meet", NULL, 0, NULL), CADRE_OK);
    }
    assert_int_equal(cadre_join(chief), CADRE_OK);
}

static atomic_bool loops;

static cadre_status loop_until_cancelled(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    CADRE_TRY(cadre_tensor_from_f32(0, &outputs[0]));
    float *stop = cadre_tensor_data(outputs[0]);
    while (*stop == 0) {
        *stop = cadre_closure_cancelled(user) ? 1 : 0;
        atomic_store(&loops, true);
        CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &outputs[0], 1, NULL));
    }
    return cadre_fail(CADRE_CANCELLED, "it is not wanted");
}

static cadre_status loop(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_per_replica *result = NULL;
    (void)outputs;
    (void)user;
    return cadre_run(cadre_strategy_current(), loop_until_cancelled, closure, NULL, 1, &result);
}

static cadre_status fail_when_it_loops(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    (void)closure;
    (void)outputs;
    (void)user;
    while (!atomic_load(&loops)) {
        sched_yield();
    }
    return cadre_fail(CADRE_OUT_OF_RANGE, "enough");
}

static void a_cancelled_closure_leaves_its_worker_usable(void **state)
{
    (void)state;
    atomic_store(&loops, false);
    assert_int_equal(cadre_schedule(chief, "loop", NULL, 0, NULL), CADRE_OK);
    assert_int_equal(cadre_schedule(chief, "fail_when_it_loops", NULL, 0, NULL), CADRE_OK);
    assert_int_equal(cadre_join(chief), CADRE_OUT_OF_RANGE);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(cadre_schedule(chief, "meet", NULL, 0, NULL), CADRE_OK);
    }
    assert_int_equal(cadre_join(chief), CADRE_OK);
}

/* --- again --- */

static struct {
    _Atomic uint32_t attempts;
    uint64_t drawn[2][2 * REPLICAS];
} again;

static cadre_status draw(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    uint64_t *drawn = user;
    cadre_random random;
    (void)inputs;
    (void)outputs;
    CADRE_TRY(cadre_random_stream(replica, 1, "noise", &random));
    drawn[cadre_replica_id(replica)] = cadre_random_u64(&random);
    return CADRE_OK;
}

/* The first attempt loses its worker. */
static cadre_status draw_twice(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    uint32_t index = 0;
    (void)closure;
    (void)outputs;
    (void)user;
    uint32_t attempt = atomic_fetch_add(&again.attempts, 1);
    for (int i = 0; i < 2 && attempt < 2; i++) {
        CADRE_TRY(cadre_run(
            cadre_strategy_current(), draw, again.drawn[attempt] + i * REPLICAS, NULL, 0, NULL));
    }
    CADRE_TRY(cadre_worker_index(&index));
    if (attempt == 0) {
        (void)scheduler_drop(chief->ps_job, index);
    }
    return CADRE_OK;
}

static void what_is_run_again_draws_the_same(void **state)
{
    (void)state;
    atomic_store(&again.attempts, 0);
    assert_int_equal(call("draw_twice", NULL, 0, NULL), CADRE_OK);
    assert_int_equal(atomic_load(&again.attempts), 2);
    assert_memory_equal(again.drawn[0], again.drawn[1], sizeof again.drawn[0]);
    for (int i = 0; i < 2 * REPLICAS; i++) {
        for (int j = 0; j < i; j++) {
            assert_true(again.drawn[0][i] != again.drawn[0][j]);
        }
    }
}

/* --- what cannot be --- */

static cadre_status make_none(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user)
{
    (void)context;
    (void)ret_data;
    (void)user;
    return CADRE_INTERNAL;
}

struct elsewhere {
    cadre_strategy *strategy;
    bool refused;
};

static void *run_remote(void *user)
{
    struct elsewhere *elsewhere = user;
    elsewhere->refused = expected_text(cadre_run(elsewhere->strategy, draw, NULL, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "in a thread that runs nothing for it");
    return NULL;
}

static cadre_status overreach(cadre_closure *closure, cadre_tensor *outputs[], void *user)
{
    cadre_strategy *own = cadre_strategy_current();
    cadre_distributed_dataset *distributed;
    cadre_per_worker *per_worker;
    cadre_strategy *made;
    bool done;
    int64_t number = 0;
    (void)closure;
    (void)outputs;
    (void)user;
    const cadre_status never = CADRE_FAILED_PRECONDITION;
    bool right =
        expected_text(cadre_save(own, true), never,
            "cadre_save was called with the strategy that a worker") &&
        expected_text(
            cadre_state_register(own, "n", &number, sizeof number), never, "chief's program") &&
        expected_text(
            cadre_distribute_dataset(own, cadre_dataset_range(0, 4, 1), NULL, &distributed), never,
            "cadre_closure_batch") &&
        expected_text(
            cadre_distribute_datasets_from_function(own, make_none, NULL, NULL, &distributed),
            never, "cadre_dataset_register") &&
        expected_text(cadre_report(own, "loss", 1), never, "as an output of the closure") &&
        expected_text(cadre_schedule(own, "meet", NULL, 0, NULL), never, "only the chief") &&
        expected_text(cadre_done(own, &done), never, "only the chief") &&
        expected_text(
            cadre_create_per_worker_dataset(own, "numbers", &per_worker), never, "chief") &&
        expected_text(cadre_strategy_set(own), never, "cadre_strategy_current") &&
        expected_text(cadre_strategy_mirrored(2, &made), never, "cadre_strategy_current") &&
        expected_text(
            cadre_run(chief, draw, NULL, NULL, 0, NULL), never, "cadre_strategy_current()") &&
        expected_text(cadre_scope_enter(chief), never, "mixing") && cadre_finish(own) == 1 &&
        expected_text(never, never, "finish in the chief's program");
    cadre_strategy_release(own);
    right = right && expected_text(never, never, "the worker ends it");
    struct elsewhere elsewhere = {.strategy = own};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_remote, &elsewhere) == 0) {
        pthread_join(thread, NULL);
    }
    return right && elsewhere.refused ? CADRE_OK
                                      : cadre_fail(CADRE_INTERNAL, "something was allowed");
}

static void what_is_about_the_job_is_refused(void **state)
{
    (void)state;
    if (call("overreach", NULL, 0, NULL) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_true(call_f32("meet") == 6);
}

/* --- on the chief --- */

static cadre_status note_replicas(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    atomic_fetch_add((_Atomic uint32_t *)user, 1);
    return CADRE_OK;
}

static void outside_of_closures_a_step_is_the_chiefs(void **state)
{
    (void)state;
    _Atomic uint32_t ran = 0;
    assert_false(chief->ps_job->scheduler->warned_run);
    assert_int_equal(cadre_run(chief, note_replicas, (void *)&ran, NULL, 0, NULL), CADRE_OK);
    assert_true(chief->ps_job->scheduler->warned_run);
    assert_int_equal(atomic_load(&ran), 1);
}

int main(void)
{
    if (!worker_calls_init()) {
        return 1;
    }
    CADRE_CHECK(cadre_function_register("meet", meet, NULL));
    CADRE_CHECK(cadre_function_register("count_on_replica", count_on_replica, NULL));
    CADRE_CHECK(cadre_function_register("send_count", send_count, NULL));
    CADRE_CHECK(cadre_function_register("fail_in_replica", fail_in_replica, NULL));
    CADRE_CHECK(cadre_function_register("loop", loop, NULL));
    CADRE_CHECK(cadre_function_register("fail_when_it_loops", fail_when_it_loops, NULL));
    CADRE_CHECK(cadre_function_register("draw_twice", draw_twice, NULL));
    CADRE_CHECK(cadre_function_register("overreach", overreach, NULL));
    CADRE_CHECK(cadre_dataset_register("numbers", make_none, NULL));
    CADRE_CHECK(cadre_resource_register("own", make_own, end_own, NULL));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outside_of_closures_a_step_is_the_chiefs),
        cmocka_unit_test(closures_run_on_the_replicas_of_their_worker),
        cmocka_unit_test(an_error_is_the_closures),
        cmocka_unit_test(what_is_run_again_draws_the_same),
        cmocka_unit_test(what_is_about_the_job_is_refused),
    };
    const struct CMUnitTest fresh[] = {
        /* First: while closures are not known to be short, none is sent ahead behind another. */
        cmocka_unit_test(a_cancelled_closure_leaves_its_worker_usable),
    };
    const struct CMUnitTest own[] = {cmocka_unit_test(variables_are_the_workers)};
    int failed = cmocka_run_group_tests(tests, worker_calls_begin, worker_calls_end);
    failed += cmocka_run_group_tests(fresh, worker_calls_begin, worker_calls_end);
    return failed + cmocka_run_group_tests(own, worker_calls_begin, worker_calls_end);
}
