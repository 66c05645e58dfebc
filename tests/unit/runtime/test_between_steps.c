/* SPDX-License-Identifier: Apache-2.0
 * What a task keeps of the last collective outside of steps, for others that were frozen in it: it
 * is played back to them in the generation of those that are left. */
#include "training.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

/* Alone, a task keeps nothing. */
static void pretend_peers(cadre_strategy *strategy, bool peers)
{
    strategy->roster.member_count = peers ? 2 : 1;
}

static size_t kept(cadre_strategy *strategy, uint8_t bytes[256])
{
    struct cadre_error error = {0};
    size_t size = between_steps_bytes(strategy->regroup->between_steps);
    assert_in_range(size, 1, 256);
    assert_ok(between_steps_read(strategy->regroup->between_steps, 0, bytes, size, &error), &error);
    return size;
}

static cadre_variable *of_all(cadre_strategy *strategy, const char *name)
{
    cadre_variable *variable;
    const cadre_variable_options options = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_MEAN};
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &variable));
    return variable;
}

static cadre_variable *mirrored(cadre_strategy *strategy, const char *name)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, NULL, &variable));
    return variable;
}

static float total_of(const cadre_variable *variable)
{
    return *(const float *)cadre_variable_read(NULL, variable);
}

static void a_mean_is_of_those_who_were_there(void **state)
{
    (void)state;
    uint8_t bytes[256];
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *mean = of_all(strategy, "mean");
    for (uint32_t local = 0; local < 2; local++) {
        void *value;
        assert_ok(variable_open_write(mean, local, &value, &error), &error);
        *(float *)value = 10 + 10 * (float)local;
    }
    pretend_peers(strategy, true);
    assert_ok(on_read_fold_between_steps(mean, &error), &error);
    assert_true(total_of(mean) == 15);
    size_t size = kept(strategy, bytes);
    assert_ok(between_steps_write(strategy->regroup->between_steps, size, 0, bytes, size, &error),
        &error);
    between_steps_replay(strategy->regroup->between_steps);
    strategy->replica_count = 5;
    assert_ok(on_read_fold_between_steps(mean, &error), &error);
    assert_true(total_of(mean) == 15);
    strategy->replica_count = 2;
    pretend_peers(strategy, false);
    variables_commit(strategy);
    cadre_strategy_release(strategy);
}

static cadre_status write_other(
    cadre_variable *variable, cadre_tensor *const inputs[], cadre_tensor **ret_output, void *user)
{
    (void)variable;
    (void)inputs;
    (void)ret_output;
    return cadre_variable_assign_literal(NULL, user, CADRE_ASSIGN, 7);
}

/* The value that a variable was created with is not kept twice until it is changed, by any call. */
static void an_update_of_another_variable_does_not_change_what_is_kept(void **state)
{
    (void)state;
    uint8_t before[256];
    uint8_t after[256];
    cadre_strategy *strategy = training_strategy(2);
    cadre_variable *first = mirrored(strategy, "first");
    pretend_peers(strategy, true);
    cadre_variable *last = mirrored(strategy, "last");
    size_t size = kept(strategy, before);
    assert_public_ok(cadre_variable_update(strategy, first, write_other, last, NULL, NULL));
    assert_true(total_of(last) == 7);
    assert_int_equal(kept(strategy, after), size);
    assert_memory_equal(before, after, size);
    pretend_peers(strategy, false);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mean_is_of_those_who_were_there),
        cmocka_unit_test(an_update_of_another_variable_does_not_change_what_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
