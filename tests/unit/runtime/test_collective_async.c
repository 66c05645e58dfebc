/* SPDX-License-Identifier: Apache-2.0
 * All-reduces that go on while the replica computes. Where one must overlap with the other, a
 * condition proves it: without the overlap the test would not end. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/fault.h"
#include "training.h"

#define REPLICAS   2
#define STARTS_MAX 200 /* more than may be unfinished */

struct async {
    cadre_tensor *tensors[REPLICAS][STARTS_MAX];
    atomic_bool summed; /* replica 1 has its sum */
    uint32_t count;
    bool forgets;
    uint32_t fails_at; /* replica 1 fails by itself after so many starts */
    cadre_status statuses[REPLICAS];
    cadre_collective *kept;
};

static void make_tensors(struct async *async)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < STARTS_MAX; i++) {
            async->tensors[r][i] = training_f32(1, (const float[]){(float)(i + r * 1000)});
        }
    }
}

static void release_tensors(struct async *async)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < STARTS_MAX; i++) {
            cadre_tensor_release(async->tensors[r][i]);
        }
    }
}

static void assert_summed(const struct async *async, uint32_t count)
{
    for (uint32_t r = 0; r < REPLICAS; r++) {
        for (uint32_t i = 0; i < count; i++) {
            training_assert_f32(async->tensors[r][i], 1, (const float[]){(float)(2 * i + 1000)});
        }
    }
}

static cadre_status start(
    cadre_replica *replica, struct async *async, uint32_t i, cadre_collective **ret_handle)
{
    return cadre_all_reduce_start(
        replica, CADRE_SUM, &async->tensors[cadre_replica_id(replica)][i], 1, NULL, ret_handle);
}

/* Replica 0 computes until replica 1 has the sum, which includes what replica 0 has started. */
static cadre_status overlap_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct async *async = user;
    if (cadre_replica_id(replica) == 1) {
        CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &async->tensors[1][0], 1, NULL));
        atomic_store(&async->summed, true);
        return CADRE_OK;
    }
    cadre_collective *handle;
    CADRE_TRY(start(replica, async, 0, &handle));
    while (!atomic_load(&async->summed)) {
        sched_yield();
    }
    while (!cadre_collective_done(handle)) {
        sched_yield();
    }
    return cadre_collective_wait(handle);
}

static void communication_overlaps_with_computation(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 1};
    make_tensors(&async);
    assert_public_ok(cadre_run(strategy, overlap_step, &async, NULL, 0, NULL));
    assert_summed(&async, 1);
    release_tensors(&async);
    cadre_strategy_release(strategy);
}

/* Starts all, and ends them backwards or not at all; then one more that waits for all. */
static cadre_status many_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct async *async = user;
    cadre_collective *handles[STARTS_MAX];
    for (uint32_t i = 0; i < async->count; i++) {
        CADRE_TRY(start(replica, async, i, &handles[i]));
    }
    for (uint32_t i = async->count; !async->forgets && i-- > 0;) {
        CADRE_TRY(cadre_collective_wait(handles[i]));
    }
    return CADRE_OK;
}

static void they_are_done_in_the_order_of_their_starts(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    static const uint32_t counts[] = {1, 64, 65, STARTS_MAX};
    for (size_t i = 0; i < 2 * sizeof counts / sizeof counts[0]; i++) {
        struct async async = {.count = counts[i / 2], .forgets = i % 2 == 1};
        make_tensors(&async);
        assert_public_ok(cadre_run(strategy, many_step, &async, NULL, 0, NULL));
        assert_summed(&async, async.count);
        release_tensors(&async);
    }
    cadre_strategy_release(strategy);
}

/* What is called directly comes after what was started: tensor 1 is the sum of what tensor 0 has
 * become. And a tensor that the program releases is kept until its collective ends. */
static cadre_status mixed_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct async *async = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_collective *handle;
    cadre_tensor *let_go;
    CADRE_TRY(cadre_tensor_copy(async->tensors[id][2], &let_go));
    CADRE_TRY(start(replica, async, 0, &handle));
    CADRE_TRY(cadre_all_reduce(replica, CADRE_SUM, &async->tensors[id][1], 1, NULL));
    if (!cadre_collective_done(handle)) {
        return cadre_fail(CADRE_INTERNAL, "the one that came before is not done");
    }
    CADRE_TRY(cadre_collective_wait(handle));
    cadre_status status = cadre_all_reduce_start(replica, CADRE_SUM, &let_go, 1, NULL, &handle);
    cadre_tensor_release(let_go);
    CADRE_TRY(status);
    return cadre_barrier();
}

static void what_is_called_directly_comes_after(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 2};
    make_tensors(&async);
    assert_public_ok(cadre_run(strategy, mixed_step, &async, NULL, 0, NULL));
    assert_summed(&async, 2);
    release_tensors(&async);
    cadre_strategy_release(strategy);
}

/* --- failures --- */

/* Replica 1 starts one of another type, or fails by itself. */
static cadre_status failing_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct async *async = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_collective *handle = NULL;
    if (async->fails_at == 0) {
        async->statuses[id] = cadre_all_reduce_start(
            replica, id == 0 ? CADRE_SUM : CADRE_MEAN, async->tensors[id], 1, NULL, &handle);
        if (!async->forgets) {
            async->statuses[id] = cadre_collective_wait(handle);
        }
        return CADRE_OK; /* it does not look */
    }
    for (uint32_t i = 0; i < async->count && (id == 0 || i < async->fails_at); i++) {
        CADRE_TRY(start(replica, async, i, &handle));
    }
    if (id == 1) {
        return cadre_fail(CADRE_DATA_LOSS, "it is damaged");
    }
    async->statuses[0] = cadre_collective_wait(handle);
    return async->statuses[0];
}

static void a_disagreement_fails_the_step_also_if_none_looks(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 1};
    make_tensors(&async);
    for (int i = 0; i < 2; i++) {
        async.forgets = i == 1;
        assert_public_error(cadre_run(strategy, failing_step, &async, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT,
            "replica 0 calls cadre_all_reduce(CADRE_SUM) with f32 [1] (collective 1 of step 0)");
        assert_non_null(strstr(
            cadre_error_message(), "replica 1 calls cadre_all_reduce(CADRE_MEAN) with f32 [1]"));
        for (int r = 0; r < REPLICAS; r++) {
            assert_int_equal(async.statuses[r], i == 1 ? CADRE_OK : CADRE_INVALID_ARGUMENT);
        }
    }
    release_tensors(&async);
    async = (struct async){.count = 0};
    assert_public_ok(cadre_run(strategy, many_step, &async, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static void a_replica_that_fails_ends_what_is_under_way(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 100, .fails_at = 50};
    make_tensors(&async);
    assert_public_error(cadre_run(strategy, failing_step, &async, NULL, 0, NULL), CADRE_DATA_LOSS,
        "replica 1: it is damaged");
    assert_int_equal(async.statuses[0], CADRE_ABORTED);
    release_tensors(&async);
    struct async again = {.count = STARTS_MAX}; /* by hand the next step is a fresh start */
    make_tensors(&again);
    assert_public_ok(cadre_run(strategy, many_step, &again, NULL, 0, NULL));
    assert_summed(&again, STARTS_MAX);
    release_tensors(&again);
    cadre_strategy_release(strategy);
}

static cadre_status fewer_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_collective *handle;
    uint32_t count = 2 - cadre_replica_id(replica);
    for (uint32_t i = 0; i < count; i++) {
        CADRE_TRY(start(replica, user, i, &handle));
    }
    return CADRE_OK;
}

static void other_numbers_of_starts_are_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 0};
    make_tensors(&async);
    assert_public_error(cadre_run(strategy, fewer_step, &async, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "replica 1 makes 1");
    release_tensors(&async);
    cadre_strategy_release(strategy);
}

/* --- misuse --- */

static cadre_status misuse_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct async *async = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_collective *handle;
    CADRE_TRY(start(replica, async, 0, &handle));
    CADRE_TRY(cadre_collective_wait(handle));
    async->statuses[id] = cadre_collective_wait(handle);
    if (id == 0) {
        async->kept = handle;
    }
    return async->statuses[id];
}

static void a_handle_is_used_once_and_in_its_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct async async = {.count = 1};
    cadre_collective *handle = NULL;
    make_tensors(&async);
    assert_public_error(cadre_run(strategy, misuse_step, &async, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "for a collective that has ended");
    assert_public_error(cadre_collective_wait(async.kept), CADRE_FAILED_PRECONDITION,
        "outside of the replica function");
    assert_public_error(cadre_collective_wait(NULL), CADRE_INVALID_ARGUMENT, "handle");
    assert_true(cadre_collective_done(NULL));
    assert_true(cadre_collective_done(async.kept));
    assert_public_error(cadre_all_reduce_start(NULL, CADRE_SUM, async.tensors[0], 1, NULL, &handle),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    assert_null(handle);
    release_tensors(&async);
    cadre_strategy_release(strategy);
}

/* A start that finds no memory fails the step; nothing is lost and nothing waits. */
static void a_start_without_memory_fails(void **state)
{
    (void)state;
    static const char *const points[] = {
        "collective.queue", "collective.handle", "collective.list"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        cadre_strategy *strategy = training_strategy(REPLICAS);
        struct async async = {.count = 3};
        make_tensors(&async);
        fault_arm(points[i], 1);
        assert_public_error(cadre_run(strategy, many_step, &async, NULL, 0, NULL),
            CADRE_RESOURCE_EXHAUSTED, "no memory for");
        assert_true(fault_disarm());
        release_tensors(&async);
        struct async good = {.count = 3};
        make_tensors(&good);
        assert_public_ok(cadre_run(strategy, many_step, &good, NULL, 0, NULL));
        assert_summed(&good, 3);
        release_tensors(&good);
        cadre_strategy_release(strategy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communication_overlaps_with_computation),
        cmocka_unit_test(they_are_done_in_the_order_of_their_starts),
        cmocka_unit_test(what_is_called_directly_comes_after),
        cmocka_unit_test(a_disagreement_fails_the_step_also_if_none_looks),
        cmocka_unit_test(a_replica_that_fails_ends_what_is_under_way),
        cmocka_unit_test(other_numbers_of_starts_are_reported),
        cmocka_unit_test(a_handle_is_used_once_and_in_its_step),
        cmocka_unit_test(a_start_without_memory_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
