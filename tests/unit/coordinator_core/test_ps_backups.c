/* SPDX-License-Identifier: Apache-2.0
 * From whose copy a parameter server's variables may be taken: that, and that a server goes on
 * alone, exclude each other. */
#include "tests/unit/coordinator_core/script.h"

static void sends_backed(
    struct script *s, uint64_t link, uint64_t incarnation, uint64_t number, uint64_t by)
{
    const struct agent_up up = {.type = AGENT_UP_RELAY,
        .relay_up = {.task = {.job = {1}, .slot = 3, .incarnation = incarnation},
            .up = {.type = TASK_UP_BACKED, .backed = {.number = number, .by = by}}}};
    step_once(
        s, &(struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {link}, .up = &up}});
}

/* ps 0 is slot 3, incarnation 4; ps 1, which has its copy, is slot 4, incarnation 5. */
static void whose_copy_counts_is_recorded_and_reported(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec_backups);
    sends_backed(s, 2, 4, 1, 5);
    expect_output(s, "record! job 1: task 3#4 backed by #5\n"
                     "tell job 1 task 3 on link 2: members g1\n");
    assert_int_equal(task_view(s, 3).backed.number, 1);
    assert_int_equal(task_view(s, 3).backed.by, 5);
    sends_backed(s, 2, 4, 1, 5); /* the answer did not come */
    expect_output(s, "tell job 1 task 3 on link 2: members g1\n");
    sends_backed(s, 2, 4, 2, 6); /* it is not the server behind it */
    expect_output(s, "");
    sends_backed(s, 2, 4, 3, 0);
    expect_output(s, "record! job 1: task 3#4 backed by #0\n"
                     "tell job 1 task 3 on link 2: members g1\n");
    sends_backed(s, 2, 4, 1, 5); /* an older statement */
    expect_output(s, "");
    assert_int_equal(task_view(s, 3).backed.by, 0);
    script_close(s);
}

static void who_is_lost_goes_on_alone_no_more(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec_backups);
    sends_backed(s, 2, 4, 1, 5);
    link_down(s, 2);
    join(s, 12, "b", 2); /* another daemon: the tasks of the first are lost */
    script_skip(s);
    assert_int_equal(task_view(s, 3).link.n, 12);
    assert_int_equal(task_view(s, 3).backed.by, 5); /* the new one takes the copy */
    assert_int_equal(task_view(s, 3).backed.number, 0);
    uint64_t incarnation = task_view(s, 3).incarnation;
    assert_int_not_equal(incarnation, 4);
    sends_backed(s, 12, 4, 2, 0);
    script_skip(s);
    assert_int_equal(task_view(s, 3).backed.by, 5);
    script_close(s);
}

static void of_who_went_on_alone_nothing_is_taken(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec_backups);
    sends_backed(s, 2, 4, 1, 5);
    sends_backed(s, 2, 4, 2, 0);
    script_skip(s);
    collect(s, 2, 1, 3);
    script_skip(s);
    assert_int_not_equal(task_view(s, 3).incarnation, 4);
    assert_int_equal(task_view(s, 3).backed.by, 0);
    script_close(s);
}

/* The server behind it is lost: its message then does not count. */
static void a_copy_that_is_gone_is_not_recorded(void **state)
{
    (void)state;
    struct script *s = stage_ps_job(&ps_job_spec_backups);
    gone(s, 3, 1, 4, 0, 9, "");
    script_skip(s);
    sends_backed(s, 2, 4, 1, 5);
    expect_output(s, "");
    assert_int_equal(task_view(s, 3).backed.by, 0);
    script_close(s);
}

/* A hello is the first message of a task; a faulty program reports its copy before it. */
static void a_server_may_report_its_copy_before_its_hello(void **state)
{
    (void)state;
    struct script *s = stage_ps_job_placed(&ps_job_spec_backups);
    sends_backed(s, 2, 4, 1, 5);
    expect_output(
        s, "record! job 1: task 3#4 backed by #5\n"); /* there is no plan: nothing to be sent */
    script_close(s);

    s = stage_ps_job(&ps_job_spec_backups);
    collect(s, 2, 1, 3);
    script_skip(s);
    uint64_t incarnation = task_view(s, 3).incarnation;
    assert_int_not_equal(incarnation, 4);
    sends_backed(s, 2, incarnation, 1, 5);
    expect_output(s, "record! job 1: task 3#7 backed by #5\n"
                     "tell job 1 task 3 on link 2: members g1\n");
    task_hello(s, 2, 1, 3, 0);
    assert_int_equal(task_view(s, 3).backed.by, 5);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whose_copy_counts_is_recorded_and_reported),
        cmocka_unit_test(who_is_lost_goes_on_alone_no_more),
        cmocka_unit_test(of_who_went_on_alone_nothing_is_taken),
        cmocka_unit_test(a_copy_that_is_gone_is_not_recorded),
        cmocka_unit_test(a_server_may_report_its_copy_before_its_hello),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
