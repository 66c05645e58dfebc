/* SPDX-License-Identifier: Apache-2.0
 * The history of jobs: which events follow from the records of a turn, from the core's state after
 * them and from messages. They are stored in the transaction of the turn, after its records. No
 * step alone makes an event. turn.c, records.c and engine.c call this. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "common/base/clock.h"
#include "coordinator/engine/engine_state.h"

struct turn_event {
    struct job_id job;
    struct history_event event; /* its texts are these: */
    char worker[LIMIT_NAME_BYTES];
    char roster[LIMIT_ROSTER_BYTES];
    char text[LIMIT_TEXT_BYTES];
};

static bool history_make_room(struct engine *engine)
{
    struct turn_history *turn = &engine->history;
    if (turn->count < turn->capacity) {
        return true;
    }
    size_t capacity = turn->capacity > 0 ? turn->capacity * 2 : 16;
    struct turn_event *grown = realloc(turn->items, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    turn->items = grown;
    turn->capacity = capacity;
    return true;
}

/* An event of the entry's job, now; the caller fills in what its kind has. NULL: no memory; the
 * event is left out, because no decision uses it. */
static struct turn_event *history_add(
    struct engine *engine, const struct directory_entry *entry, enum history_kind kind)
{
    if (engine->broken != CADRE_OK || !history_make_room(engine)) {
        return NULL;
    }
    struct turn_event *item = &engine->history.items[engine->history.count++];
    *item = (struct turn_event){.job = entry->id,
        .event = {.time_us = clock_wall_us(),
            .kind = kind,
            .generation = entry->generation,
            .position = engine_position(engine, entry),
            .slot = HISTORY_SLOT_NONE}};
    return item;
}

static void history_add_text(struct engine *engine, const struct directory_entry *entry,
    enum history_kind kind, const char *text)
{
    struct turn_event *item = history_add(engine, entry, kind);
    if (item != NULL) {
        snprintf(item->text, sizeof item->text, "%s", text);
    }
}

/* With what the core shows of the job. */
static struct turn_event *history_add_shown(
    struct engine *engine, const struct directory_entry *entry, enum history_kind kind)
{
    struct turn_event *item = history_add(engine, entry, kind);
    if (item != NULL && !core_job_text(engine->core, entry->id, item->text)) {
        item->text[0] = '\0'; /* it ended in the same step */
    }
    return item;
}

/* ---- generations ---- */

static int by_slot(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a;
    uint32_t other = *(const uint32_t *)b;
    return (one > other) - (one < other);
}

/* "0-2,5" of slots in order; ",..." in place of those for which there is no room. */
static void describe_roster(const uint32_t *slots, size_t count, char text[LIMIT_ROSTER_BYTES])
{
    static const char more[] = ",...";
    size_t length = 0;
    for (size_t i = 0; i < count;) {
        char range[32];
        size_t last = i;
        while (last + 1 < count && slots[last + 1] == slots[last] + 1) {
            last++;
        }
        int bytes = last > i
                        ? snprintf(range, sizeof range, "%s%" PRIu32 "-%" PRIu32, i > 0 ? "," : "",
                              slots[i], slots[last])
                        : snprintf(range, sizeof range, "%s%" PRIu32, i > 0 ? "," : "", slots[i]);
        if (length + (size_t)bytes + sizeof more > LIMIT_ROSTER_BYTES) {
            memcpy(text + length, more, sizeof more);
            return;
        }
        memcpy(text + length, range, (size_t)bytes + 1);
        length += (size_t)bytes;
        i = last + 1;
    }
}

static void history_fill_roster(const struct placements *placements, struct turn_event *item)
{
    uint32_t *slots = calloc(placements->count + 1, sizeof *slots);
    item->event.tasks = (uint32_t)placements->count;
    if (slots == NULL) {
        return; /* the event counts them */
    }
    for (size_t i = 0; i < placements->count; i++) {
        slots[i] = placements->items[i].slot;
    }
    qsort(slots, placements->count, sizeof *slots, by_slot);
    describe_roster(slots, placements->count, item->roster);
    free(slots);
}

static uint64_t hash_of(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}

/* The core's note is of the newest loss, which may be that of an earlier generation. */
static void history_note_cause(struct directory_history *history, struct turn_event *item)
{
    uint32_t members = item->event.tasks;
    uint64_t hash = hash_of(item->text);
    if (hash == history->note_hash && item->event.generation > 1) {
        bool joined = members > history->members;
        uint32_t by = joined ? members - history->members : history->members - members;
        if (by == 0) {
            item->text[0] = '\0';
        } else {
            snprintf(item->text, sizeof item->text, "%" PRIu32 " task%s %s", by, by == 1 ? "" : "s",
                joined ? "joined" : "left");
        }
    }
    history->note_hash = hash;
    history->members = members;
}

static void history_note_plan(struct engine *engine, struct directory_entry *entry,
    const struct core_record *record, const struct placements *placements)
{
    struct directory_history *history = &entry->history;
    uint64_t resume = record->plan.resume;
    struct turn_event *item = history_add_shown(engine, entry, HISTORY_GENERATION);
    if (item == NULL || placements == NULL) {
        return;
    }
    item->event.generation = record->plan.generation.number;
    item->event.position = resume;
    item->event.restarted = record->plan.restarted;
    item->event.undone = history->reached > resume ? history->reached - resume : 0;
    history_fill_roster(placements, item);
    history_note_cause(history, item);
    history->reached = resume;
}

/* ---- tasks ---- */

/* A record of a lost task does not explain the loss; the core's text does, of one of them. */
static void describe_loss(
    const struct engine *engine, const struct directory_entry *entry, struct turn_event *item)
{
    char shown[LIMIT_TEXT_BYTES];
    char start[32];
    snprintf(start, sizeof start, "task %" PRIu32 " ", item->event.slot);
    if (core_job_text(engine->core, entry->id, shown) &&
        strncmp(shown, start, strlen(start)) == 0) {
        memcpy(item->text, shown, sizeof shown);
    }
}

static void history_note_exit(
    struct engine *engine, struct directory_entry *entry, const struct core_record *record)
{
    bool lost = record->task_exit.state == TASK_LOST;
    const struct task_exit *exit = &record->task_exit.exit;
    uint32_t slot = record->task_exit.slot;
    struct turn_event *item =
        history_add(engine, entry, lost ? HISTORY_TASK_LOST : HISTORY_TASK_ENDED);
    if (item == NULL) {
        return;
    }
    item->event.slot = slot;
    item->event.incarnation = record->task_exit.incarnation;
    item->event.exit_code = lost ? 0 : exit->code;
    item->event.exit_signal = lost ? 0 : exit->signal;
    snprintf(item->text, sizeof item->text, "%s", exit->text);
    if (entry->tasks[slot].incarnation == record->task_exit.incarnation) {
        snprintf(item->worker, sizeof item->worker, "%s", entry->tasks[slot].worker);
    }
    if (lost) {
        describe_loss(engine, entry, item);
    }
}

void engine_history_task(struct engine *engine, struct task_ref task)
{
    struct directory_entry *entry = directory_find(&engine->directory, task.job);
    enum job_state live;
    if (entry == NULL || task.slot >= entry->task_count ||
        !core_job_state(engine->core, task.job, &live)) {
        return;
    }
    struct core_task_view view;
    core_job_task(engine->core, task.job, task.slot, &view);
    struct directory_task *known = &entry->tasks[task.slot];
    if (view.incarnation != task.incarnation || view.state != TASK_RUNNING ||
        known->started == task.incarnation) {
        return; /* of one that was replaced, or a message that came again */
    }
    known->started = task.incarnation;
    struct turn_event *item = history_add(engine, entry, HISTORY_TASK_STARTED);
    if (item != NULL) {
        item->event.slot = task.slot;
        item->event.incarnation = task.incarnation;
        snprintf(item->worker, sizeof item->worker, "%s", known->worker);
    }
}

/* ---- workers ---- */

/* Of each job that has not ended and has tasks on the worker. */
static void history_add_drained(struct engine *engine, const char *worker, const char *text)
{
    for (size_t i = 0; i < engine->directory.count; i++) {
        const struct directory_entry *entry = engine->directory.entries[i];
        struct turn_event *item =
            !job_state_is_final(entry->state) && engine_worker_has_job(engine, worker, entry->id)
                ? history_add(engine, entry, HISTORY_DRAINED)
                : NULL;
        if (item != NULL) {
            snprintf(item->worker, sizeof item->worker, "%s", worker);
            snprintf(item->text, sizeof item->text, "%s", text);
        }
    }
}

static void history_note_drained(struct engine *engine, const struct core_drained *drained)
{
    char text[LIMIT_TEXT_BYTES];
    snprintf(text, sizeof text, "worker %s is drained by %s%s%s", drained->worker, drained->who,
        drained->why[0] != '\0' ? ": " : "", drained->why);
    history_add_drained(engine, drained->worker, text);
}

void engine_history_leaves(struct engine *engine, const char *worker)
{
    char text[LIMIT_TEXT_BYTES];
    snprintf(text, sizeof text, "worker %s leaves: its daemon is being stopped", worker);
    history_add_drained(engine, worker, text);
}

/* ---- stalls ---- */

static void history_note_stall(
    struct engine *engine, struct directory_entry *entry, const struct core_job_view *view)
{
    struct directory_history *history = &entry->history;
    bool known = view->stall.slot != UINT32_MAX;
    bool again = history->stalled && history->stall_position == view->stall.step;
    if (again && (history->culprit_known || !known)) {
        return;
    }
    struct turn_event *item = history_add_shown(engine, entry, HISTORY_STALLED);
    if (item == NULL) {
        return;
    }
    item->event.position = view->stall.step;
    item->event.waited_us = view->stall.waited_us;
    if (known) {
        struct core_task_view task;
        core_job_task(engine->core, entry->id, view->stall.slot, &task);
        item->event.slot = view->stall.slot;
        item->event.incarnation = task.incarnation;
        snprintf(item->worker, sizeof item->worker, "%s", task.worker_name);
        size_t length = strlen(item->text);
        snprintf(item->text + length, sizeof item->text - length, "%s",
            task.link.n == 0 ? "; nothing comes from its worker" : "");
    }
    if (!again) {
        history->stalled_us = item->event.time_us - view->stall.waited_us;
    }
    history->stalled = true;
    history->stall_position = view->stall.step;
    history->stall_generation = entry->generation;
    history->culprit_known = known;
}

static void history_note_went_on(
    struct engine *engine, struct directory_entry *entry, const struct core_job_view *view)
{
    struct directory_history *history = &entry->history;
    if (!view->formed || (view->committed <= history->stall_position &&
                             view->generation.number <= history->stall_generation)) {
        return; /* the end of the step, of the generation or of the job ends the stall */
    }
    history->stalled = false;
    struct turn_event *item = history_add(engine, entry, HISTORY_WENT_ON);
    if (item != NULL) {
        item->event.position = view->committed;
        item->event.waited_us = item->event.time_us > history->stalled_us
                                    ? item->event.time_us - history->stalled_us
                                    : 0;
    }
}

void engine_history_changed(struct engine *engine, struct job_id job)
{
    struct directory_entry *entry = directory_find(&engine->directory, job);
    struct core_job_view view;
    if (entry == NULL || !core_job(engine->core, job, &view)) {
        return;
    }
    if (view.committed > entry->history.reached) {
        entry->history.reached = view.committed;
    }
    if (view.stall.slow) {
        history_note_stall(engine, entry, &view);
    } else if (entry->history.stalled) {
        history_note_went_on(engine, entry, &view);
    }
}

/* ---- records ---- */

static void history_note_submitted(struct engine *engine, const struct directory_entry *entry)
{
    struct turn_event *item = history_add(engine, entry, HISTORY_SUBMITTED);
    if (item == NULL) {
        return;
    }
    item->event.tasks = entry->task_count;
    if (entry->restores) {
        snprintf(item->text, sizeof item->text, "goes on from a checkpoint of step %" PRIu64,
            entry->origin.position);
    }
}

static void history_note_ending(struct engine *engine, const struct directory_entry *entry,
    enum history_kind kind, const struct core_ending *ended)
{
    struct turn_event *item = history_add(engine, entry, kind);
    if (item != NULL) {
        item->event.state = ended->state;
        item->event.code = ended->code;
        item->event.exit_code = ended->exit_code;
        snprintf(item->text, sizeof item->text, "%s", ended->text);
    }
}

static void history_note_halt(
    struct engine *engine, const struct directory_entry *entry, const struct core_record *record)
{
    if (record->control.halt_kind == HALT_NONE) {
        return; /* it is lifted */
    }
    struct turn_event *item = history_add_shown(engine, entry, HISTORY_HALTED);
    if (item == NULL) {
        return;
    }
    item->event.position = record->control.halt_at;
    if (record->control.halt_kind == HALT_REGROUP) {
        snprintf(item->text, sizeof item->text,
            "all tasks stop at step %" PRIu64 " to form another generation",
            record->control.halt_at);
    }
}

static void history_note_at(struct engine *engine, const struct directory_entry *entry,
    enum history_kind kind, uint64_t position, const char *text)
{
    struct turn_event *item = history_add(engine, entry, kind);
    if (item != NULL) {
        item->event.position = position;
        snprintf(item->text, sizeof item->text, "%s", text);
    }
}

/* It may have slots again already, so what the core shows is of another time. */
static void history_note_preempted(struct engine *engine, const struct directory_entry *entry)
{
    struct core_job_view view;
    struct turn_event *item = history_add(engine, entry, HISTORY_PREEMPTED);
    if (item != NULL && core_job(engine->core, entry->id, &view) && view.has_checkpoint) {
        snprintf(item->text, sizeof item->text,
            "saved at step %" PRIu64 "; goes on from there when it has slots",
            view.checkpoint.position);
    }
}

static void history_note_diverged(
    struct engine *engine, const struct directory_entry *entry, const struct core_record *record)
{
    struct turn_event *item = history_add_shown(engine, entry, HISTORY_DIVERGED);
    if (item != NULL) {
        item->event.generation = record->diverged.number;
        item->event.position = record->diverged.position;
    }
}

void engine_history_record(struct engine *engine, struct directory_entry *entry,
    const struct core_record *record, const struct placements *placements)
{
    struct turn_event *item;
    switch (record->type) {
    case CORE_RECORD_JOB:
        history_note_submitted(engine, entry);
        break;
    case CORE_RECORD_STARTED:
        item = history_add(engine, entry, HISTORY_STARTED);
        if (item != NULL) {
            item->event.tasks = placements != NULL ? (uint32_t)placements->count : 0;
        }
        break;
    case CORE_RECORD_PLAN:
        history_note_plan(engine, entry, record, placements);
        break;
    case CORE_RECORD_CONTROL:
        history_note_halt(engine, entry, record);
        break;
    case CORE_RECORD_CHECKPOINT:
        history_note_at(engine, entry, HISTORY_CHECKPOINT, record->checkpoint.position, "");
        break;
    case CORE_RECORD_CHECKPOINT_LOST:
        history_note_at(
            engine, entry, HISTORY_CHECKPOINT_LOST, record->lost.position, record->lost.why);
        break;
    case CORE_RECORD_DIVERGED:
        history_note_diverged(engine, entry, record);
        break;
    case CORE_RECORD_QUEUED:
        history_note_preempted(engine, entry);
        break;
    case CORE_RECORD_TASK_EXIT:
        history_note_exit(engine, entry, record);
        break;
    case CORE_RECORD_ENDING:
        history_note_ending(engine, entry, HISTORY_ENDING, &record->ended);
        break;
    case CORE_RECORD_ENDED:
        history_note_ending(engine, entry, HISTORY_ENDED, &record->ended);
        entry->history.stalled = false;
        break;
    case CORE_RECORD_DRAINED:
        history_note_drained(engine, &record->drained);
        break;
    default:
        break; /* of each step, or beside one of these */
    }
    if (entry != NULL && entry->history.stalled) {
        engine_history_changed(engine, entry->id); /* after a start the core does not report it */
    }
}

/* ---- a start of the coordinator ---- */

static void take_stored(void *user, const struct history_event *event)
{
    struct directory_entry *entry = user;
    struct directory_history *history = &entry->history;
    switch (event->kind) {
    case HISTORY_TASK_STARTED:
        if (event->slot < entry->task_count) {
            entry->tasks[event->slot].started = event->incarnation;
        }
        break;
    case HISTORY_GENERATION:
        history->members = event->tasks;
        history->note_hash = hash_of(event->text);
        break;
    case HISTORY_STALLED:
        history->stalled_us = event->time_us - event->waited_us;
        history->stall_position = event->position;
        history->stall_generation = event->generation;
        history->culprit_known = event->slot != HISTORY_SLOT_NONE;
        history->stalled = true;
        break;
    case HISTORY_WENT_ON:
        history->stalled = false;
        break;
    default:
        break;
    }
}

cadre_status engine_history_restore(
    struct engine *engine, struct directory_entry *entry, struct cadre_error *error)
{
    uint64_t last;
    entry->history.reached = entry->position;
    CADRE_TRY(engine->store->ops->history(
        engine->store, entry->id, 0, LIMIT_EVENTS, take_stored, entry, &last, error));
    if (entry->started_us > 0) {
        history_add_text(engine, entry, HISTORY_COORDINATOR_RESTARTED,
            "the coordinator was started again, or another one leads");
    }
    return CADRE_OK;
}

/* ---- for the store ---- */

void engine_history_fill(const struct engine *engine, size_t i, struct store_record *ret_record)
{
    struct turn_event *item = &engine->history.items[i];
    item->event.worker = item->worker;
    item->event.roster = item->roster;
    item->event.text = item->text;
    *ret_record = (struct store_record){.event = &item->event, .job = item->job};
}

void engine_history_free(struct turn_history *history)
{
    free(history->items);
    *history = (struct turn_history){0};
}
