/* SPDX-License-Identifier: Apache-2.0
 * The newest position whose states were found equal: what raises it, what it holds back, how it is
 * recorded and what is left of it after a plan or a start of the coordinator. */
#include <string.h>

#include "tests/unit/coordinator_core/script.h"

#define A UINT64_C(0xaa)
#define B UINT64_C(0xbb)

static const struct verified of_4 = {.position = 4, .digest = A};

static void assert_verified(struct script *s, uint64_t position, uint64_t digest)
{
    assert_int_equal(job_view(s, 1).verified.position, position);
    assert_true(job_view(s, 1).verified.digest == digest);
}

/* All have applied four steps. */
static struct script *stage_applied(void)
{
    struct script *s = stage_released(8);
    arrived(s, 1, 1, 1, 8, 4);
    arrived(s, 2, 1, 1, 8, 4);
    script_skip(s);
    return s;
}

static void an_arrival_reports_it(void **state)
{
    (void)state;
    struct script *s = stage_released(8);
    assert_verified(s, 0, 0);
    compared(s, 1, 1, 1, 8, 2, (struct verified){.position = 0, .digest = B});
    expect_output(s, "record job 1: verified at 0 (bb)\n");
    assert_verified(s, 0, B);
    compared(s, 1, 1, 1, 8, 5, of_4);
    assert_verified(s, 4, A);
    compared(s, 2, 1, 1, 8, 3, (struct verified){.position = 2, .digest = B}); /* was on its way */
    assert_verified(s, 4, A);
    arrived(s, 2, 1, 1, 8, 4);
    assert_verified(s, 4, A);
    script_close(s);
}

static void pass(struct script *s, uint32_t seconds)
{
    for (uint32_t i = 0; i < seconds; i++) {
        heartbeat(s, 1);
        heartbeat(s, 2);
        wait_us(s, SECOND);
    }
}

static void it_is_recorded_once_a_minute(void **state)
{
    (void)state;
    struct script *s = stage_released(8);
    compared(s, 1, 1, 1, 8, 5, of_4);
    expect_output(s, "record job 1: verified at 4 (aa)\n");
    pass(s, 59);
    script_skip(s);
    compared(s, 1, 1, 1, 8, 6, (struct verified){.position = 5, .digest = B});
    expect_output(s, "");
    pass(s, 1);
    script_skip(s);
    compared(s, 1, 1, 1, 8, 6, (struct verified){.position = 5, .digest = B});
    expect_output(s, "");
    compared(s, 1, 1, 1, 8, 7, (struct verified){.position = 6, .digest = A});
    expect_output(s, "record job 1: verified at 6 (aa)\n");
    script_close(s);
}

static void what_no_task_can_have_compared_is_refused(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    compared(s, 1, 1, 1, 9, 4, (struct verified){.position = 9, .digest = A});
    assert_string_equal(script_job_text(s, 1),
        "worker a says that its tasks applied 4 steps, are ready for 9 and want 0, with their "
        "states compared after 9, but only 8 were released");
    assert_int_equal(job_view(s, 1).state, JOB_ENDING);
    script_close(s);
}

static void what_was_before_the_generation_is_ignored(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 2, .tasks_min = 1, .max_restarts = 3};
    struct script *s = stage_running(&spec, 2, 8);
    compared(s, 1, 1, 1, 8, 5, of_4);
    compared(s, 2, 1, 1, 8, 6, of_4);
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 6, 1);
    assert_int_equal(job_view(s, 1).generation.number, 2);
    assert_int_equal(job_view(s, 1).resume, 6);
    assert_verified(s, 4, A); /* it is on the line */
    arrived_at(s, 1, 1, 1, 8, 6, (struct cursor){.stream = 1});
    compared(s, 1, 1, 1, 8, 6, (struct verified){.position = 5, .digest = B});
    assert_verified(s, 4, A);
    compared(s, 1, 1, 1, 8, 7, (struct verified){.position = 6, .digest = B});
    assert_verified(s, 6, B);
    script_close(s);
}

static void a_part_waits_for_it(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    part_of(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "");
    compared(s, 2, 1, 1, 8, 5, (struct verified){.position = 3, .digest = B});
    expect_output(s, "record job 1: verified at 3 (bb)\n");
    compared(s, 2, 1, 1, 8, 5, of_4);
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n");
    assert_true(job_view(s, 1).checkpoint.digest == A);
    /* Not all have applied it; not compared; a published checkpoint shows it, too. */
    part_of(s, 1, 1, 0, 6, "six", B);
    compared(s, 2, 1, 1, 8, 7, (struct verified){.position = 6, .digest = B});
    expect_output(s, "");
    arrived(s, 1, 1, 1, 8, 6);
    expect_output(s, "record! job 1: checkpoint at 6 in six\n"
                     "tell job 1: release g1 to 8\n");
    script_close(s);
}

/* A bit of the copy flipped before it was hashed: no later comparison shows that. */
static void a_part_that_is_not_what_was_compared_is_not_published(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    compared(s, 2, 1, 1, 8, 5, of_4);
    script_skip(s);
    part_of(s, 1, 1, 0, 4, "four", B);
    expect_output(s, "");
    compared(s, 2, 1, 1, 8, 7, (struct verified){.position = 6, .digest = A});
    expect_output(s, "");
    arrived(s, 1, 1, 1, 8, 6);
    part_agreed(s, 1, 1, 0, 6, "six", A); /* the next one takes its place */
    expect_output(s, "record! job 1: checkpoint at 6 in six\n"
                     "tell job 1: release g1 to 8\n");
    script_close(s);
}

/* Its position was compared, and only a later one has arrived; or the program changed variables
 * between steps, and these were compared there, too. The chief has seen both. */
static void a_part_whose_digest_was_compared_before_is_published(void **state)
{
    (void)state;
    const struct verified later[] = {{.position = 6, .digest = B}, {.position = 4, .digest = B}};
    for (size_t i = 0; i < 2; i++) {
        struct script *s = stage_applied();
        compared(s, 2, 1, 1, 8, 7, later[i]);
        script_skip(s);
        part_of(s, 1, 1, 0, 4, "four", A);
        expect_output(s, "");
        part_agreed(s, 1, 1, 0, 4, "four", A);
        expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                         "tell job 1: release g1 to 8\n");
        script_close(s);
    }
}

/* The only member left wrote it while there were others. */
static void a_part_of_before_is_not_published_alone(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 2, .tasks_min = 1, .max_restarts = 3};
    struct script *s = stage_running(&spec, 2, 8);
    compared(s, 1, 1, 1, 8, 6, (struct verified){.position = 5, .digest = B});
    gone(s, 2, 1, 1, 0, 9, "");
    frozen(s, 1, 1, 0, 6, 1);
    assert_int_equal(job_view(s, 1).resume, 6);
    assert_int_equal(job_view(s, 1).roster, 1);
    arrived(s, 1, 1, 1, 8, 6);
    script_skip(s);
    part_of(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "");
    part_agreed(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g2 to 8\n");
    script_close(s);
}

/* What the chief has seen is on its way. */
static void an_agreed_part_waits_for_the_arrival(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    part_agreed(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "");
    compared(s, 2, 1, 1, 8, 7, (struct verified){.position = 6, .digest = B});
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n"
                     "record job 1: verified at 6 (bb)\n");
    script_close(s);
}

static void a_part_without_a_digest_does_not(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    part(s, 1, 1, 0, 4, "four");
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n");
    assert_verified(s, 0, 0);
    script_close(s);
}

/* It has no other task to compare with. */
static void one_task_is_equal_to_itself(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 1, .tasks_min = 1};
    struct script *s = stage_running(&spec, 1, 8);
    arrived(s, 1, 1, 1, 8, 4);
    script_skip(s);
    part_of(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n"
                     "record job 1: verified at 4 (aa)\n");
    assert_verified(s, 4, A);
    arrived(s, 1, 1, 1, 8, 6);
    part_of(s, 1, 1, 0, 6, "six", B);
    script_skip(s);
    finished_as(s, 1, 1, 0, 6, B);
    expect_output(s, "record! job 1: done at 6\n"
                     "tell job 1: bye g1\n");
    assert_verified(s, 6, B);
    script_close(s);
}

/* Two tasks of a worker arrive as one. */
static void one_worker_reports_it_for_its_tasks(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 2);
    submit(s, 0, 2, 0);
    task_hello(s, 1, 1, 0, 0);
    task_hello(s, 1, 1, 1, 0);
    arrived(s, 1, 1, 2, 8, 0);
    part_of(s, 1, 1, 0, 4, "four", A);
    script_skip(s);
    compared(s, 1, 1, 2, 8, 3, of_4); /* one of them is ahead */
    expect_output(s, "record job 1: verified at 4 (aa)\n");
    assert_verified(s, 4, A);
    compared(s, 1, 1, 2, 8, 4, of_4);
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n");
    script_close(s);
}

static void equal_ends_are_verified(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    finished_as(s, 2, 1, 1, 4, A);
    expect_output(s, "");
    assert_verified(s, 0, 0);
    finished_as(s, 1, 1, 0, 4, A);
    expect_output(s, "record job 1: verified at 4 (aa)\n"
                     "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    assert_verified(s, 4, A);
    script_close(s);
}

static void ends_that_are_not_known_are_not(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    finished_as(s, 2, 1, 1, 4, A);
    finished_as(s, 1, 1, 0, 4, 0);
    expect_output(s, "record! job 1: done at 4\n"
                     "tell job 1: bye g1\n");
    assert_verified(s, 0, 0);
    script_close(s);
}

/* It finishes when that is published. */
static void the_chief_waits_for_its_last_checkpoint(void **state)
{
    (void)state;
    const uint64_t theirs[] = {A, 0};
    for (size_t i = 0; i < 2; i++) {
        struct script *s = stage_applied();
        part_of(s, 1, 1, 0, 4, "four", A);
        expect_output(s, "");
        finished_as(s, 2, 1, 1, 4, theirs[i]);
        assert_int_equal(job_view(s, 1).has_checkpoint, 1);
        assert_true(job_view(s, 1).checkpoint.digest == A);
        assert_verified(s, 4, A);
        script_skip(s);
        finished_as(s, 1, 1, 0, 4, A);
        expect_output(s, "record! job 1: done at 4\n"
                         "tell job 1: bye g1\n");
        script_close(s);
    }
}

/* The part may be the last to come; or be of an earlier step, which arrivals report. */
static void the_last_checkpoint_may_come_last(void **state)
{
    (void)state;
    struct script *s = stage_applied();
    finished_as(s, 2, 1, 1, 4, A);
    part_of(s, 1, 1, 0, 2, "two", B);
    expect_output(s, "");
    compared(s, 1, 1, 1, 8, 4, (struct verified){.position = 2, .digest = B});
    expect_output(s, "record! job 1: checkpoint at 2 in two\n"
                     "tell job 1: release g1 to 8\n"
                     "record job 1: verified at 2 (bb)\n");
    part_of(s, 1, 1, 0, 4, "four", A);
    expect_output(s, "record! job 1: checkpoint at 4 in four\n"
                     "tell job 1: release g1 to 8\n");
    script_close(s);
}

static void a_stop_is_verified_by_those_who_stop_there(void **state)
{
    (void)state;
    const struct core_job_spec spec = {.tasks = 2, .tasks_min = 2, .max_restarts = 1};
    for (int first = 0; first < 2; first++) {
        struct script *s = stage_running(&spec, 2, 4);
        relay_up(
            s, 2, 1, 1, &(struct task_up){.type = TASK_UP_PREEMPT, .preempt = {.stops = true}});
        arrived(s, 1, 1, 1, 6, 4);
        arrived(s, 2, 1, 1, 6, 4);
        arrived(s, 1, 1, 1, 6, 5);
        arrived(s, 2, 1, 1, 6, 5);
        if (first != 0) {
            part_of(s, 1, 1, 0, 5, "five", A);
        }
        halted_as(s, 1, 1, 0, 5, A);
        script_skip(s);
        halted_as(s, 2, 1, 1, 5, A);
        if (first == 0) {
            expect_output(s, "record job 1: verified at 5 (aa)\n");
            part_of(s, 1, 1, 0, 5, "five", A);
        }
        assert_int_equal(job_view(s, 1).checkpoint.position, 5);
        assert_verified(s, 5, A);
        assert_non_null(strstr(s->transcript, "tell job 1: bye g1\n"));
        script_close(s);
    }
}

/* Two tasks on a and b in generation 2 from step 10, of which 20 were released. */
static struct script *stage_restored(struct verified verified, uint64_t saved)
{
    static const struct core_restore_task both[] = {
        {.slot = 0, .incarnation = 3, .rank = 0, .worker = "a"},
        {.slot = 1, .incarnation = 2, .rank = 1, .worker = "b"},
    };
    struct script *s = script_open(NULL);
    struct core_restore_job restore = {.job = {1},
        .spec = {.tasks = 2, .tasks_min = 2, .max_restarts = 5},
        .started = true,
        .incarnation_max = 3,
        .generation = {.number = 2, .nonce = 77},
        .roster = 2,
        .resume = 10,
        .released = 20,
        .cursor = {.stream = 1},
        .has_checkpoint = saved > 0,
        .checkpoint = {.position = saved, .digest = B, .path = "saved"},
        .verified = verified,
        .tasks = both,
        .task_count = 2};
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB, .restore = restore});
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = 1}});
    for (uint32_t i = 0; i < 2; i++) {
        const struct task_ref here = {.job = {1}, .slot = i, .incarnation = 3 - i};
        hello(s, i + 1, i == 0 ? "a" : "b", 5 + i, 1, &here, 1);
        task_hello(s, i + 1, 1, i, 2);
    }
    script_skip(s);
    return s;
}

static void a_start_of_the_coordinator_knows_it(void **state)
{
    (void)state;
    struct script *s = stage_restored((struct verified){.position = 15, .digest = A}, 10);
    assert_verified(s, 15, A);
    /* All is sent again. */
    part_of(s, 1, 1, 0, 18, "eighteen", A);
    arrived(s, 1, 1, 1, 22, 20);
    arrived(s, 2, 1, 1, 22, 20);
    script_skip(s);
    compared(s, 2, 1, 1, 22, 20, (struct verified){.position = 18, .digest = A});
    expect_output(s, "record! job 1: checkpoint at 18 in eighteen\n"
                     "tell job 1: release g2 to 22\n"
                     "record job 1: verified at 18 (aa)\n");
    script_close(s);
    s = stage_restored((struct verified){0}, 10);
    assert_verified(s, 10, B); /* of the checkpoint */
    script_close(s);
    s = stage_restored((struct verified){.position = 21, .digest = A}, 0);
    assert_verified(s, 0, 0); /* of more than was released */
    script_close(s);
}

/* Reports are sent again, also one that was sent before. */
static void all_that_finished_is_compared_after_a_start(void **state)
{
    (void)state;
    struct script *s = stage_restored((struct verified){0}, 0);
    finished_as(s, 1, 1, 0, 20, A);
    finished_as(s, 2, 1, 1, 20, A);
    expect_output(s, "record job 1: verified at 20 (aa)\n"
                     "record! job 1: done at 20\n"
                     "tell job 1: bye g2\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arrival_reports_it),
        cmocka_unit_test(it_is_recorded_once_a_minute),
        cmocka_unit_test(what_no_task_can_have_compared_is_refused),
        cmocka_unit_test(what_was_before_the_generation_is_ignored),
        cmocka_unit_test(a_part_waits_for_it),
        cmocka_unit_test(a_part_that_is_not_what_was_compared_is_not_published),
        cmocka_unit_test(a_part_whose_digest_was_compared_before_is_published),
        cmocka_unit_test(a_part_of_before_is_not_published_alone),
        cmocka_unit_test(an_agreed_part_waits_for_the_arrival),
        cmocka_unit_test(a_part_without_a_digest_does_not),
        cmocka_unit_test(one_task_is_equal_to_itself),
        cmocka_unit_test(one_worker_reports_it_for_its_tasks),
        cmocka_unit_test(equal_ends_are_verified),
        cmocka_unit_test(ends_that_are_not_known_are_not),
        cmocka_unit_test(the_chief_waits_for_its_last_checkpoint),
        cmocka_unit_test(the_last_checkpoint_may_come_last),
        cmocka_unit_test(a_stop_is_verified_by_those_who_stop_there),
        cmocka_unit_test(a_start_of_the_coordinator_knows_it),
        cmocka_unit_test(all_that_finished_is_compared_after_a_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
