/* SPDX-License-Identifier: Apache-2.0
 * Which strategy is current where, and in which context a thread is. */
#include <pthread.h>
#include <string.h>

#include "training.h"
#include "worker/library/runtime/api/api.h"

static const cadre_status refused = CADRE_FAILED_PRECONDITION;

/* scope/seed_default_outside, scope/same_strategy_nests. */
static void scopes_nest(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(2);
    assert_false(cadre_has_strategy());
    assert_false(cadre_in_cross_replica_context());
    assert_public_ok(cadre_scope_enter(s));
    assert_true(cadre_in_cross_replica_context());
    assert_public_ok(cadre_scope_enter(s));
    assert_ptr_equal(cadre_strategy_current(), s);
    assert_public_ok(cadre_scope_leave(s));
    assert_ptr_equal(cadre_strategy_current(), s);
    assert_true(cadre_has_strategy());
    assert_public_ok(cadre_scope_leave(s));
    assert_false(cadre_has_strategy());
    assert_public_error(cadre_scope_leave(s), refused, "innermost scope is none");
    cadre_strategy_release(s);
}

/* scope/mixing_strategies; and functions that are given another strategy. */
static void strategies_are_not_mixed(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(1);
    cadre_strategy *t = training_strategy(1);
    cadre_variable *variable;
    assert_public_ok(cadre_scope_enter(s));
    assert_public_error(cadre_scope_enter(t), refused, "mixing");
    assert_public_error(cadre_scope_enter(NULL), refused, "mixing");
    assert_public_error(cadre_scope_leave(t), refused, "another strategy's");
    assert_public_error(cadre_report(t, "loss", 1), refused, "mixing");
    assert_public_error(
        cadre_variable_create(t, "v", CADRE_F32, 0, NULL, NULL, &variable), refused, "mixing");
    assert_ptr_equal(cadre_strategy_current(), s);
    assert_public_ok(cadre_report(s, "loss", 1));
    assert_public_ok(cadre_scope_leave(s));
    assert_public_ok(cadre_report(t, "loss", 1));
    cadre_strategy_release(s);
    cadre_strategy_release(t);
}

/* NULL is the default strategy: what is current can always be entered. */
static void the_default_strategy_can_be_entered(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(1);
    assert_public_ok(cadre_scope_enter(cadre_strategy_current()));
    assert_false(cadre_has_strategy());
    assert_false(cadre_in_cross_replica_context());
    assert_public_ok(cadre_scope_enter(s));
    assert_public_error(cadre_scope_leave(NULL), refused, "another strategy's");
    assert_public_ok(cadre_scope_leave(s));
    assert_public_error(cadre_scope_leave(s), refused, "the default strategy's");
    assert_public_ok(cadre_scope_leave(NULL));
    assert_public_error(cadre_scope_leave(NULL), refused, "none");
    cadre_strategy_release(s);
}

static void a_strategy_can_be_set_for_the_process(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(1);
    cadre_strategy *t = training_strategy(1);
    assert_public_ok(cadre_strategy_set(s));
    assert_ptr_equal(cadre_strategy_current(), s);
    assert_true(cadre_in_cross_replica_context());
    assert_public_error(cadre_scope_enter(t), refused, "mixing");
    assert_public_error(cadre_report(t, "loss", 1), refused, "mixing");
    assert_public_ok(cadre_barrier()); /* of s */
    assert_public_ok(cadre_scope_enter(s));
    assert_public_error(cadre_strategy_set(t), refused, "inside a scope");
    assert_public_error(cadre_strategy_set(NULL), refused, "inside a scope");
    assert_public_ok(cadre_scope_leave(s));
    assert_public_ok(cadre_strategy_set(t));
    assert_ptr_equal(cadre_strategy_current(), t);
    assert_public_ok(cadre_strategy_set(NULL));
    assert_false(cadre_has_strategy());
    assert_public_error(cadre_barrier(), refused, "several strategies"); /* which of the two? */
    assert_public_ok(cadre_strategy_set(t));
    cadre_strategy_release(t);
    assert_false(cadre_has_strategy()); /* it ended with it */
    assert_public_error(cadre_strategy_set(t), refused, "has ended");
    cadre_strategy_release(s);
}

/* Another one may be made at the same address: its scope was never entered. */
static void scopes_end_with_their_strategy(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        cadre_strategy *s = training_strategy(1);
        assert_false(cadre_has_strategy());
        assert_public_ok(cadre_scope_enter(s));
        assert_public_ok(cadre_scope_enter(s));
        cadre_strategy_release(s);
        assert_false(cadre_has_strategy());
        assert_public_error(cadre_scope_leave(s), refused, "none");
        assert_public_error(cadre_scope_enter(s), refused, "has ended");
    }
}

static void *look_around(void *user)
{
    cadre_strategy **seen = user;
    *seen = cadre_strategy_current();
    return NULL;
}

static cadre_strategy *seen_by_a_thread(void)
{
    pthread_t thread;
    cadre_strategy *seen = NULL;
    assert_int_equal(pthread_create(&thread, NULL, look_around, &seen), 0);
    pthread_join(thread, NULL);
    return seen;
}

static void scopes_are_of_their_thread(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(1);
    assert_public_ok(cadre_scope_enter(s));
    assert_ptr_not_equal(seen_by_a_thread(), s);
    assert_public_ok(cadre_scope_leave(s));
    assert_public_ok(cadre_strategy_set(s));
    assert_ptr_equal(seen_by_a_thread(), s);
    cadre_strategy_release(s);
}

/* ---- in replica functions ---- */

static cadre_status look_inside(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_strategy *s = cadre_replica_strategy(replica);
    bool own = cadre_strategy_current() == s && cadre_has_strategy() &&
               cadre_replica_current() == replica && !cadre_in_cross_replica_context();
    bool kept = cadre_scope_enter(s) == refused && cadre_scope_leave(s) == refused &&
                cadre_strategy_set(s) == refused && cadre_scope_enter(user) == refused;
    return own && kept ? CADRE_OK : cadre_fail(CADRE_UNKNOWN, "own %d, kept %d", own, kept);
}

static void replica_functions_are_in_their_strategy(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(3);
    cadre_strategy *t = training_strategy(1);
    assert_ptr_equal(cadre_replica_strategy(cadre_replica_current()), cadre_strategy_current());
    assert_public_ok(cadre_run(s, look_inside, t, NULL, 0, NULL));
    assert_public_ok(cadre_scope_enter(s));
    assert_public_ok(cadre_run(s, look_inside, t, NULL, 0, NULL));
    assert_true(cadre_in_cross_replica_context());
    assert_public_error(cadre_run(t, look_inside, t, NULL, 0, NULL), refused, "mixing");
    assert_public_ok(cadre_scope_leave(s));
    cadre_strategy_release(s);
    cadre_strategy_release(t);
}

/* ---- updates ---- */

static void updates_say_which_component_is_written(void **state)
{
    (void)state;
    cadre_strategy *s = training_strategy(3);
    struct context_frame outer;
    struct context_frame inner;
    struct context_frame merge;
    uint32_t local = 99;
    assert_false(context_update(&local));
    context_update_enter(&outer, s, 2);
    assert_true(context_update(&local));
    assert_int_equal(local, 2);
    assert_true(cadre_in_cross_replica_context());
    assert_ptr_equal(cadre_strategy_current(), s);
    context_update_enter(&inner, s, 1);
    assert_true(context_update(&local));
    assert_int_equal(local, 1);
    context_merge_enter(&merge, s);
    assert_false(context_update(&local));
    assert_true(context_merging());
    context_merge_leave(&merge);
    context_update_leave(&inner);
    assert_true(context_update(&local));
    assert_int_equal(local, 2);
    assert_false(context_merging());
    assert_public_error(cadre_report(s, "loss", 1), refused, "an update of a variable");
    context_update_leave(&outer);
    assert_false(cadre_has_strategy());
    assert_public_ok(cadre_report(s, "loss", 1));
    cadre_strategy_release(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_nest),
        cmocka_unit_test(strategies_are_not_mixed),
        cmocka_unit_test(the_default_strategy_can_be_entered),
        cmocka_unit_test(a_strategy_can_be_set_for_the_process),
        cmocka_unit_test(scopes_end_with_their_strategy),
        cmocka_unit_test(scopes_are_of_their_thread),
        cmocka_unit_test(replica_functions_are_in_their_strategy),
        cmocka_unit_test(updates_say_which_component_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
