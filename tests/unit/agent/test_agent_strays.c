/* SPDX-License-Identifier: Apache-2.0
 * What tasks leave behind is removed when they are collected, and nothing else is. */

#include "tests/unit/agent/stage.h"

static bool nothing_is_left(struct stage *stage)
{
    struct played *task = &stage->tasks[0];
    return is_process_gone(number_after(task, "stray ", 0));
}

static void assert_leaves_nothing(const char *kind, unsigned strays)
{
    struct stage *stage = stage_open();
    struct played *task = play(stage, "leave", kind);
    assert_int_equal(task->exit.code, 0);
    for (unsigned n = 0; n < strays; n++) {
        long pid = number_after(task, "stray ", n);
        assert_true(pid > 1);
        if (!is_process_gone(pid)) {
            fail_msg("process %ld of \"leave %s\" lives on", pid, kind);
        }
    }
    assert_string_equal(stage->notices, "");
    stage_close(stage);
}

static void a_child_in_the_group_goes(void **state)
{
    (void)state;
    assert_leaves_nothing("group", 1);
}

static void a_child_in_a_session_of_its_own_goes(void **state)
{
    (void)state;
    assert_leaves_nothing("session", 1);
}

static void a_child_that_holds_the_output_goes(void **state)
{
    (void)state;
    assert_leaves_nothing("output", 1);
}

/* The grandchild is ours only when its parent, killed with the group, is dead. */
static void the_child_of_a_child_goes(void **state)
{
    (void)state;
    assert_leaves_nothing("chain", 2);
}

static void one_that_hides_its_name_goes(void **state)
{
    (void)state;
    assert_leaves_nothing("unknown", 1);
}

/* It might have been another's, did each task not have a keeper of its own. */
static void one_that_hides_goes_while_others_run(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 1, "end-on-term", NULL);
    until_printed(stage, 1, "ready");
    struct played *task = play(stage, "leave", "unknown");
    assert_true(is_process_gone(number_after(task, "stray ", 0)));
    assert_false(stage->tasks[1].gone);
    stage_close(stage);
}

static void what_is_anothers_is_spared(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "leave", "kept"); /* runs on, with a detached process of its own */
    until_printed(stage, 0, "stray ");
    start(stage, 1, "leave", "session");
    until_collected(stage, 1);
    assert_true(is_process_gone(number_after(&stage->tasks[1], "stray ", 0)));
    assert_false(stage->tasks[0].gone);
    assert_false(nothing_is_left(stage));
    stop(stage, 0, 0);
    until_collected(stage, 0);
    assert_true(nothing_is_left(stage));
    stage_close(stage);
}

/* Orphans that end while their task runs must not stay behind as zombies. */
static void orphans_that_end_are_reaped(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "leave", "ended");
    until_printed(stage, 0, "stray ");
    until(stage, nothing_is_left);
    assert_false(stage->tasks[0].gone);
    stage_close(stage);
}

static bool is_closed_now(struct stage *stage)
{
    return stage->closed;
}

static void note_closed(void *user)
{
    struct stage *stage = user;
    stage->closed = true;
}

static void closing_ends_everything(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    start(stage, 0, "ignore-term", NULL);
    start(stage, 1, "leave", "kept");
    start(stage, 2, "ignore-term", NULL);
    until_printed(stage, 0, "ready");
    until_printed(stage, 1, "stray ");
    until_printed(stage, 2, "ready");
    stage->delay_prepare = true;
    start(stage, 3, "exit", "0");
    agent_close(stage->agent, note_closed, stage);
    until(stage, is_closed_now);
    for (uint32_t slot = 0; slot < 3; slot++) {
        assert_true(is_process_gone(stage->tasks[slot].pid));
        assert_false(stage->tasks[slot].gone);
        assert_true(stage->tasks[slot].forgotten);
    }
    assert_true(is_process_gone(number_after(&stage->tasks[1], "stray ", 0)));
    stage->agent = NULL;
    stage->closed = false;
    stage_close(stage);
}

static void it_closes_while_one_is_collected(void **state)
{
    (void)state;
    struct stage *stage = stage_open();
    stage->delay_collect = true;
    start(stage, 0, "exit", "0");
    until_gone(stage, 0);
    assert_false(stage->tasks[0].collected);
    stage_close(stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_in_the_group_goes),
        cmocka_unit_test(a_child_in_a_session_of_its_own_goes),
        cmocka_unit_test(a_child_that_holds_the_output_goes),
        cmocka_unit_test(the_child_of_a_child_goes), cmocka_unit_test(one_that_hides_its_name_goes),
        cmocka_unit_test(one_that_hides_goes_while_others_run),
        cmocka_unit_test(what_is_anothers_is_spared), cmocka_unit_test(orphans_that_end_are_reaped),
        cmocka_unit_test(closing_ends_everything),
        cmocka_unit_test(it_closes_while_one_is_collected)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
