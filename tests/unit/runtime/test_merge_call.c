/* SPDX-License-Identifier: Apache-2.0
 * cadre_merge_call: replicas meet in a step, one function runs for all; and meetings to which not
 * all come, which must end for those that did. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "training.h"

#define REPLICAS 3

struct meeting {
    cadre_merge_function function;
    cadre_variable *variable;
    pthread_t program; /* the program's thread */
    atomic_uint calls; /* of the function */
    atomic_uint odd;   /* the local replica that does otherwise */
    cadre_status odd_status;
    uint32_t n_inputs;
    uint32_t n_outputs;
    cadre_status seen[REPLICAS]; /* what the call gave to each */
    char printed[REPLICAS][512];
};

/* ---- functions for all ---- */

static float number_of(const cadre_tensor *tensor)
{
    return *(const float *)cadre_tensor_const_data(tensor);
}

/* Output 0: the sum of the inputs, to all; output 1: the input of the next replica. */
static cadre_status sum_and_rotate(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    struct meeting *meeting = user;
    atomic_fetch_add(&meeting->calls, 1);
    uint32_t count = cadre_per_replica_count(inputs[0]);
    cadre_tensor *const *given = cadre_local_results(inputs[0], 0);
    if (!cadre_in_cross_replica_context() || cadre_replica_current() != NULL ||
        cadre_strategy_current() != strategy || count != REPLICAS ||
        !pthread_equal(pthread_self(), meeting->program)) {
        return cadre_fail(CADRE_UNKNOWN, "this is no cross-replica context");
    }
    cadre_tensor *same[REPLICAS];
    cadre_tensor *next[REPLICAS];
    float sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += number_of(given[i]);
        next[i] = given[(i + 1) % count];
    }
    CADRE_TRY(cadre_tensor_from_f32(sum, &same[0]));
    for (uint32_t i = 1; i < count; i++) {
        same[i] = same[0];
    }
    cadre_status status = cadre_values_from_tensors(strategy, same, count, &outputs[0]);
    if (status == CADRE_OK) {
        status = cadre_values_from_tensors(strategy, next, count, &outputs[1]);
    }
    cadre_tensor_release(same[0]);
    return status;
}

static cadre_status meet_and_check(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct meeting *meeting = user;
    uint32_t id = cadre_replica_id(replica);
    cadre_tensor *own;
    cadre_tensor *merged[2];
    CADRE_TRY(cadre_tensor_from_f32((float)(10 + id), &own));
    cadre_status status = cadre_merge_call(replica, sum_and_rotate, meeting, &own, 1, 2, merged);
    cadre_tensor_release(own);
    if (status != CADRE_OK) {
        return status;
    }
    bool right = number_of(merged[0]) == 33 &&
                 number_of(merged[1]) == (float)(10 + (id + 1) % REPLICAS) &&
                 cadre_replica_current() == replica && !cadre_in_cross_replica_context();
    outputs[0] = merged[0];
    cadre_tensor_release(merged[1]);
    return right ? CADRE_OK : cadre_fail(CADRE_UNKNOWN, "replica %u got something else", id);
}

static void one_function_runs_for_all(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.program = pthread_self()};
    cadre_per_replica *sum;
    for (uint32_t step = 1; step <= 3; step++) {
        assert_public_ok(cadre_run(strategy, meet_and_check, &meeting, NULL, 1, &sum));
        assert_int_equal(atomic_load(&meeting.calls), step);
        assert_true(cadre_per_replica_is_plain(sum, 0)); /* the very same tensor */
    }
    cadre_strategy_release(strategy);
}

/* ---- what may be done inside ---- */

static cadre_status add_input(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)ret_output;
    (void)user;
    return cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, inputs[0]);
}

static cadre_status update(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)outputs;
    struct meeting *meeting = user;
    float before = *(const float *)cadre_variable_read(NULL, meeting->variable);
    CADRE_TRY(cadre_variable_update(strategy, meeting->variable, add_input, NULL, inputs[0], NULL));
    float after = *(const float *)cadre_variable_read(NULL, meeting->variable);
    return after == before + number_of(cadre_local_results(inputs[0], 0)[0])
               ? CADRE_OK
               : cadre_fail(CADRE_UNKNOWN, "%g became %g", before, after);
}

/* All give the same, so that the components stay equal. */
static cadre_status meet_with_a_number(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct meeting *meeting = user;
    cadre_tensor *own;
    CADRE_TRY(cadre_tensor_from_f32(2, &own));
    cadre_status status = cadre_merge_call(replica, meeting->function, meeting, &own, 1, 0, NULL);
    cadre_tensor_release(own);
    uint32_t local = cadre_replica_local_id(replica);
    meeting->seen[local] = status;
    snprintf(meeting->printed[local], sizeof meeting->printed[local], "%s", cadre_error_message());
    return status;
}

static void variables_are_updated_inside(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.function = update};
    assert_public_ok(
        cadre_variable_create(strategy, "v", CADRE_F32, 0, NULL, NULL, &meeting.variable));
    for (int step = 1; step <= 3; step++) {
        assert_public_ok(cadre_run(strategy, meet_with_a_number, &meeting, NULL, 0, NULL));
        assert_true(
            *(const float *)cadre_variable_read(NULL, meeting.variable) == (float)(2 * step));
    }
    cadre_strategy_release(strategy);
}

static cadre_replica *first_replica;

static cadre_status try_what_is_refused(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)outputs;
    cadre_tensor *tensor = cadre_local_results(inputs[0], 0)[0];
    const cadre_status refused = CADRE_FAILED_PRECONDITION;
    bool collectives = cadre_all_reduce(first_replica, CADRE_SUM, &tensor, 1, NULL) == refused &&
                       cadre_broadcast(first_replica, 0, &tensor, 1) == refused &&
                       cadre_merge_call(first_replica, update, user, NULL, 0, 0, NULL) == refused &&
                       cadre_barrier() == refused;
    bool steps = cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL) == refused &&
                 strstr(cadre_error_message(), "cadre_merge_call") != NULL &&
                 cadre_save(strategy, false) == refused && cadre_finish(strategy) == 1;
    cadre_strategy_release(strategy); /* not while its replicas wait */
    bool scopes = cadre_scope_enter(strategy) == CADRE_OK &&
                  cadre_scope_leave(strategy) == CADRE_OK && cadre_strategy_set(NULL) == refused;
    return collectives && steps && scopes
               ? CADRE_OK
               : cadre_fail(CADRE_UNKNOWN, "collectives %d, steps %d, scopes %d: %s", collectives,
                     steps, scopes, cadre_error_message());
}

static cadre_status meet_as_first(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    if (cadre_replica_local_id(replica) == 0) {
        first_replica = replica;
    }
    return meet_with_a_number(replica, inputs, outputs, user);
}

static void collectives_and_steps_are_refused_inside(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.function = try_what_is_refused};
    assert_public_ok(cadre_run(strategy, meet_as_first, &meeting, NULL, 0, NULL));
    assert_int_equal(cadre_strategy_position(strategy), 1);
    cadre_strategy_release(strategy);
}

/* ---- failures of the function ---- */

static cadre_status fail_as_ordered(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)inputs;
    (void)outputs;
    return cadre_fail(((struct meeting *)user)->odd_status, "the sums do not add up");
}

/* Also a code by which the library itself would take a peer for lost. */
static void failures_reach_all_replicas(void **state)
{
    (void)state;
    static const cadre_status codes[] = {
        CADRE_OUT_OF_RANGE, CADRE_ABORTED, CADRE_UNAVAILABLE, CADRE_CANCELLED};
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        struct meeting meeting = {.function = fail_as_ordered, .odd_status = codes[i]};
        assert_public_error(cadre_run(strategy, meet_with_a_number, &meeting, NULL, 0, NULL),
            codes[i], "the function of cadre_merge_call: the sums do not add up");
        for (int local = 0; local < REPLICAS; local++) {
            assert_int_equal(meeting.seen[local], codes[i]);
            assert_non_null(strstr(meeting.printed[local], "the sums do not add up"));
        }
        assert_int_equal(cadre_strategy_position(strategy), 0);
    }
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

static cadre_status do_not_look(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    meet_with_a_number(replica, inputs, outputs, user);
    return CADRE_OK;
}

static void failures_that_none_looks_at_fail_the_step(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.function = fail_as_ordered, .odd_status = CADRE_DATA_LOSS};
    assert_public_error(cadre_run(strategy, do_not_look, &meeting, NULL, 0, NULL), CADRE_DATA_LOSS,
        "do not add up");
    meeting.odd_status = CADRE_ABORTED;
    assert_public_error(
        cadre_run(strategy, do_not_look, &meeting, NULL, 0, NULL), CADRE_UNKNOWN, "do not add up");
    cadre_strategy_release(strategy);
}

static cadre_status leave_a_scope_open(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_scope_enter(strategy);
}

static cadre_status make_an_output(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)user;
    outputs[0] = cadre_per_replica_retain(inputs[0]);
    return CADRE_OK;
}

static void what_the_function_leaves_is_checked(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.function = leave_a_scope_open};
    assert_public_error(cadre_run(strategy, meet_with_a_number, &meeting, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "returned inside a scope");
    assert_false(cadre_has_strategy());
    meeting.function = make_an_output;
    assert_public_error(cadre_run(strategy, meet_with_a_number, &meeting, NULL, 0, NULL),
        CADRE_INVALID_ARGUMENT, "made output 0, and 0 outputs were requested of it");
    cadre_strategy_release(strategy);
}

/* ---- meetings to which not all come ---- */

static cadre_status all_but_one(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct meeting *meeting = user;
    if (cadre_replica_local_id(replica) != atomic_load(&meeting->odd)) {
        return meet_with_a_number(replica, inputs, outputs, user);
    }
    return cadre_fail(meeting->odd_status, "this one has no data");
}

static cadre_status never(cadre_strategy *strategy, cadre_per_replica *const inputs[],
    cadre_per_replica *outputs[], void *user)
{
    (void)strategy;
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_fail(CADRE_INTERNAL, "not all were there");
}

static void one_that_does_not_come_is_named(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (uint32_t round = 0; round < 30; round++) {
        struct meeting meeting = {.function = never};
        atomic_store(&meeting.odd, round % REPLICAS);
        char name[16];
        snprintf(name, sizeof name, "replica %u", round % REPLICAS);
        /* Which of the two is found first depends on who comes last. */
        cadre_status status = cadre_run(strategy, all_but_one, &meeting, NULL, 0, NULL);
        assert_int_equal(status, CADRE_INVALID_ARGUMENT);
        assert_true(strstr(cadre_error_message(), "cadre_merge_call") != NULL ||
                    strstr(cadre_error_message(), "collective calls in this step") != NULL);
        assert_non_null(strstr(cadre_error_message(), name));
        for (uint32_t local = 0; local < REPLICAS; local++) {
            assert_true(local == round % REPLICAS || meeting.seen[local] == CADRE_INVALID_ARGUMENT);
        }
    }
    assert_int_equal(cadre_strategy_position(strategy), 0);
    cadre_strategy_release(strategy);
}

static void one_that_fails_is_the_cause(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (uint32_t round = 0; round < 30; round++) {
        struct meeting meeting = {.function = never, .odd_status = CADRE_OUT_OF_RANGE};
        atomic_store(&meeting.odd, round % REPLICAS);
        /* Also for those that come after it has returned. */
        assert_public_error(cadre_run(strategy, all_but_one, &meeting, NULL, 0, NULL),
            CADRE_OUT_OF_RANGE, "this one has no data");
        for (uint32_t local = 0; local < REPLICAS; local++) {
            assert_true(local == round % REPLICAS || meeting.seen[local] == CADRE_ABORTED);
        }
    }
    cadre_strategy_release(strategy);
}

static cadre_status with_other_numbers(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    struct meeting *meeting = user;
    uint32_t local = cadre_replica_local_id(replica);
    bool odd = local == atomic_load(&meeting->odd);
    cadre_tensor *own[2];
    cadre_tensor *merged[2];
    CADRE_TRY(cadre_tensor_from_f32(2, &own[0]));
    own[1] = own[0];
    cadre_status status = cadre_merge_call(replica, odd ? meeting->function : never, meeting, own,
        odd ? meeting->n_inputs : 1, odd ? meeting->n_outputs : 0, merged);
    cadre_tensor_release(own[0]);
    return status;
}

static void all_come_with_the_same_call(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(2);
    struct meeting other[] = {{.function = update, .n_inputs = 1},
        {.function = never, .n_inputs = 2}, {.function = never, .n_inputs = 1, .n_outputs = 2}};
    static const char *const parts[] = {"another function", "2 inputs", "2 outputs"};
    for (uint32_t i = 0; i < 12; i++) {
        struct meeting *meeting = &other[i % 3];
        atomic_store(&meeting->odd, i / 3 % 2);
        assert_public_error(cadre_run(strategy, with_other_numbers, meeting, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, parts[i % 3]);
        assert_non_null(strstr(cadre_error_message(), "replica 0"));
        assert_non_null(strstr(cadre_error_message(), "replica 1"));
    }
    cadre_strategy_release(strategy);
}

/* One waits for the others in a collective, the others for it in a meeting. */
static cadre_status cross_over(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    struct meeting *meeting = user;
    if (cadre_replica_local_id(replica) != atomic_load(&meeting->odd)) {
        return meet_with_a_number(replica, inputs, outputs, user);
    }
    cadre_tensor *one;
    CADRE_TRY(cadre_tensor_from_f32(1, &one));
    cadre_status status = cadre_all_reduce(replica, CADRE_SUM, &one, 1, NULL);
    cadre_tensor_release(one);
    return status;
}

static void meetings_and_collectives_are_reported_apart(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    for (uint32_t round = 0; round < 60; round++) {
        struct meeting meeting = {.function = never};
        atomic_store(&meeting.odd, round % REPLICAS);
        assert_public_error(cadre_run(strategy, cross_over, &meeting, NULL, 0, NULL),
            CADRE_INVALID_ARGUMENT, "the replicas disagree");
    }
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    cadre_strategy_release(strategy);
}

/* ---- many ---- */

static cadre_status take_turns(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)outputs;
    for (int i = 0; i < 20; i++) {
        cadre_tensor *merged[1]; /* the same one on all replicas: it is only read */
        cadre_tensor *sum[1];
        CADRE_TRY(meet_and_check(replica, inputs, merged, user));
        CADRE_TRY(cadre_tensor_from_f32(0, &sum[0]));
        cadre_status status = cadre_all_reduce_into(replica, CADRE_SUM, merged, 1, sum, NULL);
        bool right = status == CADRE_OK && number_of(sum[0]) == 33 * REPLICAS;
        cadre_tensor_release(merged[0]);
        cadre_tensor_release(sum[0]);
        CADRE_TRY(status);
        if (!right) {
            return cadre_fail(CADRE_UNKNOWN, "the meeting before has come into this one");
        }
    }
    return CADRE_OK;
}

static void meetings_and_collectives_take_turns(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(REPLICAS);
    struct meeting meeting = {.program = pthread_self()};
    for (int step = 0; step < 20; step++) {
        assert_public_ok(cadre_run(strategy, take_turns, &meeting, NULL, 0, NULL));
    }
    assert_int_equal(atomic_load(&meeting.calls), 20 * 20);
    cadre_strategy_release(strategy);
}

/* ---- misuse ---- */

static cadre_status misuse(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    cadre_tensor *none = NULL;
    switch (*(const int *)user) {
    case 0:
        return cadre_merge_call(replica, NULL, NULL, NULL, 0, 0, NULL);
    case 1:
        return cadre_merge_call(replica, never, NULL, &none, 1, 0, NULL);
    case 2:
        return cadre_merge_call(replica, never, NULL, NULL, 1, 0, NULL);
    case 3:
        return cadre_merge_call(replica, never, NULL, NULL, 0, 1, NULL);
    case 4:
        return cadre_merge_call(replica, never, NULL, NULL, 0, CADRE_OUTPUTS_MAX + 1, outputs);
    default:
        return cadre_merge_call(NULL, never, NULL, NULL, 0, 0, NULL);
    }
}

static void arguments_are_checked(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "'function'", "input 0 of 1 is NULL", "'inputs'", "'ret_outputs'", "at most", "'replica'"};
    cadre_strategy *strategy = training_strategy(2);
    for (int i = 0; i < 6; i++) {
        assert_public_error(
            cadre_run(strategy, misuse, &i, NULL, 0, NULL), CADRE_INVALID_ARGUMENT, parts[i]);
    }
    assert_public_error(cadre_merge_call(NULL, never, NULL, NULL, 0, 0, NULL),
        CADRE_FAILED_PRECONDITION, "outside of a replica function");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_function_runs_for_all),
        cmocka_unit_test(variables_are_updated_inside),
        cmocka_unit_test(collectives_and_steps_are_refused_inside),
        cmocka_unit_test(failures_reach_all_replicas),
        cmocka_unit_test(failures_that_none_looks_at_fail_the_step),
        cmocka_unit_test(what_the_function_leaves_is_checked),
        cmocka_unit_test(one_that_does_not_come_is_named),
        cmocka_unit_test(one_that_fails_is_the_cause),
        cmocka_unit_test(all_come_with_the_same_call),
        cmocka_unit_test(meetings_and_collectives_are_reported_apart),
        cmocka_unit_test(meetings_and_collectives_take_turns),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
