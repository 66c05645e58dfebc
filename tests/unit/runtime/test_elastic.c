/* SPDX-License-Identifier: Apache-2.0
 * A job whose tasks die, are frozen at the worst moments, and come later: its result is that of a
 * job to which nothing happens. The tasks are this test, run again. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_program.h"
#include "tests/lib/test.h"

#define GROWS_AT_MOST 8192 /* bytes, over some 80 generations: the least of an epoch */

/* Runs a job that dies once the checkpoint of this position is published, after the step that
 * follows; `path` gets its manifest's. */
static void leave_checkpoint(uint64_t position, char path[TEST_PATH_BYTES])
{
    char every[64];
    char fault[64];
    struct stage_end end;
    snprintf(every, sizeof every, "CADRE_CHECKPOINT_EVERY=%" PRIu64, position);
    snprintf(fault, sizeof fault, "DIE_WAITING=0:%" PRIu64, position + 1);
    const char *const environment[] = {every, fault, NULL};
    struct stage_job job = elastic_job(1, 2, environment);
    stage_run(&job, &end);
    assert_false(end.done);
    assert_int_equal(end.published, position);
    snprintf(path, TEST_PATH_BYTES, "%s/checkpoint-%" PRIu64 ".json", end.folder, position);
    stage_end_free(&end);
}

static void any_number_of_tasks_is_the_same(void **state)
{
    (void)state;
    static const uint32_t tasks[] = {2, 3, 5};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        struct stage_end end;
        struct stage_job job = elastic_job(tasks[i], i == 0 ? 2 : 1, NULL);
        elastic_check(&job, UINT32_MAX, &end);
        elastic_check_consumption(&end);
        assert_int_equal(end.generations, 1);
        stage_end_free(&end);
    }
}

/* Three levels of ranks: 0, then 1 to 4, then 5 and 6. */
static void a_roster_in_parts_is_passed_on(void **state)
{
    (void)state;
    struct stage_end end;
    struct stage_job job = elastic_job(7, 1, NULL);
    job.spreads = true;
    elastic_check(&job, UINT32_MAX, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.generations, 1);
    stage_end_free(&end);
}

/* Task 3 dies in a step; then one that passes the next roster on, or the last rank, dies before the
 * others have it. */
static void a_loss_while_a_roster_is_passed_on_is_survived(void **state)
{
    (void)state;
    static const uint32_t lost[] = {0, 1, 6};
    for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {"DIE_BEFORE=3:7", NULL};
        struct stage_job job = elastic_job(7, 1, environment);
        job.spreads = true;
        job.kills_at_generation = 2;
        job.kills = lost[i];
        stage_run(&job, &end);
        if (!end.done) {
            elastic_show(&end);
        }
        assert_true(end.done);
        for (uint32_t task = 0; task < 7; task++) {
            char line[256];
            elastic_outcome(end.printed[task], line);
            assert_true(task == 3 || task == lost[i] || strcmp(line, elastic_undisturbed) == 0);
        }
        elastic_check_consumption(&end);
        assert_int_equal(end.generations, 3);
        assert_int_equal(end.roster, 5);
        stage_end_free(&end);
    }
}

/* One of three dies; the two others end the job. */
static void check_loss(const char *fault, uint32_t dead)
{
    struct stage_end end;
    const char *const environment[] = {fault, NULL};
    struct stage_job job = elastic_job(3, 1, environment);
    elastic_check(&job, dead, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.generations, 2);
    assert_int_equal(end.roster, 2);
    stage_end_free(&end);
}

static void a_loss_in_a_step_is_survived(void **state)
{
    (void)state;
    check_loss("DIE_BEFORE=1:7", 1);
    check_loss("DIE_BETWEEN=2:7", 2);
    check_loss("DIE_AFTER=0:7", 0);
    check_loss("DIE_BEFORE=2:0", 2);
}

static void a_loss_in_an_evaluation_is_survived(void **state)
{
    (void)state;
    check_loss("DIE_BEFORE=0:15", 0);
    check_loss("DIE_BEFORE=1:13", 1);
    check_loss("DIE_BEFORE=1:18", 1); /* the first step after it */
}

static void a_loss_between_steps_is_survived(void **state)
{
    (void)state;
    check_loss("DIE_OUTSIDE=0:9", 0);
    check_loss("DIE_OUTSIDE=2:13", 2);
    check_loss("DIE_CREATE=1:0", 1);
    check_loss("DIE_CREATE=0:0", 0);
    check_loss("DIE_FINISH=0:0", 0);
    check_loss("DIE_FINISH=2:0", 2);
}

/* One that does not die, but is frozen where others have gone on. */
static void check_miss(const char *fault, uint32_t tasks, uint32_t replicas)
{
    struct stage_end end;
    const char *const environment[] = {fault, NULL};
    struct stage_job job = elastic_job(tasks, replicas, environment);
    elastic_check(&job, UINT32_MAX, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.generations, 2);
    for (uint32_t i = 0; i < tasks; i++) {
        assert_null(strstr(end.printed[i], "counted"));
        assert_null(strstr(end.printed[i], "once more")); /* what was done is not done again */
    }
    stage_end_free(&end);
}

static void a_step_that_others_applied_is_taken_over(void **state)
{
    (void)state;
    check_miss("MISS_APPLY=1:7", 2, 1);
    check_miss("MISS_APPLY=0:12", 3, 2);
    check_miss("MISS_APPLY=2:0", 3, 1);
}

static void a_result_that_others_got_is_taken_over(void **state)
{
    (void)state;
    check_miss("MISS_OUTSIDE=1:7", 2, 1);
    check_miss("MISS_OUTSIDE=0:13", 3, 2);
}

static void the_last_one_goes_on_alone(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"DIE_BETWEEN=0:20", NULL};
    struct stage_job job = elastic_job(2, 1, environment);
    elastic_check(&job, 0, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.roster, 1);
    stage_end_free(&end);
}

static void losses_upon_losses_are_survived(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"DIE_BEFORE=1:7", "DIE_BETWEEN=3:7", NULL};
    struct stage_job job = elastic_job(5, 1, environment);
    job.kills_at_generation = 2; /* while it forms */
    job.kills = 4;
    stage_run(&job, &end);
    char line[256];
    elastic_outcome(end.printed[0], line);
    if (!end.done || strcmp(line, elastic_undisturbed) != 0) {
        elastic_show(&end);
    }
    assert_true(end.done);
    assert_string_equal(line, elastic_undisturbed);
    elastic_outcome(end.printed[2], line);
    assert_string_equal(line, elastic_undisturbed);
    elastic_check_consumption(&end);
    assert_int_equal(end.roster, 2);
    assert_true(end.regroup_us < 5000000);
    stage_end_free(&end);
}

/* Each generation gives what it took, and other ranks to all. */
static void many_generations_leave_nothing(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"SHAKE=6", NULL};
    struct stage_job job = elastic_job(2, 2, environment);
    job.rotates = true;
    elastic_check(&job, UINT32_MAX, &end);
    elastic_check_consumption(&end);
    assert_in_range(end.generations, 6 * ELASTIC_EPOCHS * ELASTIC_STEPS, UINT64_MAX);
    for (uint32_t i = 0; i < 2; i++) {
        long long grown[3] = {-1, -1, -1};
        const char *printed = strstr(end.printed[i], "grown by");
        assert_non_null(printed);
        sscanf(printed, "grown by %lld descriptors, %lld threads, %lld bytes", &grown[0], &grown[1],
            &grown[2]);
        assert_int_equal(grown[0], 0);
        assert_in_range(grown[1] + 1, 0, 2); /* the watcher of a mesh that is over has ended */
        assert_in_range(grown[2] + GROWS_AT_MOST, 0, 2 * GROWS_AT_MOST);
    }
    stage_end_free(&end);
}

static void a_replacement_joins(void **state)
{
    (void)state;
    static const char *const faults[] = {"DIE_BEFORE=1:3", "DIE_BETWEEN=0:7", "DIE_BEFORE=1:15"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {faults[i], NULL};
        struct stage_job job = elastic_job(2, 2, environment);
        job.replaces = true;
        job.waits_at = 25;
        elastic_check(&job, i == 1 ? 0 : 1, &end);
        elastic_check_consumption(&end);
        assert_int_equal(end.started, 3);
        assert_int_equal(end.generations, 3);
        assert_int_equal(end.roster, 2);
        stage_end_free(&end);
    }
}

static void a_job_grows(void **state)
{
    (void)state;
    struct stage_end end;
    struct stage_job job = elastic_job(1, 1, NULL);
    job.grows = 2;
    job.grows_at = 4;
    job.waits_at = 25;
    elastic_check(&job, UINT32_MAX, &end);
    elastic_check_consumption(&end);
    assert_int_equal(end.started, 3);
    assert_int_equal(end.roster, 3);
    stage_end_free(&end);
}

/* While a task adopts a step that it was frozen in, another one joins: it is given the outputs of
 * that step, too, and leaves them alone. */
static void a_job_grows_where_a_step_is_adopted(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        uint32_t tasks;
        uint32_t replicas;
    } cases[] = {
        {"MISS_ALIGNED=1:7", 2, 1}, {"MISS_ALIGNED=0:7", 2, 2}, {"MISS_ALIGNED=2:7", 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {cases[i].fault, "NOTHING_BETWEEN=1", NULL};
        struct stage_job job = elastic_job(cases[i].tasks, cases[i].replicas, environment);
        job.grows = 1;
        job.grows_at = 4;
        job.joins_behind = 7;
        elastic_check(&job, UINT32_MAX, &end);
        elastic_check_consumption(&end);
        assert_int_equal(end.generations, 2);
        assert_int_equal(end.roster, cases[i].tasks + 1);
        for (uint32_t attempt = 0; attempt < end.started; attempt++) {
            assert_null(
                strstr(end.printed[attempt], "once more 7")); /* the next one is: it was begun */
        }
        stage_end_free(&end);
    }
}

/* A job of three that is stopped by its last task's death leaves a checkpoint; jobs of other sizes
 * go on from it, in the middle of an epoch and of an evaluation. */
static void a_checkpoint_is_gone_on_from(void **state)
{
    (void)state;
    static const uint64_t positions[] = {7, 13, 15, 18, 30};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        leave_checkpoint(positions[i], path);
        struct stage_job job = elastic_job((uint32_t)(i % 3) + 1, 1, NULL);
        job.resume = positions[i];
        job.restore = path;
        elastic_check(&job, UINT32_MAX, &end);
        stage_end_free(&end);
    }
}

/* A task is lost, or frozen, while variables begin with the checkpoint's values: the others go on
 * with them, with another first task. */
static void a_loss_while_variables_are_restored_is_survived(void **state)
{
    (void)state;
    static const struct {
        const char *fault;
        uint32_t dead;
    } cases[] = {{"DIE_CREATE=0:0", 0}, {"DIE_CREATE=2:0", 2}, {"MISS_CREATE=1:0", UINT32_MAX},
        {"MISS_CREATE=0:0", UINT32_MAX}};
    char path[TEST_PATH_BYTES];
    leave_checkpoint(7, path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {cases[i].fault, NULL};
        struct stage_job job = elastic_job(3, 1, environment);
        job.resume = 7;
        job.restore = path;
        elastic_check(&job, cases[i].dead, &end);
        assert_int_equal(end.generations, 2);
        stage_end_free(&end);
    }
}

/* In the middle of an epoch, by a program that divides it otherwise: the job fails, and the first
 * report of a task has the reason. Between epochs there is no harm in it. */
static void an_epoch_that_was_divided_otherwise_is_refused(void **state)
{
    (void)state;
    const char *const environment[] = {"OTHER_BATCHES=1", NULL};
    char path[TEST_PATH_BYTES];
    struct stage_end end;
    struct stage_job job = elastic_job(3, 1, environment);
    leave_checkpoint(7, path);
    job.resume = 7;
    job.restore = path;
    stage_run(&job, &end);
    assert_false(end.done);
    assert_non_null(strstr(end.text, "after 7 of the 13 steps of epoch 1 of dataset 'train', which "
                                     "has 26 steps in this program"));
    stage_end_free(&end);

    leave_checkpoint(ELASTIC_STEPS + ELASTIC_TEST_STEPS, path);
    job.resume = ELASTIC_STEPS + ELASTIC_TEST_STEPS;
    stage_run(&job, &end);
    if (!end.done) {
        elastic_show(&end);
    }
    assert_true(end.done);
    stage_end_free(&end);
}

static void a_sample_that_is_consumed_twice_shows(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"FEED_TWICE=1:0", NULL};
    struct stage_job job = elastic_job(3, 1, environment);
    stage_run(&job, &end);
    if (!end.done) {
        elastic_show(&end);
    }
    assert_true(end.done);
    size_t wrong = 0;
    for (size_t i = 0; i < end.consumption_count; i++) {
        const struct consumption *consumption = &end.consumptions[i].consumption;
        wrong += consumption->consumed[0] != consumption->expected[0] &&
                         consumption->consumed[1] != consumption->expected[1]
                     ? 1
                     : 0;
    }
    assert_int_equal(wrong, 1);
    stage_end_free(&end);
}

static void a_slow_task_is_named(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"SLOW=1:7", NULL};
    struct stage_job job = elastic_job(3, 1, environment);
    elastic_check(&job, UINT32_MAX, &end);
    assert_int_equal(end.generations, 1);
    assert_int_equal(end.stalls, 2);
    assert_int_equal(end.stall_slot, 1);
    stage_end_free(&end);
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return elastic_program();
    }
    elastic_self = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_tasks_is_the_same),
        cmocka_unit_test(a_roster_in_parts_is_passed_on),
        cmocka_unit_test(a_loss_while_a_roster_is_passed_on_is_survived),
        cmocka_unit_test(a_loss_in_a_step_is_survived),
        cmocka_unit_test(a_loss_in_an_evaluation_is_survived),
        cmocka_unit_test(a_loss_between_steps_is_survived),
        cmocka_unit_test(a_step_that_others_applied_is_taken_over),
        cmocka_unit_test(a_result_that_others_got_is_taken_over),
        cmocka_unit_test(the_last_one_goes_on_alone),
        cmocka_unit_test(losses_upon_losses_are_survived),
        cmocka_unit_test(many_generations_leave_nothing),
        cmocka_unit_test(a_replacement_joins),
        cmocka_unit_test(a_job_grows),
        cmocka_unit_test(a_job_grows_where_a_step_is_adopted),
        cmocka_unit_test(a_checkpoint_is_gone_on_from),
        cmocka_unit_test(a_loss_while_variables_are_restored_is_survived),
        cmocka_unit_test(an_epoch_that_was_divided_otherwise_is_refused),
        cmocka_unit_test(a_sample_that_is_consumed_twice_shows),
        cmocka_unit_test(a_slow_task_is_named),
    };
    return cmocka_run_group_tests(tests, elastic_learn, NULL);
}
