/* SPDX-License-Identifier: Apache-2.0
 * Owns one job's rows in the memory peer, and applies records to them. Called by memory.c for each
 * record of a commit, and by the simulator. */
#include "coordinator/store/memory_job.h"

#include <stdlib.h>
#include <string.h>

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* Every row of these begins with the number that is its key. */
static int by_number(const void *a, const void *b)
{
    return COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
}

static int by_generation(const void *a, const void *b)
{
    const struct store_plan *one = a;
    const struct store_plan *other = b;
    return COMPARE(one->generation.number, other->generation.number);
}

int memory_job_by_epoch(const void *a, const void *b)
{
    const struct cursor *one = a;
    const struct cursor *other = b;
    int order = COMPARE(one->stream, other->stream);
    return order != 0 ? order : COMPARE(one->epoch, other->epoch);
}

static int by_run(const void *a, const void *b)
{
    const struct store_epoch *one = a;
    const struct store_epoch *other = b;
    int order = memory_job_by_epoch(&one->cursor, &other->cursor);
    return order != 0 ? order : COMPARE(one->cursor.begin, other->cursor.begin);
}

static int by_position(const void *a, const void *b)
{
    const struct core_checkpoint *one = a;
    const struct core_checkpoint *other = b;
    return COMPARE(one->position, other->position);
}

static int by_verified(const void *a, const void *b)
{
    const struct verified *one = a;
    const struct verified *other = b;
    return COMPARE(one->position, other->position);
}

static int by_event(const void *a, const void *b)
{
    const struct event_row *one = a;
    const struct event_row *other = b;
    return COMPARE(one->event.number, other->event.number);
}

static const struct rows empty[TABLE_COUNT] = {
    [TABLE_PLACEMENTS] = {.item_bytes = sizeof(struct placement_row), .compare = by_number},
    [TABLE_EXITS] = {.item_bytes = sizeof(struct store_task_exit), .compare = by_number},
    [TABLE_PLANS] = {.item_bytes = sizeof(struct store_plan), .compare = by_generation},
    [TABLE_MEMBERS] = {.item_bytes = sizeof(struct member_row), .compare = by_number},
    [TABLE_STREAMS] = {.item_bytes = sizeof(struct stream_row), .compare = by_number},
    [TABLE_ENDS] = {.item_bytes = sizeof(struct cursor), .compare = memory_job_by_epoch},
    [TABLE_CONSUMED] = {.item_bytes = sizeof(struct store_epoch), .compare = by_run},
    [TABLE_CHECKPOINTS] = {.item_bytes = sizeof(struct core_checkpoint), .compare = by_position},
    [TABLE_VERIFIED] = {.item_bytes = sizeof(struct verified), .compare = by_verified},
    [TABLE_EVENTS] = {.item_bytes = sizeof(struct event_row), .compare = by_event}};

void memory_job_init(struct memory_job *job, const struct store_record *record)
{
    const struct core_record *core = record->record;
    *job = (struct memory_job){.row = {.restore = {.job = core->job, .spec = core->submitted.spec},
                                   .submitted_us = record->wall_us,
                                   .state = JOB_QUEUED,
                                   .restores = core->submitted.restores,
                                   .origin = core->submitted.checkpoint}};
    memcpy(job->tables, empty, sizeof empty);
}

bool memory_job_copy(const struct memory_job *job, struct memory_job *ret_copy)
{
    *ret_copy = *job;
    memcpy(ret_copy->tables, empty, sizeof empty);
    for (int i = 0; i < TABLE_COUNT; i++) {
        if (!rows_copy(&job->tables[i], &ret_copy->tables[i])) {
            memory_job_free(ret_copy);
            return false;
        }
    }
    return true;
}

void memory_job_free(struct memory_job *job)
{
    for (int i = 0; i < TABLE_COUNT; i++) {
        rows_free(&job->tables[i]);
    }
}

void memory_job_settle(struct memory_job *job)
{
    for (int i = 0; i < TABLE_COUNT; i++) {
        job->tables[i].reserved = 0;
    }
}

/* ---- what can fail ---- */

static cadre_status check_slot(
    const struct memory_job *job, uint32_t slot, struct cadre_error *error)
{
    if (slot < job->row.restore.spec.tasks) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INTERNAL,
        "a record names task %u of job %llu, which has %u", slot,
        (unsigned long long)job->row.restore.job.n, job->row.restore.spec.tasks);
}

/* Which table grows by the record, and by how many rows. */
static enum table table_of(const struct store_record *record, size_t *ret_extra)
{
    *ret_extra = 1;
    switch (record->record->type) {
    case CORE_RECORD_STARTED:
        *ret_extra = record->target_count;
        return TABLE_PLACEMENTS;
    case CORE_RECORD_TASK:
        return TABLE_PLACEMENTS;
    case CORE_RECORD_PLAN:
        return TABLE_PLANS;
    case CORE_RECORD_CONSUMED:
        return TABLE_CONSUMED;
    case CORE_RECORD_STREAM:
        return TABLE_STREAMS;
    case CORE_RECORD_END_OF_DATA:
        return TABLE_ENDS;
    case CORE_RECORD_CHECKPOINT:
        return TABLE_CHECKPOINTS;
    case CORE_RECORD_VERIFIED:
        return TABLE_VERIFIED;
    case CORE_RECORD_TASK_EXIT:
        return TABLE_EXITS;
    case CORE_RECORD_JOB:
    case CORE_RECORD_QUEUED:
    case CORE_RECORD_BACKED:
    case CORE_RECORD_CHECKPOINT_LOST:
    case CORE_RECORD_ORIGIN:
    case CORE_RECORD_CONTROL:
    case CORE_RECORD_WATERMARK:
    case CORE_RECORD_DONE:
    case CORE_RECORD_ENDING:
    case CORE_RECORD_ENDED:
    case CORE_RECORD_PUBLISHED:
    case CORE_RECORD_DIVERGED:
    case CORE_RECORD_CULPRIT: /* of no job */
    case CORE_RECORD_DRAINED:
    case CORE_RECORD_UNDRAINED:
    case CORE_RECORD_CHECKPOINT_DROPPED:
    case CORE_RECORD_FORGOTTEN:
    case CORE_RECORD_TERM:
        break;
    }
    *ret_extra = 0;
    return TABLE_COUNT;
}

static cadre_status no_room(const struct memory_job *job, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a record of job %llu",
        (unsigned long long)job->row.restore.job.n);
}

cadre_status memory_job_prepare(
    struct memory_job *job, const struct store_record *record, struct cadre_error *error)
{
    const struct core_record *core = record->record;
    if (core == NULL) {
        return rows_reserve(&job->tables[TABLE_EVENTS], 1) ? CADRE_OK : no_room(job, error);
    }
    if (core->type == CORE_RECORD_TASK_EXIT) {
        CADRE_TRY(check_slot(job, core->task_exit.slot, error));
    } else if (core->type == CORE_RECORD_TASK) {
        CADRE_TRY(check_slot(job, core->task.slot, error));
    } else if (core->type == CORE_RECORD_BACKED) {
        CADRE_TRY(check_slot(job, core->backed.slot, error));
    }
    for (size_t i = 0; i < record->target_count; i++) {
        CADRE_TRY(check_slot(job, record->placements[i].slot, error));
    }
    size_t extra;
    enum table table = table_of(record, &extra);
    bool room = extra == 0 || rows_reserve(&job->tables[table], extra);
    if (room && core->type == CORE_RECORD_PLAN) {
        room = rows_reserve(&job->tables[TABLE_MEMBERS], record->target_count);
    } else if (room && core->type == CORE_RECORD_CHECKPOINT && core->checkpoint.digest != 0) {
        room = rows_reserve(&job->tables[TABLE_VERIFIED], 1);
    }
    return room ? CADRE_OK : no_room(job, error);
}

/* ---- what cannot ---- */

static void memory_job_put_placement(struct memory_job *job, const struct store_placement *where)
{
    struct placement_row row = {.slot = where->slot,
        .incarnation = where->incarnation,
        .attempts = where->attempts,
        .attempts_generation = where->attempts_generation,
        .backed = {.by = where->backed_by}};
    memcpy(row.worker, where->worker, strnlen(where->worker, sizeof row.worker - 1));
    const struct placement_row *known = rows_find(&job->tables[TABLE_PLACEMENTS], &row);
    if (known == NULL || known->incarnation < row.incarnation) {
        rows_put(&job->tables[TABLE_PLACEMENTS], &row);
    }
    if (job->row.restore.incarnation_max < row.incarnation) {
        job->row.restore.incarnation_max = row.incarnation;
    }
}

static void apply_backed(struct memory_job *job, const struct core_record *core)
{
    struct placement_row *known = rows_find(
        &job->tables[TABLE_PLACEMENTS], &(struct placement_row){.slot = core->backed.slot});
    if (known != NULL && known->incarnation == core->backed.incarnation) {
        known->backed = core->backed.backed;
    }
}

static bool consumed_begins_before(const void *item, const void *user)
{
    return ((const struct store_epoch *)item)->cursor.begin < *(const uint64_t *)user;
}

static bool end_begins_before(const void *item, const void *user)
{
    return ((const struct cursor *)item)->begin < *(const uint64_t *)user;
}

static bool is_verified_up_to(const void *item, const void *user)
{
    return ((const struct verified *)item)->position <= *(const uint64_t *)user;
}

/* What is left of the watermark: it still says which run position resume - 1 is of, or nothing. */
static struct cursor cut_cursor(const struct cursor *cursor, uint64_t up_to, uint64_t resume)
{
    if (cursor->begin < resume && resume <= up_to) {
        return *cursor;
    }
    return (struct cursor){.first = resume, .begin = resume};
}

static void apply_plan(struct memory_job *job, const struct store_record *record)
{
    const struct core_record *core = record->record;
    struct core_restore_job *restore = &job->row.restore;
    uint64_t resume = core->plan.resume;
    rows_put(&job->tables[TABLE_PLANS], &(struct store_plan){.generation = core->plan.generation,
                                            .parent = core->plan.parent,
                                            .resume = resume,
                                            .restarted = core->plan.restarted,
                                            .members = (uint32_t)record->target_count,
                                            .planned_us = record->wall_us});
    struct rows *members = &job->tables[TABLE_MEMBERS];
    members->count = 0;
    for (uint32_t rank = 0; rank < record->target_count; rank++) {
        rows_put(members, &(struct member_row){.rank = rank,
                              .slot = record->placements[rank].slot,
                              .incarnation = record->placements[rank].incarnation});
    }
    rows_filter(&job->tables[TABLE_CONSUMED], consumed_begins_before, &resume);
    rows_filter(&job->tables[TABLE_ENDS], end_begins_before, &resume);
    rows_filter(&job->tables[TABLE_VERIFIED], is_verified_up_to, &resume);
    restore->cursor = cut_cursor(&restore->cursor, job->up_to, resume);
    restore->generation = core->plan.generation;
    restore->resume = resume;
    restore->restarts = core->plan.restarts;
    restore->released = resume;
    job->up_to = resume;
}

static bool is_other_run(const void *item, const void *user)
{
    const struct store_epoch *epoch = item;
    const struct store_epoch *run = user;
    return memory_job_by_epoch(&epoch->cursor, &run->cursor) != 0 ||
           epoch->cursor.begin >= run->cursor.begin;
}

static bool is_another(const void *item, const void *user)
{
    return ((const struct core_checkpoint *)item)->position != *(const uint64_t *)user;
}

bool memory_job_drop_checkpoint(struct memory_job *job, uint64_t position)
{
    struct rows *checkpoints = &job->tables[TABLE_CHECKPOINTS];
    size_t before = checkpoints->count;
    rows_filter(checkpoints, is_another, &position);
    return checkpoints->count < before;
}

/* Runs that a later one of the same epoch replaces, and to which no plan can go back: it would
 * resume at the oldest checkpoint that is kept at the earliest. */
static void drop_replaced(struct memory_job *job, const struct cursor *cursor)
{
    const struct rows *checkpoints = &job->tables[TABLE_CHECKPOINTS];
    if (checkpoints->count == 0) {
        return;
    }
    const struct core_checkpoint *oldest = rows_at(checkpoints, 0);
    const struct store_epoch *kept = NULL;
    for (size_t i = 0; i < job->tables[TABLE_CONSUMED].count; i++) {
        const struct store_epoch *epoch = rows_at(&job->tables[TABLE_CONSUMED], i);
        if (memory_job_by_epoch(&epoch->cursor, cursor) == 0 &&
            epoch->cursor.begin < oldest->position) {
            kept = epoch;
        }
    }
    if (kept != NULL) {
        struct store_epoch run = *kept;
        rows_filter(&job->tables[TABLE_CONSUMED], is_other_run, &run);
    }
}

static void apply_watermark(struct memory_job *job, const struct core_record *core)
{
    struct core_restore_job *restore = &job->row.restore;
    job->up_to = core->watermark.up_to;
    restore->cursor = core->watermark.cursor;
    if (generation_equal(core->watermark.generation, restore->generation)) {
        restore->released = core->watermark.up_to;
    }
}

static void apply_exit(struct memory_job *job, const struct core_record *core)
{
    struct store_task_exit exit = {.slot = core->task_exit.slot,
        .incarnation = core->task_exit.incarnation,
        .state = core->task_exit.state,
        .exit = core->task_exit.exit};
    const struct store_task_exit *known = rows_find(&job->tables[TABLE_EXITS], &exit);
    if (known == NULL || known->incarnation <= exit.incarnation) {
        rows_put(&job->tables[TABLE_EXITS], &exit);
    }
}

static void apply_control(struct memory_job *job, const struct core_record *core)
{
    job->control_of = core->control.generation;
    job->row.restore.halt_at = core->control.halt_at;
    job->row.restore.halt_kind = core->control.halt_kind;
    job->row.restore.halt_stream = core->control.halt_stream;
}

static void apply_stream(struct memory_job *job, const struct core_record *core)
{
    struct stream_row row = {.stream = core->stream.stream,
        .samples = core->stream.samples,
        .shares = core->stream.shares};
    memcpy(row.name, core->stream.name, sizeof row.name);
    rows_put(&job->tables[TABLE_STREAMS], &row);
}

static void apply_queued(struct memory_job *job)
{
    struct core_restore_job *restore = &job->row.restore;
    job->row.started_us = 0;
    job->tables[TABLE_PLACEMENTS].count = 0;
    job->tables[TABLE_MEMBERS].count = 0;
    job->control_of = (struct generation){0};
    restore->halt_kind = HALT_NONE;
    restore->halt_at = 0;
    restore->halt_stream = 0;
    restore->started = false;
    restore->done = false;
    restore->done_position = 0;
}

static void apply_checkpoint(struct memory_job *job, const struct core_checkpoint *saved)
{
    rows_put(&job->tables[TABLE_CHECKPOINTS], saved);
    if (saved->digest != 0) {
        rows_put(&job->tables[TABLE_VERIFIED],
            &(struct verified){.position = saved->position, .digest = saved->digest});
    }
}

static void apply_ended(struct memory_job *job, const struct store_record *record)
{
    const struct core_ending *ended = &record->record->ended;
    job->row.state = ended->state;
    job->row.code = ended->code;
    job->row.exit_code = ended->exit_code;
    job->row.ended_us = record->wall_us;
    memcpy(job->text, ended->text, sizeof job->text);
}

static void apply_lost(struct memory_job *job, const struct core_checkpoint_lost *lost)
{
    (void)memory_job_drop_checkpoint(job, lost->position);
    if (lost->position >= job->row.lost.position) {
        job->row.lost = *lost;
    }
}

static void apply_ending(struct memory_job *job, const struct store_record *record)
{
    job->row.restore.ending = true;
    job->row.restore.ending_as = record->record->ended;
    job->ending_at = record->committed;
}

static uint64_t last_event(const struct memory_job *job)
{
    const struct rows *events = &job->tables[TABLE_EVENTS];
    const struct event_row *newest = events->count > 0 ? rows_at(events, events->count - 1) : NULL;
    return newest != NULL ? newest->event.number : 0;
}

static bool event_is_kept(const void *item, const void *user)
{
    uint64_t number = ((const struct event_row *)item)->event.number;
    return number <= LIMIT_EVENTS_FIRST || number > *(const uint64_t *)user;
}

void memory_job_add_event(struct memory_job *job, const struct history_event *event)
{
    struct event_row row = {.event = *event};
    row.event.number = last_event(job) + 1;
    memcpy(row.worker, event->worker, strnlen(event->worker, sizeof row.worker - 1));
    memcpy(row.roster, event->roster, strnlen(event->roster, sizeof row.roster - 1));
    memcpy(row.text, event->text, strnlen(event->text, sizeof row.text - 1));
    rows_put(&job->tables[TABLE_EVENTS], &row);
    if (row.event.number > LIMIT_EVENTS) {
        uint64_t dropped = row.event.number - (LIMIT_EVENTS - LIMIT_EVENTS_FIRST);
        rows_filter(&job->tables[TABLE_EVENTS], event_is_kept, &dropped);
    }
}

void memory_job_history(const struct memory_job *job, uint64_t after, size_t max,
    void (*visit)(void *user, const struct history_event *event), void *user, uint64_t *ret_last)
{
    const struct rows *events = &job->tables[TABLE_EVENTS];
    size_t visited = 0;
    for (size_t i = 0; i < events->count && visited < max; i++) {
        const struct event_row *row = rows_at(events, i);
        struct history_event event = row->event;
        event.worker = row->worker;
        event.roster = row->roster;
        event.text = row->text;
        if (event.number > after) {
            visit(user, &event);
            visited++;
        }
    }
    *ret_last = last_event(job);
}

void memory_job_apply(struct memory_job *job, const struct store_record *record)
{
    const struct core_record *core = record->record;
    struct core_restore_job *restore = &job->row.restore;
    switch (core->type) {
    case CORE_RECORD_STARTED:
        job->row.started_us = record->wall_us;
        job->row.first_us = job->row.first_us == 0 ? record->wall_us : job->row.first_us;
        restore->started = true;
        restore->incarnation_max = core->incarnation_max;
        for (size_t i = 0; i < record->target_count; i++) {
            memory_job_put_placement(job, &record->placements[i]);
        }
        break;
    case CORE_RECORD_QUEUED:
        apply_queued(job);
        break;
    case CORE_RECORD_TASK:
        memory_job_put_placement(job, &(struct store_placement){.slot = core->task.slot,
                                          .incarnation = core->task.incarnation,
                                          .attempts = core->task.attempts,
                                          .attempts_generation = core->task.attempts_generation,
                                          .backed_by = core->task.backed_by,
                                          .worker = core->task.worker});
        break;
    case CORE_RECORD_BACKED:
        apply_backed(job, core);
        break;
    case CORE_RECORD_PLAN:
        apply_plan(job, record);
        break;
    case CORE_RECORD_CONTROL:
        apply_control(job, core);
        break;
    case CORE_RECORD_WATERMARK:
        apply_watermark(job, core);
        break;
    case CORE_RECORD_CONSUMED:
        rows_put(
            &job->tables[TABLE_CONSUMED], &(struct store_epoch){.cursor = core->consumption.cursor,
                                              .consumption = core->consumption.consumption});
        drop_replaced(job, &core->consumption.cursor);
        break;
    case CORE_RECORD_STREAM:
        apply_stream(job, core);
        break;
    case CORE_RECORD_END_OF_DATA:
        rows_put(&job->tables[TABLE_ENDS], &core->end_of_data);
        break;
    case CORE_RECORD_CHECKPOINT:
        apply_checkpoint(job, &core->checkpoint);
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        apply_lost(job, &core->lost);
        break;
    case CORE_RECORD_ORIGIN:
        job->row.restores = true;
        job->row.origin = core->checkpoint;
        break;
    case CORE_RECORD_VERIFIED:
        rows_put(&job->tables[TABLE_VERIFIED], &core->verified);
        break;
    case CORE_RECORD_DONE:
        restore->done = true;
        restore->done_position = core->done.position;
        break;
    case CORE_RECORD_TASK_EXIT:
        apply_exit(job, core);
        break;
    case CORE_RECORD_ENDING:
        apply_ending(job, record);
        break;
    case CORE_RECORD_PUBLISHED:
        restore->published = core->published;
        break;
    case CORE_RECORD_DIVERGED:
        restore->diverged = core->diverged;
        break;
    case CORE_RECORD_CHECKPOINT_DROPPED:
        memory_job_drop_checkpoint(job, core->dropped);
        break;
    case CORE_RECORD_ENDED:
        apply_ended(job, record);
        break;
    default: /* JOB, of which memory_job_init had all; FORGOTTEN and those of no job: the store's */
        break;
    }
}
