/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of placed jobs: which get those that are freed, and which free slots that is
 * of no use to it while others lack it. */
#include "tests/unit/coordinator_core/script.h"

static const struct core_job_spec pair = {.tasks = 2, .tasks_min = 2, .max_restarts = 3};

/* Two workers for each job, with one slot each: job 1 on "a" and "b", job 2 on "c" and "d" .. Links
 * are numbered alike. */
static struct script *pairs_open(const struct core_job_spec *specs, uint64_t jobs)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct script *s = script_open(NULL);
    for (uint64_t job = 1; job <= jobs; job++) {
        s->gpus = specs[job - 1].gpus;
        join(s, 2 * job - 1, names[2 * job - 2], 1);
        join(s, 2 * job, names[2 * job - 1], 1);
        submit_spec(s, 0, &specs[job - 1]);
    }
    script_skip(s);
    return s;
}

/* Its tasks are planned and may take steps. */
static void runs(struct script *s, uint64_t job)
{
    for (uint32_t slot = 0; slot < 2; slot++) {
        task_hello(s, 2 * job - 1 + slot, job, slot, 0);
    }
    for (uint32_t slot = 0; slot < 2; slot++) {
        arrived(s, 2 * job - 1 + slot, job, 1, 4, 0);
    }
    script_skip(s);
}

/* For longer than a lease the workers of all even links are silent but these. */
static void lose_others(struct script *s, const uint64_t *even, size_t count)
{
    for (int i = 0; i < 11; i++) {
        wait_us(s, SECOND);
        for (uint64_t link = 1; link <= 5; link += 2) {
            heartbeat(s, link);
        }
        for (size_t k = 0; k < count; k++) {
            heartbeat(s, even[k]);
        }
    }
    script_skip(s);
}

static void leaves(struct script *s, uint64_t link, uint64_t job, uint32_t slot)
{
    gone(s, link, job, slot, 0, 15, "");
    collected(s, link, job, slot);
}

static void who_begins_gives_to_who_has_a_state(void **state)
{
    (void)state;
    struct script *s = pairs_open((struct core_job_spec[]){pair, pair}, 2);
    task_hello(s, 1, 1, 0, 0);
    runs(s, 2);
    lose_others(s, (const uint64_t[]){4}, 1);
    assert_string_equal(script_job_text(s, 1),
        "task 1 was lost with worker b, which was silent for 10 s; waits for 1 more task (0 of 3 "
        "slots are free) for 1 s of at most 60 s");
    lose_others(s, NULL, 0);
    assert_string_equal(script_job_text(s, 1),
        "task 1 was lost with worker b, which was silent for 10 s; waits for 2 more tasks (0 of 2 "
        "slots are free) for 1 s of at most 60 s");
    /* It is filled first, and gets nothing that a job with a state needs. */
    leaves(s, 1, 1, 0);
    expect_output(s, "record job 1: task 0 lost 0/15\n"
                     "stop task 1/0#1 on link 1\n"
                     "record! job 2: task 1#3 on a\n"
                     "start again job 2 on link 1\n");
    frozen(s, 3, 2, 0, 3, 1);
    task_hello(s, 1, 2, 1, 0);
    joins(s, 1, 2, 1, 1);
    assert_int_equal(job_view(s, 2).generation.number, 2);
    script_skip(s);
    join(s, 7, "g", 2);
    expect_output(s, "welcome link 7: worker 5\n"
                     "record! job 1: task 0#3 on g\n"
                     "record! job 1: task 1#4 on g\n"
                     "start again job 1 on link 7\n");
    script_close(s);
}

static void of_two_that_begin_the_later_gives(void **state)
{
    (void)state;
    struct script *s = pairs_open((struct core_job_spec[]){pair, pair}, 2);
    task_hello(s, 1, 1, 0, 0);
    task_hello(s, 3, 2, 0, 0);
    lose_others(s, (const uint64_t[]){2}, 1);
    lose_others(s, NULL, 0);
    leaves(s, 3, 2, 0);
    expect_output(s, "record job 2: task 0 lost 0/15\n"
                     "stop task 2/0#1 on link 3\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    script_close(s);
}

/* One that has not joined may be about to do its work without that. */
static void only_who_waits_for_others_gives(void **state)
{
    (void)state;
    struct script *s = pairs_open((struct core_job_spec[]){pair, pair}, 2);
    runs(s, 1);
    task_hello(s, 4, 2, 1, 0);
    lose_others(s, NULL, 0);
    assert_string_equal(script_job_text(s, 2),
        "task 1 was lost with worker d, which was silent for 10 s; waits for 1 more task (0 of 2 "
        "slots are free) for 1 s of at most 60 s");
    expect_output(s, "");
    task_hello(s, 3, 2, 0, 0);
    expect_output(s, "tell task 2/0#1 on link 3: reset\n"
                     "stop task 2/0#1 on link 3\n");
    script_close(s);
}

static void no_more_is_given_than_is_lacked(void **state)
{
    (void)state;
    struct core_job_spec five = pair;
    five.tasks = 5;
    five.tasks_min = 5;
    struct script *s = script_open(NULL);
    join(s, 1, "a", 1);
    join(s, 2, "b", 1);
    submit_spec(s, 0, &pair);
    runs(s, 1);
    join(s, 3, "c", 4);
    join(s, 4, "d", 1);
    submit_spec(s, 0, &five);
    for (uint32_t slot = 0; slot < 4; slot++) {
        task_hello(s, 3, 2, slot, 0);
    }
    lose_others(s, (const uint64_t[]){2}, 1);
    lose_others(s, NULL, 0);
    assert_string_equal(script_job_text(s, 2),
        "task 4 was lost with worker d, which was silent for 10 s; waits for 2 more tasks (0 of 5 "
        "slots are free) for 1 s of at most 60 s");
    frozen(s, 1, 1, 0, 3, 1);
    heartbeat(s, 3);
    expect_output(s, "");
    leaves(s, 3, 2, 3);
    expect_output(s, "record job 2: task 3 lost 0/15\n"
                     "stop task 2/3#4 on link 3\n"
                     "record! job 1: task 1#3 on c\n"
                     "start again job 1 on link 3\n");
    script_close(s);
}

static void what_the_other_cannot_use_is_kept(void **state)
{
    (void)state;
    struct core_job_spec with_gpus = pair;
    with_gpus.gpus = 1;
    struct script *s = pairs_open((struct core_job_spec[]){with_gpus, pair, pair}, 3);
    runs(s, 1);
    task_hello(s, 3, 2, 0, 0);
    task_hello(s, 5, 3, 0, 0);
    lose_others(s, (const uint64_t[]){4, 6}, 2);
    frozen(s, 1, 1, 0, 3, 1);
    lose_others(s, (const uint64_t[]){4}, 1);
    assert_string_equal(script_job_text(s, 3),
        "task 1 was lost with worker f, which was silent for 10 s; waits for 1 more task (0 of 4 "
        "slots are free) for 1 s of at most 60 s");
    lose_others(s, NULL, 0);
    assert_string_equal(script_job_text(s, 3),
        "task 1 was lost with worker f, which was silent for 10 s; waits for 2 more tasks (0 of 3 "
        "slots are free) for 1 s of at most 60 s");
    leaves(s, 5, 3, 0);
    expect_output(s, "record job 3: task 0 lost 0/15\n"
                     "stop task 3/0#1 on link 5\n"
                     "record! job 2: task 1#3 on e\n"
                     "start again job 2 on link 5\n");
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_begins_gives_to_who_has_a_state),
        cmocka_unit_test(of_two_that_begin_the_later_gives),
        cmocka_unit_test(only_who_waits_for_others_gives),
        cmocka_unit_test(no_more_is_given_than_is_lacked),
        cmocka_unit_test(what_the_other_cannot_use_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
