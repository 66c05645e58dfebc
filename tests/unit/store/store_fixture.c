/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/store_fixture.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

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
        .submitted = {.spec = {.tasks = tasks,
                          .tasks_min = 1,
                          .priority = -(int32_t)job,
                          .max_restarts = 3,
                          .wait_us = 4000,
                          .stall_us = 5000}}};
}

struct core_record record_restoring_job(uint64_t job, uint32_t tasks, uint64_t position)
{
    struct core_record record = record_job(job, tasks);
    record.submitted.restores = true;
    record.submitted.checkpoint = record_checkpoint(9, position, "origin").checkpoint;
    return record;
}

struct core_record record_started(uint64_t job, uint64_t incarnation_max)
{
    return (struct core_record){
        .type = CORE_RECORD_STARTED, .job.n = job, .incarnation_max = incarnation_max};
}

struct core_record record_task(uint64_t job, uint32_t slot, uint64_t incarnation)
{
    struct core_record record = {.type = CORE_RECORD_TASK,
        .job.n = job,
        .task = {
            .slot = slot, .incarnation = incarnation, .attempts = 2, .attempts_generation = 3}};
    snprintf(record.task.worker, sizeof record.task.worker, "worker of %" PRIu32, slot);
    return record;
}

struct core_record record_backed(uint64_t job, uint32_t slot, uint64_t incarnation, uint64_t by)
{
    return (struct core_record){.type = CORE_RECORD_BACKED,
        .job.n = job,
        .backed = {.slot = slot, .incarnation = incarnation, .backed = {.number = 7, .by = by}}};
}

struct core_record record_plan(uint64_t job, uint64_t generation, uint64_t resume)
{
    return (struct core_record){.type = CORE_RECORD_PLAN,
        .job.n = job,
        .plan = {.generation = generation_of(generation),
            .parent = generation_of(generation - 1),
            .resume = resume,
            .restarts = (uint32_t)generation - 1,
            .restarted = generation == 3}};
}

struct core_record record_control(
    uint64_t job, uint64_t generation, enum halt_kind kind, uint64_t halt_at)
{
    return (struct core_record){.type = CORE_RECORD_CONTROL,
        .job.n = job,
        .control = {.generation = generation_of(generation),
            .halt_at = halt_at,
            .halt_kind = kind,
            .halt_stream = STREAM_ANY}};
}

struct core_record record_watermark(uint64_t job, uint64_t generation, uint64_t up_to)
{
    return (struct core_record){.type = CORE_RECORD_WATERMARK,
        .job.n = job,
        .watermark = {.generation = generation_of(generation),
            .up_to = up_to,
            .cursor = {
                .stream = 1, .epoch = 2, .first = up_to - 1, .begin = up_to - 1, .steps = 0}}};
}

struct core_record record_consumed(
    uint64_t job, uint32_t stream, uint64_t epoch, uint64_t begin, uint64_t steps)
{
    return (struct core_record){.type = CORE_RECORD_CONSUMED,
        .job.n = job,
        .consumption = {
            .cursor = {.stream = stream, .epoch = epoch, .first = begin / 2, .begin = begin},
            .consumption = {.steps = steps,
                .samples = 8 * steps,
                .consumed = {UINT64_MAX - steps, steps},
                .expected = {UINT64_MAX - steps, 7},
                .provable = stream == 1,
                .files = stream == 1 ? (enum consumed_files)(steps % 4) : CONSUMED_FILES_NONE}}};
}

struct core_record record_stream(uint64_t job, uint32_t stream, const char *name)
{
    struct core_record record = {.type = CORE_RECORD_STREAM,
        .job.n = job,
        .stream = {.stream = stream, .samples = 1000 * (uint64_t)stream, .shares = stream == 1}};
    snprintf(record.stream.name, sizeof record.stream.name, "%s", name);
    return record;
}

struct core_record record_end_of_data(uint64_t job, uint64_t epoch)
{
    return (struct core_record){.type = CORE_RECORD_END_OF_DATA,
        .job.n = job,
        .end_of_data = {.stream = 1, .epoch = epoch, .first = 8, .begin = 10, .steps = 5}};
}

struct core_record record_checkpoint(uint64_t job, uint64_t position, const char *path)
{
    struct core_record record = {.type = CORE_RECORD_CHECKPOINT,
        .job.n = job,
        .checkpoint = {.generation = generation_of(1),
            .position = position,
            .shared = position % 2 == 1,
            .manifest_bytes = 77,
            .manifest_sha256 = {1, 2, 3}}};
    snprintf(record.checkpoint.path, sizeof record.checkpoint.path, "%s", path);
    return record;
}

struct core_record record_checkpoint_of(
    uint64_t job, uint64_t position, const char *path, uint64_t digest)
{
    struct core_record record = record_checkpoint(job, position, path);
    record.checkpoint.digest = digest;
    return record;
}

struct core_record record_verified(uint64_t job, uint64_t position, uint64_t digest)
{
    return (struct core_record){.type = CORE_RECORD_VERIFIED,
        .job.n = job,
        .verified = {.position = position, .digest = digest}};
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

struct core_record record_ending(uint64_t job, enum job_state state, const char *text)
{
    struct core_record record = record_ended(job, state, text);
    record.type = CORE_RECORD_ENDING;
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

struct core_record record_dropped(uint64_t job, uint64_t position)
{
    return (struct core_record){
        .type = CORE_RECORD_CHECKPOINT_DROPPED, .job = {job}, .dropped = position};
}

struct core_record record_forgotten(uint64_t job)
{
    return (struct core_record){.type = CORE_RECORD_FORGOTTEN, .job = {job}};
}

struct core_record record_term(uint64_t start)
{
    return (struct core_record){.type = CORE_RECORD_TERM, .start = start};
}

/* Every task of the job that the fixture knows, as a placement and as a roster: slot s has
 * incarnation s + 1. */
static const struct store_placement placements[] = {
    {.slot = 0, .incarnation = 1, .worker = "worker a"},
    {.slot = 1, .incarnation = 2, .worker = "worker b"},
    {.slot = 2, .incarnation = 3, .worker = "worker c"}};

cadre_status commit_placed(struct store *store, bool sync, const struct core_record *records,
    size_t count, size_t placed, struct cadre_error *error)
{
    struct store_record wrapped[RECORDS_MAX];
    char specs[RECORDS_MAX][32];
    assert_true(count <= RECORDS_MAX && placed <= CADRE_COUNT_OF(placements));
    for (size_t i = 0; i < count; i++) {
        uint64_t job = records[i].job.n;
        wrapped[i] = (struct store_record){
            .record = &records[i], .wall_us = 1000 * job + (uint64_t)records[i].type};
        if (records[i].type == CORE_RECORD_JOB) {
            wrapped[i].spec = specs[i];
            /* With a zero byte inside: a spec is no text. */
            wrapped[i].spec_bytes =
                (size_t)snprintf(specs[i], sizeof specs[i], "spec %" PRIu64 "%c.", job, '\0');
        } else if (records[i].type == CORE_RECORD_PLAN || records[i].type == CORE_RECORD_STARTED) {
            wrapped[i].placements = placements;
            wrapped[i].target_count = placed;
        } else if (records[i].type == CORE_RECORD_ENDING) {
            wrapped[i].committed = ENDING_COMMITTED;
        }
    }
    return store->ops->commit(store, wrapped, count, sync, error);
}

cadre_status commit(struct store *store, bool sync, const struct core_record *records, size_t count,
    struct cadre_error *error)
{
    return commit_placed(store, sync, records, count, 1, error);
}

/* ---- all of it as text ---- */

struct writer {
    struct store *store;
    FILE *out;
};

static void write_generation(FILE *out, struct generation generation)
{
    fprintf(out, "%" PRIu64 "/%" PRIx64, generation.number, generation.nonce);
}

static void write_cursor(FILE *out, const struct cursor *cursor)
{
    fprintf(out, "(%" PRIu32 ",%" PRIu64 ": first %" PRIu64 " begin %" PRIu64 " steps %" PRIu64 ")",
        cursor->stream, cursor->epoch, cursor->first, cursor->begin, cursor->steps);
}

static void write_exit(void *user, const struct store_task_exit *exit)
{
    fprintf(user, "  task %" PRIu32 ".%" PRIu64 " %s code %d signal %d \"%s\"\n", exit->slot,
        exit->incarnation, task_state_name(exit->state), (int)exit->exit.code,
        (int)exit->exit.signal, exit->exit.text);
}

static void write_plan(void *user, const struct store_plan *plan)
{
    fprintf(user, "  plan ");
    write_generation(user, plan->generation);
    fprintf(user, " after ");
    write_generation(user, plan->parent);
    fprintf(user, " resume %" PRIu64 "%s members %" PRIu32 " at %" PRIu64 "\n", plan->resume,
        plan->restarted ? " restarted" : "", plan->members, plan->planned_us);
}

static void write_stream(void *user, const struct store_stream *stream)
{
    fprintf(user, "  stream %" PRIu32 " \"%s\" samples %" PRIu64 "%s\n", stream->stream,
        stream->name, stream->samples, stream->shares ? " shares" : "");
}

static void write_epoch(void *user, const struct store_epoch *epoch)
{
    const struct consumption *consumption = &epoch->consumption;
    fprintf(user, "  epoch ");
    write_cursor(user, &epoch->cursor);
    fprintf(user,
        " consumed %" PRIu64 " steps %" PRIu64 " samples %" PRIx64 "/%" PRIx64 " of %" PRIx64
        "/%" PRIx64 "%s",
        consumption->steps, consumption->samples, consumption->consumed[0],
        consumption->consumed[1], consumption->expected[0], consumption->expected[1],
        consumption->provable ? " provable" : "");
    if (consumption->files != CONSUMED_FILES_NONE) {
        fprintf(user, " files %d", (int)consumption->files);
    }
    fprintf(user, "\n");
}

static void write_verified(void *user, const struct verified *verified)
{
    fprintf(user, "  equal at %" PRIu64 " %" PRIx64 "\n", verified->position, verified->digest);
}

static void write_one_checkpoint(void *user, const struct core_checkpoint *checkpoint)
{
    fprintf(user, "  checkpoint at %" PRIu64 " \"%s\"%s of ", checkpoint->position,
        checkpoint->path, checkpoint->shared ? " shared" : "");
    write_generation(user, checkpoint->generation);
    fprintf(user, " %" PRIu64 " bytes %02x%02x%02x%02x", checkpoint->manifest_bytes,
        checkpoint->manifest_sha256[0], checkpoint->manifest_sha256[1],
        checkpoint->manifest_sha256[2], checkpoint->manifest_sha256[3]);
    if (checkpoint->digest != 0) {
        fprintf(user, " digest %" PRIx64, checkpoint->digest);
    }
    fprintf(user, "\n");
}

static void write_restore(FILE *out, const struct core_restore_job *job)
{
    fprintf(out, "  restarts %" PRIu32 " generation ", job->restarts);
    write_generation(out, job->generation);
    fprintf(out, " of %" PRIu32, job->roster);
    fprintf(out, " resume %" PRIu64 " released %" PRIu64 " ", job->resume, job->released);
    write_cursor(out, &job->cursor);
    fprintf(out, "\n");
    if (job->has_control) {
        fprintf(out, "  halt %d at %" PRIu64 " of %" PRIx32 "\n", (int)job->halt_kind, job->halt_at,
            job->halt_stream);
    }
    if (job->verified.digest != 0 || job->verified.position != 0) {
        fprintf(out, "  verified %" PRIu64 " %" PRIx64 "\n", job->verified.position,
            job->verified.digest);
    }
    if (job->done) {
        fprintf(out, "  done at %" PRIu64 "\n", job->done_position);
    }
    if (job->ending) {
        fprintf(out, "  ending as %s code %d exit %d \"%s\"\n",
            job_state_name(job->ending_as.state), (int)job->ending_as.code,
            (int)job->ending_as.exit_code, job->ending_as.text);
    }
    for (size_t i = 0; i < job->task_count; i++) {
        const struct core_restore_task *task = &job->tasks[i];
        fprintf(out, "  placed %" PRIu32 ".%" PRIu64 " rank %" PRId32 " on \"%s\"%s%s", task->slot,
            task->incarnation, (int32_t)task->rank, task->worker,
            task->attempts > 1 && task->attempts_generation == 3 ? " again" : "",
            task->lost   ? " lost"
            : task->gone ? " gone"
                         : "");
        if (task->backed.number != 0 || task->backed.by != 0) {
            fprintf(out, " backed %" PRIu64 " by %" PRIu64, task->backed.number, task->backed.by);
        }
        fprintf(out, "\n");
    }
    for (size_t i = 0; i < job->stream_count; i++) {
        const struct stream_position *stream = &job->streams[i];
        fprintf(out,
            "  at stream %" PRIu32 " epoch %" PRIu64 " steps %" PRIu64 " applied %" PRIu64 "\n",
            stream->stream, stream->epoch, stream->steps, stream->applied);
    }
    if (job->has_checkpoint) {
        fprintf(out, "  newest:");
        write_one_checkpoint(out, &job->checkpoint);
    }
}

static cadre_status write_job(void *user, const struct store_job *job, struct cadre_error *error)
{
    const struct writer *writer = user;
    const struct store_ops *ops = writer->store->ops;
    const struct core_job_spec *spec = &job->restore.spec;
    struct job_id id = job->restore.job;
    FILE *out = writer->out;
    if (job->damage != NULL) {
        fprintf(out, "job %" PRIu64 " is damaged: %s\n", id.n, job->damage);
        return CADRE_OK;
    }
    fprintf(out,
        "job %" PRIu64 " %.*s%zu tasks %" PRIu32 "-%" PRIu32 " priority %d restarts %" PRIu32
        " wait %" PRIu64 " stall %" PRIu64 " at %" PRIu64 " %" PRIu64 " %" PRIu64
        " incarnations %" PRIu64 " position %" PRIu64 " %s%s code %d exit %d \"%s\"\n",
        id.n, (int)strnlen(job->spec, job->spec_bytes), (const char *)job->spec, job->spec_bytes,
        spec->tasks_min, spec->tasks, (int)spec->priority, spec->max_restarts, spec->wait_us,
        spec->stall_us, job->submitted_us, job->started_us, job->ended_us,
        job->restore.incarnation_max, job->position, job_state_name(job->state),
        job->restore.started ? " started" : "", (int)job->code, (int)job->exit_code, job->text);
    if (job->restores) {
        fprintf(out, "  from:");
        write_one_checkpoint(out, &job->origin);
    }
    if (job->restore.published.number > 0) {
        fprintf(out, "  notified of %" PRIu64 " in generation %" PRIu64 "\n",
            job->restore.published.position, job->restore.published.number);
    }
    if (job->lost.position > 0) {
        fprintf(out, "  lost %" PRIu64 ": %s\n", job->lost.position, job->lost.why);
    }
    write_restore(out, &job->restore);
    CADRE_TRY(ops->task_exits(writer->store, id, write_exit, out, error));
    const struct store_walk walk = {.plan_row = write_plan,
        .stream_row = write_stream,
        .epoch_row = write_epoch,
        .verified_row = write_verified,
        .user = out};
    CADRE_TRY(ops->ledger(writer->store, id, &walk, error));
    return ops->checkpoints(writer->store, id, write_one_checkpoint, out, error);
}

cadre_status store_try_text(struct store *store, char **ret_text, struct cadre_error *error)
{
    char *text = NULL;
    size_t size = 0;
    struct writer writer = {.store = store, .out = open_memstream(&text, &size)};
    assert_non_null(writer.out);
    cadre_status status = store->ops->load(store, write_job, &writer, error);
    fclose(writer.out);
    if (status != CADRE_OK) {
        free(text);
        return status;
    }
    *ret_text = text;
    return CADRE_OK;
}

char *store_text(struct store *store)
{
    char *text = NULL;
    struct cadre_error error = {0};
    assert_ok(store_try_text(store, &text, &error), &error);
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
        return commit_placed(store, true,
            (const struct core_record[]){record_restoring_job(2, 1, 33), record_started(1, 2)}, 2,
            2, error);
    case 2:
        return commit_placed(
            store, true, (const struct core_record[]){record_plan(1, 1, 0)}, 1, 2, error);
    case 3:
        return COMMIT(store, false, error, record_watermark(1, 1, 4), record_end_of_data(1, 0),
            record_stream(1, 1, "train"), record_stream(1, 2, "validate"),
            record_consumed(1, 1, 0, 2, 4));
    case 4:
        return COMMIT(store, false, error, record_checkpoint(1, 4, "step-4"),
            record_watermark(1, 1, 6), record_control(1, 1, HALT_REGROUP, 6),
            record_consumed(1, 2, 5, 4, 2), record_checkpoint(1, 5, "step-5"));
    case 5:
        return COMMIT(store, false, error, record_task_exit(1, 0, 1, 3, "oh"),
            record_task_exit(1, 1, 2, 0, ""), record_task(1, 0, 7),
            record_ending(1, JOB_FAILED, "task 0 fails"));
    case 6:
        return COMMIT(store, true, error, record_plan(1, 2, 6), record_control(1, 2, HALT_STOP, 9),
            record_done(1, 6));
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

unsigned count_names(const char *folder, const char *begin)
{
    unsigned count = 0;
    DIR *names = opendir(folder);
    assert_non_null(names);
    for (const struct dirent *name = readdir(names); name != NULL; name = readdir(names)) {
        count += strncmp(name->d_name, begin, strlen(begin)) == 0 ? 1 : 0;
    }
    closedir(names);
    return count;
}
