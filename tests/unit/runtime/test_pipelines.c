/* SPDX-License-Identifier: Apache-2.0
 * Tasks with pipelines of their own agree on each step; a record is consumed once, whatever joins.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipelines_jobs.h"

/* --- all of them, undisturbed --- */

static void files_are_shared_out(void **state)
{
    (void)state;
    static const char *const kinds[] = {"PIPELINE=interleave", "PIPELINE=flat", "PIPELINE=piled",
        "PIPELINE=generated", "PIPELINE=list"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint32_t tasks = 1; tasks <= 4; tasks += i == 0 ? 1 : 2) {
            struct stage_end end;
            const char *const environment[] = {kinds[i], pipelines_files, NULL};
            struct stage_job job = job_of(tasks, tasks == 2 ? 2 : 1, environment);
            check_exact(&job, UINT32_MAX, &end, kinds[i]);
            assert_int_equal(end.generations, 1);
            assert_true(end.streams[0].shares || strcmp(kinds[i], "PIPELINE=piled") == 0);
            stage_end_free(&end);
        }
    }
}

/* dataset_from_function/workers_differ, iteration_end: max over workers of ceil(elements / R). */
static void steps_exist_as_long_as_anybody_has_data(void **state)
{
    (void)state;
    const char *const environment[] = {"PIPELINE=own", NULL};
    for (uint32_t tasks = 1; tasks <= 4; tasks++) {
        struct stage_end end;
        uint32_t replicas = tasks == 3 ? 2 : 1;
        struct stage_job job = job_of(tasks, replicas, environment);
        struct counted counted = run(&job, UINT32_MAX, &end);
        uint64_t elements = (10 * tasks + 3) / 4; /* of the last task, which has most */
        uint64_t steps = (elements + replicas - 1) / replicas;
        assert_int_equal(counted.records, PIPELINES_EPOCHS * 10 * tasks * (tasks + 1) / 2);
        assert_int_equal(counted.position, PIPELINES_EPOCHS * steps);
        assert_int_equal(counted.most, PIPELINES_EPOCHS);
        assert_int_equal(end.consumptions[0].cursor.steps, steps);
        stage_end_free(&end);
    }
}

static void every_task_reads_all(void **state)
{
    (void)state;
    const char *const environment[] = {"PIPELINE=all", NULL};
    for (uint32_t tasks = 1; tasks <= 3; tasks++) {
        struct stage_end end;
        struct stage_job job = job_of(tasks, 1, environment);
        struct counted counted = run(&job, UINT32_MAX, &end);
        assert_int_equal(counted.records, PIPELINES_EPOCHS * tasks * PIPELINES_RECORDS / 3);
        assert_int_equal(counted.most, PIPELINES_EPOCHS * tasks);
        assert_false(end.streams[0].shares);
        stage_end_free(&end);
    }
}

/* --- losses --- */

static void a_loss_in_the_middle_of_files_is_survived(void **state)
{
    (void)state;
    for (uint64_t position = 0; position < 14; position++) {
        check_loss(
            "PIPELINE=interleave", losses[position % 4], (uint32_t)(position % 3), position, 3, 1);
    }
    for (uint64_t position = 1; position < 8; position += 2) {
        check_loss(
            "PIPELINE=flat", losses[position / 2], (uint32_t)(position / 2 % 2), position, 2, 2);
    }
}

/* Zipped and then distributed two datasets are one stream, of zip's length: each record of both is
 * consumed once, whichever task is lost and when; a job of another size goes on from a checkpoint.
 */
static void two_datasets_are_one_stream(void **state)
{
    (void)state;
    static const char *const kinds[] = {"PIPELINE=zip", "PIPELINE=zip_in_order"};
    for (uint64_t position = 1; position < 39; position += 3) {
        check_loss(kinds[position % 2], losses[position / 2 % 4], (uint32_t)(position % 3),
            position, 3, 1 + (uint32_t)(position % 2));
    }
    for (size_t i = 0; i < 2; i++) { /* a task that comes is led into the zip */
        struct stage_end end;
        const char *const environment[] = {kinds[i], pipelines_files, NULL};
        struct stage_job job = job_of(2, 1, environment);
        job.grows = 1;
        job.grows_at = 5;
        job.waits_at = 12;
        check_exact(&job, UINT32_MAX, &end, "growing");
        assert_int_equal(end.roster, 3);
        stage_end_free(&end);
    }
    for (size_t i = 0; i < 4; i++) {
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        const uint64_t position = i < 2 ? 7 : 20; /* in an epoch, and at the end of it */
        const char *const environment[] = {kinds[i % 2], pipelines_files, NULL};
        leave_checkpoint(kinds[i % 2], NULL, position, path);
        struct stage_job job = job_of(1 + (uint32_t)i % 3, 1, environment);
        job.resume = position;
        job.restore = path;
        check_exact(&job, UINT32_MAX, &end, "from a checkpoint");
        assert_int_equal(end.position, 40);
        stage_end_free(&end);
    }
}

static void losses_upon_losses_are_survived(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=interleave", pipelines_files, "DIE_BEFORE=1:3",
        "DIE_BETWEEN=3:5", "DIE_NEXT=4:4", NULL};
    struct stage_job job = job_of(5, 1, environment);
    stage_run(&job, &end);
    struct counted counted = {0};
    if (!end.done || !read_counted(end.printed[0], &counted)) {
        show(&end);
    }
    assert_true(end.done);
    assert_int_equal(end.roster, 2);
    assert_int_equal(counted.records, PIPELINES_RECORDS * PIPELINES_EPOCHS);
    assert_int_equal(counted.least, PIPELINES_EPOCHS);
    assert_int_equal(counted.most, PIPELINES_EPOCHS);
    stage_end_free(&end);
}

/* The others agreed on the step, or applied it, and one did not receive it. */
static void what_others_completed_is_taken_over(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        const char *fault;
        const char *call;
    } cases[] = {
        {"PIPELINE=interleave", "MISS_APPLY=1:3", "MISS_AGREE_CALL=1"},
        {"PIPELINE=interleave", "MISS_APPLY=0:6", "MISS_AGREE_CALL=1"},
        {"PIPELINE=interleave", "MISS_AGREE=1:3", "MISS_AGREE_CALL=2"},
        {"PIPELINE=interleave", "MISS_AGREE=0:0", "MISS_AGREE_CALL=2"},
        {"PIPELINE=own", "MISS_AGREE=1:3", "MISS_AGREE_CALL=1"},
        {"PIPELINE=own", "MISS_AGREE=2:8", "MISS_AGREE_CALL=1"}, /* the end of the epoch */
        {"PIPELINE=own", "MISS_APPLY=0:4", "MISS_AGREE_CALL=1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {
            cases[i].kind, cases[i].fault, cases[i].call, pipelines_files, NULL};
        struct stage_job job = job_of(3, i == 1 ? 2 : 1, environment);
        struct counted counted = run(&job, UINT32_MAX, &end);
        assert_int_equal(end.generations, 2);
        assert_int_equal(counted.most, PIPELINES_EPOCHS);
        assert_int_equal(counted.records,
            PIPELINES_EPOCHS *
                (strcmp(cases[i].kind, "PIPELINE=own") == 0 ? 60 : PIPELINES_RECORDS));
        stage_end_free(&end);
    }
}

/* One is frozen while the pipelines are compared: it distributes its own in another generation than
 * the others. */
static void a_loss_before_the_first_step_is_survived(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=interleave", pipelines_files, "MISS_COMPARE=1:0",
        "MISS_AGREE_CALL=1", "DIE_NEXT=0:0", NULL};
    struct stage_job job = job_of(3, 1, environment);
    check_exact(&job, 0, &end, "a loss before the first step");
    assert_int_equal(end.roster, 2);
    stage_end_free(&end);
}

/* No claim is made across them: what the lost one had is not read. The others go on. */
static void a_loss_of_a_pipeline_of_its_own_is_survived(void **state)
{
    (void)state;
    static const char *const kinds[] = {"PIPELINE=own", "PIPELINE=all"};
    for (uint32_t i = 0; i < 8; i++) {
        char what[64];
        struct stage_end end;
        snprintf(what, sizeof what, "%s=%u:%u", losses[i % 4], i % 3, i);
        const char *const environment[] = {kinds[i / 4], what, NULL};
        struct stage_job job = job_of(3, 1 + i % 2, environment);
        run(&job, i % 3, &end);
        assert_int_equal(end.generations, 2);
        stage_end_free(&end);
    }
}

/* --- joining --- */

static void a_replacement_reads_what_is_left(void **state)
{
    (void)state;
    for (uint64_t position = 1; position < 9; position++) {
        char what[64];
        struct stage_end end;
        uint32_t dead = (uint32_t)(position % 2);
        snprintf(what, sizeof what, "%s=%u:%" PRIu64, losses[position % 4], dead, position);
        const char *const environment[] = {
            position % 3 == 0 ? "PIPELINE=flat" : "PIPELINE=interleave", pipelines_files, what,
            NULL};
        struct stage_job job = job_of(2, 1 + (uint32_t)position % 2, environment);
        job.replaces = true;
        job.waits_at = position + 2;
        check_exact(&job, dead, &end, what);
        assert_int_equal(end.started, 3);
        assert_int_equal(end.roster, 2);
        stage_end_free(&end);
    }
}

static void a_job_grows_in_the_middle_of_files(void **state)
{
    (void)state;
    for (uint64_t position = 1; position < 12; position += 2) {
        struct stage_end end;
        const char *const environment[] = {
            "PIPELINE=interleave", pipelines_files, position == 5 ? "EVALUATES=1" : NULL, NULL};
        struct stage_job job = job_of(1 + (uint32_t)position % 2, 1, environment);
        job.grows = 2;
        job.grows_at = position;
        job.waits_at = position + 2;
        check_exact(&job, UINT32_MAX, &end, "growing");
        assert_int_equal(end.roster, job.tasks + 2);
        stage_end_free(&end);
    }
}

/* More tasks than pipelines_files, late or at once: those without get empty batches, in each epoch.
 */
static void a_job_grows_beyond_its_files(void **state)
{
    (void)state;
    const char *const environment[] = {
        "PIPELINE=interleave", pipelines_files, "CADRE_TASKS_MIN=4", NULL};
    for (uint32_t tasks = 4; tasks <= 7; tasks++) {
        struct stage_end end;
        struct stage_job job = job_of(tasks, 1, environment);
        job.grows = 7 - tasks;
        job.grows_at = tasks == 4 ? 1 : 0;
        job.waits_at = 3;
        check_exact(&job, UINT32_MAX, &end, "growing");
        assert_int_equal(end.roster, 7);
        assert_non_null(strstr(end.erred[0],
            "cadre: warning: dataset 'train' has 5 files for 7 workers: 2 of them get empty "
            "batches; use CADRE_SHARD_DATA"));
        stage_end_free(&end);
    }
}

static void a_job_that_begins_with_too_few_files_is_refused(void **state)
{
    (void)state;
    static const char *const kinds[] = {"PIPELINE=interleave", "PIPELINE=list"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {kinds[i], pipelines_files, NULL};
        struct stage_job job = job_of(6, 1, environment);
        stage_run(&job, &end);
        if (end.done || strstr(end.text, "files") == NULL) {
            show(&end);
        }
        assert_false(end.done);
        assert_non_null(strstr(end.text, "files"));
        stage_end_free(&end);
    }
}

/* The number of its own pipeline's steps is that of no other. A joiner comes in the middle. */
static void a_joiner_agrees_with_the_others(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        "PIPELINE=own", "PIPELINE=all", "PIPELINE=filter", "PIPELINE=generated"};
    static const uint64_t in_the_training[] = {12, 17, 12, 22}; /* of the second epoch */
    for (size_t i = 0; i < 8; i++) {
        struct stage_end end;
        const char *const environment[] = {
            kinds[i % 4], pipelines_files, i >= 4 ? "EVALUATES=1" : NULL, NULL};
        struct stage_job job = job_of(2, 1, environment);
        job.grows = 1;
        job.grows_at = 1 + i / 2;
        job.waits_at = i < 4 ? 3 : in_the_training[i - 4];
        struct counted counted = run(&job, UINT32_MAX, &end);
        assert_int_equal(end.roster, 3);
        if (i % 4 >= 2) {
            assert_int_equal(counted.most, PIPELINES_EPOCHS);
        }
        stage_end_free(&end);
    }
}

static void a_joiner_in_an_evaluation_agrees(void **state)
{
    (void)state;
    static const uint64_t positions[] = {12, 14, 16, 18};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        struct stage_end end;
        const char *const environment[] = {"PIPELINE=generated", "EVALUATES=1", NULL};
        struct stage_job job = job_of(2, 1, environment);
        job.grows = 1;
        job.grows_at = positions[i];
        job.waits_at = 22; /* the second step of the next epoch */
        struct counted counted = run(&job, UINT32_MAX, &end);
        assert_int_equal(counted.records, PIPELINES_RECORDS * PIPELINES_EPOCHS);
        assert_int_equal(counted.most, PIPELINES_EPOCHS);
        stage_end_free(&end);
    }
}

/* --- what cannot go on --- */

/* A shuffle of records of all files: what of which file is in its buffer is unknown. */
static void a_pipeline_that_cannot_be_cut_again_is_refused(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=piled", pipelines_files, "DIE_BEFORE=1:4", NULL};
    struct stage_job job = job_of(3, 1, environment);
    stage_run(&job, &end);
    if (end.done || strstr(end.text, "in the middle of epoch 0") == NULL) {
        show(&end);
    }
    assert_false(end.done);
    assert_non_null(
        strstr(end.text, "dataset 'train' is in the middle of epoch 0, divided by files among 3 "
                         "workers, and there are 2 now"));
    assert_non_null(strstr(end.text, "use CADRE_SHARD_DATA"));
    stage_end_free(&end);
}

static void a_task_that_cannot_read_is_received_by_all(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=interleave", pipelines_files, "BROKEN=2:40", NULL};
    struct stage_job job = job_of(3, 1, environment);
    stage_run(&job, &end);
    assert_false(end.done);
    assert_non_null(strstr(end.text, "cannot be read"));
    stage_end_free(&end);
}

static void expect_refused(const char *kind, const char *differs, const char *printed)
{
    struct stage_end end;
    const char *const environment[] = {kind, pipelines_files, differs, NULL};
    struct stage_job job = job_of(3, 1, environment);
    stage_run(&job, &end);
    assert_false(end.done);
    for (uint32_t i = 0; i < 3; i++) {
        assert_non_null(strstr(end.erred[i], printed));
    }
    stage_end_free(&end);
}

static void pipelines_that_differ_are_refused(void **state)
{
    (void)state;
    expect_refused("PIPELINE=interleave", "DIFFERS=2:0",
        "dataset 'train' differs between workers: worker 0 has 'batch: 8', worker 2 has 'batch: 6");
    expect_refused("PIPELINE=interleave", "DIFFERS_OPTION=2:0",
        "worker 2 has 'options: name 'train', CADRE_SHARD_FILE, CADRE_REBATCH_SPLIT, 5 steps");
    expect_refused("PIPELINE=own", "DIFFERS_OPTION=1:0",
        "worker 1 has 'options: name 'train', CADRE_SHARD_AUTO, CADRE_REBATCH_SPLIT, 5 steps");
}

/* One that comes later and differs is no use to the job, and ends alone. */
static void a_joiner_that_differs_ends_alone(void **state)
{
    (void)state;
    struct stage_end end;
    const char *const environment[] = {"PIPELINE=interleave", pipelines_files, "DIFFERS=2:0", NULL};
    struct stage_job job = job_of(2, 1, environment);
    job.grows = 1;
    job.grows_at = 2;
    job.waits_at = 4;
    check_exact(&job, 2, &end, "a joiner that differs");
    assert_int_equal(end.exit_code[2], 1);
    assert_non_null(strstr(end.erred[2], "dataset 'train' differs from that of the training"));
    stage_end_free(&end);
}

/* --- checkpoints --- */

/* In the middle of an epoch, by any number of tasks: what was consumed is not consumed again. */
static void a_checkpoint_is_gone_on_from(void **state)
{
    (void)state;
    static const char *const kinds[] = {
        "PIPELINE=interleave", "PIPELINE=flat", "PIPELINE=generated", "PIPELINE=filter"};
    for (size_t i = 0; i < 12; i++) {
        const char *kind = i == 1 || i == 8 ? "PIPELINE=list" : kinds[i % 4];
        const char *const environment[] = {kind, pipelines_files, NULL};
        uint64_t position = 3 + i / 4;
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        leave_checkpoint(kind, NULL, position, path);
        struct stage_job job = job_of(1 + (uint32_t)i % 3, 1 + (uint32_t)i / 8, environment);
        job.resume = position;
        job.restore = path;
        if (i % 4 < 3) {
            check_exact(&job, UINT32_MAX, &end, kind);
        } else {
            struct stage_end whole;
            struct stage_job undisturbed = job_of(1, 1, environment);
            struct counted counted = run(&job, UINT32_MAX, &end);
            struct counted wanted = run(&undisturbed, UINT32_MAX, &whole);
            assert_memory_equal(&counted, &wanted, sizeof wanted); /* its order, too */
            for (uint32_t attempt = 0; attempt < end.started; attempt++) {
                bool from_start = strstr(end.printed[attempt], "read from 0 on") != NULL;
                assert_true(from_start == (position == 5)); /* where an epoch had ended */
            }
            assert_non_null(strstr(whole.printed[0], "read from 0 on"));
            stage_end_free(&whole);
        }
        stage_end_free(&end);
    }
}

/* It has which files were consumed, and of what: a program that reads otherwise cannot go on there.
 */
static void an_epoch_of_files_that_is_read_otherwise_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *kind;
        const char *fault;
        const char *part;
    } cases[] = {
        {"PIPELINE=generated", NULL,
            "was divided by files then and is not in this program; use the same"},
        {"PIPELINE=flat", NULL, "dataset 'train' differs"},
        {"PIPELINE=interleave", "DIFFERS=0:0", "'batch: 8'"},
        {"PIPELINE=list", "SAMPLES=1", "was divided by files then and is not in this program"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[TEST_PATH_BYTES];
        struct stage_end end;
        const char *const environment[] = {cases[i].kind, pipelines_files, cases[i].fault, NULL};
        leave_checkpoint("PIPELINE=interleave", NULL, 4, path);
        struct stage_job job = job_of(1, 1, environment);
        job.resume = 4;
        job.restore = path;
        stage_run(&job, &end);
        if (end.done || strstr(end.text, cases[i].part) == NULL) {
            show(&end);
        }
        assert_false(end.done);
        assert_non_null(strstr(end.text, cases[i].part));
        stage_end_free(&end);
    }
}

/* --- messages --- */

static void an_elastic_job_that_shares_files_is_pointed_at_samples(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct stage_end end;
        int chosen = i % 2;
        const char *const environment[] = {i < 2 ? "PIPELINE=interleave" : "PIPELINE=list",
            pipelines_files, chosen == 0 ? "AUTO=1" : NULL, NULL};
        struct stage_job job = job_of(2, 1, environment);
        job.grows = 1;
        job.grows_at = 2;
        job.waits_at = 4;
        check_exact(&job, UINT32_MAX, &end, "growing");
        const char *warning = strstr(end.erred[0], "is divided by files (CADRE_SHARD_AUTO)");
        assert_true((warning != NULL) == (chosen == 0));
        if (warning != NULL) {
            assert_null(strstr(warning + 1, "is divided by files"));
        }
        assert_null(strstr(end.erred[1], "is divided by files"));
        stage_end_free(&end);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && getenv("CADRE_SOCKET") != NULL) {
        return pipelines_program();
    }
    pipelines_jobs_open(argv[0]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_shared_out),
        cmocka_unit_test(steps_exist_as_long_as_anybody_has_data),
        cmocka_unit_test(every_task_reads_all),
        cmocka_unit_test(a_loss_in_the_middle_of_files_is_survived),
        cmocka_unit_test(two_datasets_are_one_stream),
        cmocka_unit_test(losses_upon_losses_are_survived),
        cmocka_unit_test(what_others_completed_is_taken_over),
        cmocka_unit_test(a_loss_before_the_first_step_is_survived),
        cmocka_unit_test(a_loss_of_a_pipeline_of_its_own_is_survived),
        cmocka_unit_test(a_replacement_reads_what_is_left),
        cmocka_unit_test(a_job_grows_in_the_middle_of_files),
        cmocka_unit_test(a_job_grows_beyond_its_files),
        cmocka_unit_test(a_job_that_begins_with_too_few_files_is_refused),
        cmocka_unit_test(a_joiner_agrees_with_the_others),
        cmocka_unit_test(a_joiner_in_an_evaluation_agrees),
        cmocka_unit_test(a_pipeline_that_cannot_be_cut_again_is_refused),
        cmocka_unit_test(a_task_that_cannot_read_is_received_by_all),
        cmocka_unit_test(pipelines_that_differ_are_refused),
        cmocka_unit_test(a_joiner_that_differs_ends_alone),
        cmocka_unit_test(a_checkpoint_is_gone_on_from),
        cmocka_unit_test(an_epoch_of_files_that_is_read_otherwise_is_refused),
        cmocka_unit_test(an_elastic_job_that_shares_files_is_pointed_at_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
