/* SPDX-License-Identifier: Apache-2.0
 * Options of collectives: packs, timeouts, names, those of the strategy and those of a call; and
 * that a collective in the steady state allocates no memory. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "training.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"

static void packs_end_once_they_are_too_large(void **state)
{
    (void)state;
    const size_t sizes[4] = {128, 32, 800, 4};
    const size_t stride = sizeof sizes[0];
    assert_int_equal(collective_pack(sizes, stride, 4, 200), 3);
    assert_int_equal(collective_pack(sizes + 3, stride, 1, 200), 1);
    assert_int_equal(collective_pack(sizes, stride, 4, 0), 4);
    assert_int_equal(collective_pack(sizes, stride, 4, 1), 1);
    assert_int_equal(collective_pack(sizes, stride, 4, 127), 1);
    assert_int_equal(collective_pack(sizes, stride, 4, 128), 2); /* not larger than it */
    assert_int_equal(collective_pack(sizes, stride, 4, SIZE_MAX), 4);
    assert_int_equal(collective_pack(NULL, stride, 0, 200), 0);
    assert_int_equal(collective_pack(sizes, 2 * stride, 2, 127), 1);
}

static void names_are_read_in_any_case(void **state)
{
    (void)state;
    cadre_reduce_op op;
    assert_public_ok(cadre_reduce_op_parse("mean", &op));
    assert_int_equal(op, CADRE_MEAN);
    assert_public_ok(cadre_reduce_op_parse("Prod", &op));
    assert_int_equal(op, CADRE_PROD);
    assert_public_error(
        cadre_reduce_op_parse("", &op), CADRE_INVALID_ARGUMENT, "'' is not a reduction");
}

static void settle(cadre_strategy *strategy, const cadre_collective_options *options,
    size_t bytes_per_pack, uint64_t timeout_us)
{
    struct collective_settings settings;
    struct cadre_error error;
    assert_ok(collective_options_settle(strategy, options, &settings, &error), &error);
    assert_int_equal(settings.bytes_per_pack, bytes_per_pack);
    assert_int_equal(settings.timeout_us, timeout_us);
}

static void a_call_overrides_the_strategy_field_by_field(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    settle(strategy, NULL, 0, 0);
    assert_public_ok(cadre_strategy_set_communication(
        strategy, &(cadre_collective_options){.bytes_per_pack = 100,
                      .timeout_seconds = 2,
                      .implementation = CADRE_COMMUNICATION_NCCL}));
    settle(strategy, NULL, 100, 2000000);
    settle(strategy, &(cadre_collective_options){.bytes_per_pack = 7}, 7, 2000000);
    settle(strategy, &(cadre_collective_options){.timeout_seconds = 0.5}, 100, 500000);
    settle(strategy, &(cadre_collective_options){.timeout_seconds = 1e-9}, 100, 1);
    settle(strategy, &(cadre_collective_options){.timeout_seconds = INFINITY}, 100,
        UINT64_C(1000000000000000));
    static const cadre_collective_options wrong[] = {{.timeout_seconds = -1},
        {.timeout_seconds = NAN}, {.implementation = (cadre_communication)3},
        {.implementation = (cadre_communication)-1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_public_error(cadre_strategy_set_communication(strategy, &wrong[i]),
            CADRE_INVALID_ARGUMENT, i < 2 ? "a timeout of" : "is not an implementation");
    }
    settle(strategy, NULL, 100, 2000000); /* what is refused changes nothing */
    assert_public_ok(cadre_strategy_set_communication(strategy, NULL));
    settle(strategy, NULL, 0, 0);
    cadre_strategy_release(strategy);
}

/* --- in a step --- */

struct late {
    pthread_mutex_t lock;
    pthread_cond_t reported;
    bool over; /* replica 0 has the error that no other came */
    cadre_collective_options options;
    bool broadcasts; /* which takes no options */
    cadre_status status;
    char message[512];
};

static cadre_status late_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct late *late = user;
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    if (cadre_replica_id(replica) == 1) {
        pthread_mutex_lock(&late->lock);
        while (!late->over) {
            pthread_cond_wait(&late->reported, &late->lock);
        }
        pthread_mutex_unlock(&late->lock);
    }
    cadre_status status = late->broadcasts
                              ? cadre_broadcast(replica, 0, &one, 1)
                              : cadre_all_reduce(replica, CADRE_SUM, &one, 1, &late->options);
    if (cadre_replica_id(replica) == 0) {
        pthread_mutex_lock(&late->lock);
        late->status = late->over ? late->status : status;
        if (!late->over) {
            snprintf(late->message, sizeof late->message, "%s", cadre_error_message());
        }
        late->over = true;
        pthread_cond_signal(&late->reported);
        pthread_mutex_unlock(&late->lock);
    }
    cadre_tensor_release(one);
    return status;
}

static void check_late(cadre_strategy *strategy, struct late *late)
{
    assert_public_error(
        cadre_run(strategy, late_step, late, NULL, 0, NULL), CADRE_DEADLINE_EXCEEDED, "replica 1");
    assert_int_equal(late->status, CADRE_DEADLINE_EXCEEDED);
    if (strstr(late->message, "replica 1") == NULL) {
        fail_msg("%s", late->message);
    }
    if (late->broadcasts) {
        return;
    }
    late->options.timeout_seconds = 30; /* the error is there: now it comes at once */
    assert_public_ok(cadre_run(strategy, late_step, late, NULL, 0, NULL));
}

static void who_does_not_come_in_time_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct late late = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .reported = PTHREAD_COND_INITIALIZER,
        .options = {.timeout_seconds = 0.05}};
    check_late(strategy, &late);
    assert_public_ok(cadre_strategy_set_communication(
        strategy, &(cadre_collective_options){.timeout_seconds = 0.05}));
    struct late by_default = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .reported = PTHREAD_COND_INITIALIZER};
    check_late(strategy, &by_default);
    struct late broadcast = {.lock = PTHREAD_MUTEX_INITIALIZER,
        .reported = PTHREAD_COND_INITIALIZER,
        .broadcasts = true};
    check_late(strategy, &broadcast);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_end_once_they_are_too_large),
        cmocka_unit_test(names_are_read_in_any_case),
        cmocka_unit_test(a_call_overrides_the_strategy_field_by_field),
        cmocka_unit_test(who_does_not_come_in_time_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
