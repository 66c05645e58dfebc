/* SPDX-License-Identifier: Apache-2.0
 * See pipelines_jobs.h. */
#include "pipelines_jobs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *self;
char pipelines_files[TEST_PATH_BYTES + 16];

void pipelines_jobs_open(const char *program)
{
    self = program;
    const char *folder = test_temp_dir();
    snprintf(pipelines_files, sizeof pipelines_files, "FILES=%s", folder);
    pipelines_write_files(folder);
}

struct stage_job job_of(uint32_t tasks, uint32_t replicas, const char *const *environment)
{
    return (struct stage_job){.self = self,
        .what = "pipelines",
        .tasks = tasks,
        .replicas = replicas,
        .environment = environment};
}

void show(const struct stage_end *end)
{
    print_error("done %d at %" PRIu64 ", %" PRIu64 " generations, %s\n", end->done, end->position,
        end->generations, end->text);
    for (uint32_t i = 0; i < end->started; i++) {
        print_error(
            "attempt %u: exit code %d\n%s%s", i, end->exit_code[i], end->printed[i], end->erred[i]);
    }
}

bool read_counted(const char *printed, struct counted *ret_counted)
{
    const char *at = printed == NULL ? NULL : strstr(printed, "consumed ");
    return at != NULL &&
           sscanf(at, "consumed %lld records, each %lld to %lld times; order %llu; position %llu",
               &ret_counted->records, &ret_counted->least, &ret_counted->most, &ret_counted->order,
               &ret_counted->position) == 5;
}

struct counted run(const struct stage_job *job, uint32_t dead, struct stage_end *ret_end)
{
    struct counted first = {0};
    bool any = false;
    stage_run(job, ret_end);
    bool good = ret_end->done;
    for (uint32_t i = 0; i < ret_end->started; i++) {
        struct counted counted = {0};
        if (i == dead) {
            continue;
        }
        good = good && ret_end->exit_code[i] == 0 && read_counted(ret_end->printed[i], &counted);
        good = good && (!any || memcmp(&counted, &first, sizeof first) == 0);
        first = any ? first : counted;
        any = true;
    }
    if (!good) {
        show(ret_end);
    }
    assert_true(good);
    return first;
}

void check_exact(
    const struct stage_job *job, uint32_t dead, struct stage_end *ret_end, const char *what)
{
    struct counted counted = run(job, dead, ret_end);
    bool zipped = strstr(job->environment[0], "=zip") != NULL;
    const uint64_t samples = zipped ? PIPELINES_ZIPPED : PIPELINES_RECORDS;
    bool exact = counted.records == PIPELINES_RECORDS * PIPELINES_EPOCHS &&
                 counted.least == PIPELINES_EPOCHS && counted.most == PIPELINES_EPOCHS;
    for (size_t i = 0; i < ret_end->consumption_count; i++) {
        const struct stage_consumption *consumption = &ret_end->consumptions[i];
        exact = exact && (consumption->cursor.stream != 1 ||
                             (consumption->consumption.samples == samples &&
                                 consumption->consumption.steps == consumption->cursor.steps));
    }
    if (!exact) {
        print_error("%s: %lld records, each %lld to %lld times\n", what, counted.records,
            counted.least, counted.most);
        show(ret_end);
    }
    assert_true(exact);
}

const char *const losses[4] = {"DIE_NEXT", "DIE_RUN", "DIE_BEFORE", "DIE_BETWEEN"};

void check_loss(const char *kind, const char *fault, uint32_t attempt, uint64_t position,
    uint32_t tasks, uint32_t replicas)
{
    char what[64];
    struct stage_end end;
    snprintf(what, sizeof what, "%s=%u:%" PRIu64, fault, attempt, position);
    const char *const environment[] = {kind, pipelines_files, what, NULL};
    struct stage_job job = job_of(tasks, replicas, environment);
    check_exact(&job, attempt, &end, what);
    assert_int_equal(end.roster, tasks - 1);
    stage_end_free(&end);
}

void leave_checkpoint(
    const char *kind, const char *policy, uint64_t position, char path[TEST_PATH_BYTES])
{
    char every[64];
    char fault[64];
    struct stage_end end;
    snprintf(every, sizeof every, "CADRE_CHECKPOINT_EVERY=%" PRIu64, position);
    snprintf(fault, sizeof fault, "DIE_WAITING=0:%" PRIu64, position + 1);
    const char *const environment[] = {
        kind, pipelines_files, every, fault, "DIE_BEFORE=1:2", policy, NULL};
    struct stage_job job = job_of(2, 1, environment);
    stage_run(&job, &end);
    if (end.done || end.published != position) {
        show(&end);
    }
    assert_false(end.done);
    assert_int_equal(end.published, position);
    snprintf(path, TEST_PATH_BYTES, "%s/checkpoint-%" PRIu64 ".json", end.folder, position);
    stage_end_free(&end);
}
