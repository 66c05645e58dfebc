/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/store_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 16

static struct generation generation_of(uint64_t number)
{
    /* Beyond what a signed number holds: nonces use all their bits. */
    return (struct generation){.number = number, .nonce = UINT64_MAX - number};
}

struct core_record record_job(uint64_t job, uint32_t tasks)
{
    return (struct core_record){.type = CORE_RECORD_JOB,
        .job.n = job,
        .submitted = {.tasks = tasks, .priority = -(int32_t)job}};
}

struct core_record record_started(uint64_t job, uint64_t incarnation_max)
{
    return (struct core_record){
        .type = CORE_RECORD_STARTED, .job.n = job, .incarnation_max = incarnation_max};
}

struct core_record record_plan(uint64_t job, uint64_t generation, uint64_t resume)
{
    return (struct core_record){.type = CORE_RECORD_PLAN,
        .job.n = job,
        .plan = {.generation = generation_of(generation),
            .parent = generation_of(generation - 1),
            .resume = resume}};
}

struct core_record record_watermark(uint64_t job, uint64_t generation, uint64_t up_to)
{
    return (struct core_record){.type = CORE_RECORD_WATERMARK,
        .job.n = job,
        .watermark = {.generation = generation_of(generation),
            .up_to = up_to,
            .cursor = {.stream = 1, .epoch = 2, .first = up_to - 1, .steps = 0}}};
}

struct core_record record_end_of_data(uint64_t job, uint64_t epoch)
{
    return (struct core_record){.type = CORE_RECORD_END_OF_DATA,
        .job.n = job,
        .end_of_data = {.stream = 1, .epoch = epoch, .first = 10, .steps = 5}};
}

struct core_record record_checkpoint(uint64_t job, uint64_t position, const char *path)
{
    struct core_record record = {.type = CORE_RECORD_CHECKPOINT,
        .job.n = job,
        .checkpoint = {.generation = generation_of(1),
            .position = position,
            .slot = 10203,
            .size_bytes = 77,
            .sha256 = {1, 2, 3}}};
    snprintf(record.checkpoint.path, sizeof record.checkpoint.path, "%s", path);
    return record;
}

struct core_record record_done(uint64_t job, uint64_t position)
{
    return (struct core_record){.type = CORE_RECORD_DONE,
        .job.n = job,
        .done = {.generation = generation_of(1), .position = position}};
}

struct core_record record_task_exit(
    uint64_t job, uint32_t slot, uint64_t incarnation, int32_t code, const char *text)
{
    struct core_record record = {.type = CORE_RECORD_TASK_EXIT,
        .job.n = job,
        .task_exit = {.slot = slot,
            .incarnation = incarnation,
            .state = code == 99 ? TASK_LOST : TASK_EXITED,
            .exit = {.code = code, .signal = code == 0 ? 9 : 0}}};
    snprintf(record.task_exit.exit.text, sizeof record.task_exit.exit.text, "%s", text);
    return record;
}

struct core_record record_ended(uint64_t job, enum job_state state, const char *text)
{
    struct core_record record = {.type = CORE_RECORD_ENDED,
        .job.n = job,
        .ended = {.state = state,
            .code = state == JOB_SUCCEEDED ? CADRE_OK : CADRE_ABORTED,
            .exit_code = state == JOB_SUCCEEDED ? 0 : 137}};
    snprintf(record.ended.text, sizeof record.ended.text, "%s", text);
    return record;
}

cadre_status commit(struct store *store, bool sync, const struct core_record *records, size_t count,
    struct cadre_error *error)
{
    static const uint8_t roster[24] = {1};
    struct store_record wrapped[RECORDS_MAX];
    char specs[RECORDS_MAX][32];
    assert_true(count <= RECORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        uint64_t job = records[i].job.n;
        wrapped[i] = (struct store_record){
            .record = &records[i], .wall_us = 1000 * job + (uint64_t)records[i].type};
        if (records[i].type == CORE_RECORD_JOB) {
            wrapped[i].spec = specs[i];
            /* With a zero byte inside: a spec is no text. */
            wrapped[i].spec_bytes =
                (size_t)snprintf(specs[i], sizeof specs[i], "spec %" PRIu64 "%c.", job, '\0');
        } else if (records[i].type == CORE_RECORD_PLAN) {
            wrapped[i].roster = roster;
            wrapped[i].roster_bytes = sizeof roster;
        }
    }
    return store->ops->commit(store, wrapped, count, sync, error);
}

struct writer {
    struct store *store;
    FILE *out;
};

static void write_exit(void *user, const struct store_task_exit *exit)
{
    fprintf(user, "  task %" PRIu32 ".%" PRIu64 " %s code %d signal %d \"%s\"\n", exit->slot,
        exit->incarnation, task_state_name(exit->state), (int)exit->exit.code,
        (int)exit->exit.signal, exit->exit.text);
}

static cadre_status write_job(void *user, const struct store_job *job, struct cadre_error *error)
{
    const struct writer *writer = user;
    fprintf(writer->out,
        "job %" PRIu64 " %.*s%zu tasks %" PRIu32 " priority %d at %" PRIu64 " %" PRIu64 " %" PRIu64
        " incarnations %" PRIu64 " generation %" PRIu64 "/%" PRIx64 " position %" PRIu64
        " %s code %d exit %d \"%s\" checkpoint \"%s\"\n",
        job->id.n, (int)strnlen(job->spec, job->spec_bytes), (const char *)job->spec,
        job->spec_bytes, job->tasks, (int)job->priority, job->submitted_us, job->started_us,
        job->ended_us, job->incarnation_max, job->generation.number, job->generation.nonce,
        job->position, job_state_name(job->state), (int)job->code, (int)job->exit_code, job->text,
        job->checkpoint);
    return writer->store->ops->task_exits(writer->store, job->id, write_exit, writer->out, error);
}

char *store_text(struct store *store)
{
    char *text = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    struct writer writer = {.store = store, .out = open_memstream(&text, &size)};
    assert_non_null(writer.out);
    assert_ok(store->ops->load(store, write_job, &writer, &error), &error);
    fclose(writer.out);
    return text;
}

void assert_store_text(struct store *store, const char *wanted)
{
    char *text = store_text(store);
    assert_string_equal(text, wanted);
    free(text);
}

cadre_status story_commit(struct store *store, unsigned index, struct cadre_error *error)
{
    switch (index) {
    case 0:
        return COMMIT(store, true, error, record_job(1, 2));
    case 1:
        return COMMIT(store, true, error, record_job(2, 1), record_started(1, 2));
    case 2:
        return COMMIT(store, true, error, record_plan(1, 1, 0));
    case 3:
        return COMMIT(store, false, error, record_watermark(1, 1, 4), record_end_of_data(1, 0));
    case 4:
        return COMMIT(store, false, error, record_checkpoint(1, 4, "step-4"),
            record_watermark(1, 1, 6), record_done(1, 6));
    case 5:
        return COMMIT(store, false, error, record_task_exit(1, 0, 1, 3, "oh"),
            record_task_exit(1, 1, 2, 0, ""));
    default:
        return COMMIT(store, true, error, record_ended(1, JOB_FAILED, "task 0 failed"));
    }
}

char *story_text(unsigned commits)
{
    struct store *store = NULL;
    struct cadre_error error = {0};
    assert_ok(store_memory_open(&store, &error), &error);
    for (unsigned i = 0; i < commits; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    char *text = store_text(store);
    store->ops->close(store);
    return text;
}
