/* SPDX-License-Identifier: Apache-2.0
 * A start of the coordinator from its store. */
#include "tests/unit/coordinator_core/script.h"

static void restore(struct script *s, uint64_t job, uint32_t tasks, int32_t priority, bool ran)
{
    step(s, &(struct core_event){.type = CORE_EVENT_RESTORE_JOB,
                .restore = {.job = {job},
                    .spec = {.tasks = tasks, .tasks_min = tasks, .priority = priority},
                    .started = ran,
                    .incarnation_max = ran ? tasks : 0}});
}

static void restore_done(struct script *s, uint64_t job_max)
{
    step(s, &(struct core_event){
                .type = CORE_EVENT_RESTORE_DONE, .restore_done = {.job_max = job_max}});
}

static void the_queue_comes_back(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    restore(s, 3, 1, 0, false);
    restore(s, 7, 1, 4, false);
    restore_done(s, 12);
    says(s, "");
    assert_int_equal(job_view(s, 3).queued_before, 1);
    join(s, 1, "a", 2);
    says(s, "welcome link 1: worker 1\n"
            "record! job 7: started, incarnations to 1\n"
            "start job 7\n"
            "record! job 3: started, incarnations to 1\n"
            "start job 3\n");
    /* No id is used twice, also of jobs that ended before the restart. */
    submit(s, 1, 1, 0);
    says(s, "record! job 13: submitted 1 tasks\n"
            "answer 1: job 13, 0 before\n");
    script_close(s);
}

static void a_job_that_ran_has_failed(void **state)
{
    (void)state;
    struct script *s = script_open(NULL);
    restore(s, 3, 2, 0, true);
    restore_done(s, 3);
    says(s, "record! job 3: failed UNAVAILABLE exit 1: the coordinator was restarted while it ran\n"
            "ended job 3\n");
    struct task_ref left = {.job = {3}, .slot = 1, .incarnation = 2};
    hello(s, 1, "a", 11, 1, &left, 1);
    says(s, "welcome link 1: worker 1\n"
            "stop task 3/1#2 on link 1\n");
    cancel(s, 4, 3);
    says(s, "answer 4: FAILED_PRECONDITION: job 3 has ended already\n");
    script_close(s);
}

static void what_does_not_fit_any_more_fails(void **state)
{
    (void)state;
    struct script *s =
        script_open(&(struct core_limits){.workers_max = 1, .jobs_max = 1, .tasks_max = 4});
    restore(s, 1, 5, 0, false);
    restore(s, 2, 4, 0, false);
    restore(s, 3, 1, 0, false);
    restore_done(s, 3);
    says(s, "record! job 1: failed UNAVAILABLE exit 1: the coordinator was restarted with limits "
            "that do not hold this job\n"
            "ended job 1\n"
            "record! job 3: failed UNAVAILABLE exit 1: the coordinator was restarted with limits "
            "that do not hold this job\n"
            "ended job 3\n");
    assert_int_equal(job_view(s, 2).state, JOB_QUEUED);
    script_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_queue_comes_back),
        cmocka_unit_test(a_job_that_ran_has_failed),
        cmocka_unit_test(what_does_not_fit_any_more_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
