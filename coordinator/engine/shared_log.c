/* SPDX-License-Identifier: Apache-2.0
 * Turns whose records go into a log that several coordinators share. An entry takes a round trip,
 * so nothing waits for it here: messages that rest on it are delayed, and all others, the releases
 * of jobs without such an entry among them, are sent at once.
 *
 *   what is sent                          waits for
 *   release, abort, notice of a change    an entry that an earlier message of the same job waits
 *                                         for, else nothing
 *   all else                              the entry of its turn, which may have no records: an old
 *                                         leader, too, may release or abort (a task of a newer
 *                                         generation takes no notice), but must not reset, stop,
 *                                         refuse or answer
 *
 * Messages of a job stay in order, because one that waits lets those behind it wait. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "coordinator/engine/engine_state.h"

/* ---- records ---- */

/* What an old leader may send, too. */
static bool is_harmless(const struct core_action *action)
{
    return outdated_is_message(action, CORE_MESSAGE_RELEASE) ||
           outdated_is_message(action, CORE_MESSAGE_ABORT) ||
           action->type == CORE_ACTION_JOB_CHANGED || action->type == CORE_ACTION_JOB_ENDED;
}

static bool awaits_entry(const struct core_action *action)
{
    return action->type == CORE_ACTION_RECORD ? action->record.sync : !is_harmless(action);
}

static bool turn_awaits_entry(const struct engine *engine)
{
    if (engine->removals.asked > 0) {
        return true;
    }
    for (size_t i = 0; i < engine->turn.count; i++) {
        if (awaits_entry(&engine->turn.items[i])) {
            return true;
        }
    }
    return false;
}

static struct job_id job_of(const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_NOTIFY_JOB:
        return action->notify_job.job;
    case CORE_ACTION_NOTIFY_TASK:
        return action->notify_task.task.job;
    case CORE_ACTION_STOP_TASK:
        return action->stop_task.task.job;
    case CORE_ACTION_START_TASKS:
        return action->start_tasks.job;
    case CORE_ACTION_FORGET_JOB:
        return action->forget_job.job;
    case CORE_ACTION_START_JOB:
    case CORE_ACTION_STOP_JOB:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
        return action->job;
    case CORE_ACTION_ANSWER:
        return action->answer.job;
    case CORE_ACTION_RECORD:
        return action->record.job;
    case CORE_ACTION_WELCOME:
    case CORE_ACTION_REFUSE:
        break;
    }
    return (struct job_id){0};
}

static cadre_status keep_lagging(struct engine *engine, struct cadre_error *error)
{
    for (size_t i = 0; i < engine->turn.count; i++) {
        if (engine->turn.items[i].type != CORE_ACTION_RECORD) {
            continue;
        }
        const struct core_record *record = &engine->turn.items[i].record;
        CADRE_ASSERT(!record->sync && !placements_wanted(record) && record->job.n != 0);
        struct directory_entry *entry = directory_find(&engine->directory, record->job);
        CADRE_ASSERT(entry != NULL);
        if (!lagging_add(&engine->log.lagging, record, &entry->lagging)) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for what the next entry records");
        }
        engine->unsynced_us = engine->unsynced ? engine->unsynced_us : engine->now_us;
        engine->unsynced = true;
    }
    return CADRE_OK;
}

/* Records that were kept, `kept` of them, then these. */
static cadre_status append(struct engine *engine, const struct core_record *const *kept,
    size_t kept_count, const struct store_record *records, size_t count, bool waits,
    struct cadre_error *error)
{
    const struct engine_log *log = engine->options.log;
    size_t all = kept_count + count;
    CADRE_FREE_AT_EXIT struct store_record *joined = calloc(all + 1, sizeof *joined);
    if (joined == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for an entry of %zu records", all);
    }
    for (size_t i = 0; i < kept_count; i++) {
        joined[i] = (struct store_record){.record = kept[i]};
    }
    if (count > 0) {
        memcpy(joined + kept_count, records, count * sizeof *records);
    }
    CADRE_TRY(log->append(log->user, joined, all, waits, error));
    engine->log.appended++;
    engine->log.waited = waits ? engine->log.appended : engine->log.waited;
    engine->counts.commits += all > 0;
    engine->history.count = 0;
    return CADRE_OK;
}

static cadre_status no_memory(size_t records, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "no memory to list %zu records that an entry takes along", records);
}

/* All that was kept, and the events. */
static cadre_status append_due(struct engine *engine, const struct store_record *events,
    size_t event_count, struct cadre_error *error)
{
    struct lagging *lagging = &engine->log.lagging;
    size_t count = lagging->count;
    CADRE_FREE_AT_EXIT const struct core_record **kept = malloc((count + 1) * sizeof(*kept));
    if (kept == NULL) {
        return no_memory(count, error);
    }
    lagging_list(lagging, kept);
    CADRE_TRY(append(engine, kept, count, events, event_count, false, error));
    lagging_clear(lagging);
    engine->unsynced = false;
    return CADRE_OK;
}

static size_t concern_count(const struct engine *engine)
{
    return engine->turn.count + engine->removals.count;
}

/* The job that action, or removal, `i` of the turn records or sends something of; NULL: none. */
static struct directory_entry *concern_at(const struct engine *engine, size_t i)
{
    if (i >= engine->turn.count) {
        return directory_find(
            &engine->directory, engine->removals.items[i - engine->turn.count].job);
    }
    const struct core_action *action = &engine->turn.items[i];
    return is_harmless(action) ? NULL : directory_find(&engine->directory, job_of(action));
}

/* Lists what was kept of the jobs that the turn records or sends something of. */
static size_t list_concerned(struct engine *engine, const struct core_record **kept)
{
    size_t count = 0;
    for (size_t i = 0; i < concern_count(engine); i++) {
        struct directory_entry *entry = concern_at(engine, i);
        if (entry != NULL && !entry->lagging_listed) {
            entry->lagging_listed = true;
            lagging_list_of(&engine->log.lagging, &entry->lagging, kept + count);
            count += lagging_count_of(&engine->log.lagging, &entry->lagging);
        }
    }
    return count;
}

static void end_list(struct engine *engine, bool taken)
{
    for (size_t i = 0; i < concern_count(engine); i++) {
        struct directory_entry *entry = concern_at(engine, i);
        if (entry != NULL && entry->lagging_listed) {
            entry->lagging_listed = false;
            if (taken) {
                lagging_take_of(&engine->log.lagging, &entry->lagging);
            }
        }
    }
}

/* The turn, and in front of it what was kept of its jobs: else a job's records would not be in
 * order, and what a message was decided by would not be in the log when it is sent. What was kept
 * of other jobs has time, because no order of records of two jobs means anything. */
static cadre_status append_turn(struct engine *engine, const struct store_record *records,
    size_t count, struct cadre_error *error)
{
    struct lagging *lagging = &engine->log.lagging;
    CADRE_FREE_AT_EXIT const struct core_record **kept =
        malloc((lagging->count + 1) * sizeof(*kept));
    if (kept == NULL) {
        return no_memory(lagging->count, error);
    }
    size_t kept_count = list_concerned(engine, kept);
    cadre_status status = append(engine, kept, kept_count, records, count, true, error);
    end_list(engine, status == CADRE_OK);
    CADRE_TRY(status);
    engine->unsynced = lagging->count > 0;
    return CADRE_OK;
}

/* Later messages of a job wait for what this turn records of it, and readers see it then. */
static void note_awaited(struct engine *engine)
{
    for (size_t i = 0; i < engine->turn.count; i++) {
        const struct core_action *action = &engine->turn.items[i];
        if (action->type != CORE_ACTION_RECORD || action->record.job.n == 0) {
            continue;
        }
        struct directory_entry *entry = directory_find(&engine->directory, action->record.job);
        CADRE_ASSERT(entry != NULL);
        entry->entry = action->record.sync ? engine->log.waited : entry->entry;
        if (action->record.type == CORE_RECORD_JOB || action->record.type == CORE_RECORD_ENDED) {
            bool ended = action->record.type == CORE_RECORD_ENDED;
            const struct delayed_item item = {.kind = ended ? DELAYED_ENDED : DELAYED_SUBMITTED,
                .entry = engine->log.waited,
                .job = entry->id};
            engine_log_delay(engine, &item, NULL, 0);
        }
    }
}

cadre_status engine_log_turn(struct engine *engine, const struct store_record *records,
    size_t count, const struct store_record *events, bool due, struct cadre_error *error)
{
    size_t event_count = engine->history.count;
    engine->log.waits = turn_awaits_entry(engine);
    if (engine->log.waits) {
        CADRE_TRY(append_turn(engine, records, count, error));
        note_awaited(engine);
        engine->term_unstored = false;
        return CADRE_OK;
    }
    engine->removals.count = 0; /* they wait for an entry */
    CADRE_TRY(keep_lagging(engine, error));
    if (event_count > 0 && !engine->unsynced) {
        engine->unsynced = true;
        engine->unsynced_us = engine->now_us;
    }
    return due ? append_due(engine, events, event_count, error) : CADRE_OK;
}

/* ---- messages ---- */

/* Of a message that an old leader may send, too. A welcome lets them wait as well, because it is
 * the first message on its link. */
static uint64_t awaited_by_harmless(
    const struct engine *engine, const struct directory_entry *entry)
{
    const struct shared_log *log = &engine->log;
    bool behind = log->welcome > log->stored || (entry != NULL && entry->entry > log->stored);
    return behind ? log->waited : 0;
}

uint64_t engine_log_awaited(struct engine *engine, const struct core_action *action)
{
    if (engine->options.log == NULL) {
        return 0;
    }
    struct directory_entry *entry = directory_find(&engine->directory, job_of(action));
    if (is_harmless(action)) {
        return awaited_by_harmless(engine, entry);
    }
    CADRE_ASSERT(engine->log.waits);
    if (entry != NULL) {
        entry->entry = engine->log.waited;
    }
    if (action->type == CORE_ACTION_WELCOME) {
        engine->log.welcome = engine->log.waited;
    }
    return engine->log.waited;
}

uint64_t engine_log_awaited_change(const struct engine *engine, const struct directory_entry *entry)
{
    return engine->options.log != NULL ? awaited_by_harmless(engine, entry) : 0;
}

void engine_log_delay(
    struct engine *engine, const struct delayed_item *item, const void *bytes, size_t size)
{
    CADRE_ASSERT(item->entry > engine->log.stored && item->entry == engine->log.waited);
    if (!delayed_add(&engine->log.delayed, item, bytes, size)) {
        struct cadre_error error;
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for a message of %zu bytes that waits for entry %llu of the log", size,
            (unsigned long long)item->entry);
        engine_break(engine, &error);
    }
}

void engine_log_delay_down(
    struct engine *engine, uint64_t entry, struct link_id link, const struct agent_down *down)
{
    struct cadre_error error;
    struct wire_buffer *packed = &engine->log.packed;
    wire_buffer_clear(packed);
    if (wire_pack_agent_down(down, packed, &error) != CADRE_OK) {
        engine_break(engine, &error);
        return;
    }
    const struct delayed_item item = {.kind = DELAYED_DOWN, .entry = entry, .link = link};
    engine_log_delay(engine, &item, packed->bytes, packed->size);
}

static void send_down(struct engine *engine, const struct delayed_item *item)
{
    struct agent_down down;
    struct cadre_error error;
    if (engine->log.arena == NULL) {
        engine->log.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    }
    cadre_status status =
        engine->log.arena == NULL
            ? cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory to send a message")
            : wire_unpack_agent_down(item->bytes, item->size, engine->log.arena, &down, &error);
    if (status != CADRE_OK) {
        engine_break(engine, &error);
        return;
    }
    engine->sink.down(engine->user, item->link, &down);
    wire_arena_reset(engine->log.arena);
}

static void send_item(struct engine *engine, const struct delayed_item *item)
{
    const char *text = item->bytes != NULL ? (const char *)item->bytes : "";
    struct directory_entry *entry = directory_find(&engine->directory, item->job);
    switch (item->kind) {
    case DELAYED_DOWN:
        send_down(engine, item);
        break;
    case DELAYED_REFUSE:
        engine->sink.refuse(engine->user, item->link, item->code, text);
        break;
    case DELAYED_ANSWER:
        engine->sink.answer(
            engine->user, item->call, item->code, item->job, item->queued_before, text);
        break;
    case DELAYED_CHANGED:
        if (entry != NULL) { /* else it was removed meanwhile */
            engine->sink.job_changed(engine->user, item->job);
        }
        break;
    case DELAYED_FORGOTTEN:
        directory_remove(&engine->directory, item->job);
        engine->sink.job_forgotten(engine->user, item->job);
        break;
    case DELAYED_DROPPED:
        engine->sink.checkpoint_dropped(
            engine->user, item->job, (const struct core_checkpoint *)(const void *)item->bytes);
        break;
    case DELAYED_SUBMITTED:
        if (entry != NULL) {
            engine_show_submitted(engine, entry);
        }
        break;
    case DELAYED_ENDED:
        if (entry != NULL) {
            engine_show_ended(entry);
        }
        break;
    }
}

bool engine_log_has_stored(const struct engine *engine)
{
    const struct delayed *delayed = &engine->log.delayed;
    return delayed->count > 0 && delayed->items[delayed->first].entry <= engine->log.stored;
}

void engine_log_send_stored(struct engine *engine)
{
    struct delayed_item item;
    while (engine->broken == CADRE_OK &&
           delayed_take(&engine->log.delayed, engine->log.stored, &item)) {
        send_item(engine, &item);
        free(item.bytes);
    }
}

/* ---- what the log's reader reports ---- */

void engine_log_stored(struct engine *engine, uint64_t entry)
{
    CADRE_ASSERT(engine->options.log != NULL && !engine->sending);
    CADRE_ASSERT(entry >= engine->log.stored && entry <= engine->log.appended);
    engine->log.stored = entry;
}

void engine_suspend(struct engine *engine, uint64_t now_us, const struct cadre_error *why)
{
    CADRE_ASSERT(engine->options.log != NULL && !engine->sending);
    hold_suspends(&engine->hold, now_us, why);
}

void engine_resume(struct engine *engine, uint64_t now_us)
{
    CADRE_ASSERT(engine->options.log != NULL && !engine->sending);
    hold_ends(&engine->hold, now_us);
}

void engine_log_free(struct shared_log *log)
{
    lagging_free(&log->lagging);
    delayed_free(&log->delayed);
    wire_buffer_free(&log->packed);
    wire_arena_free(log->arena);
}
