/* SPDX-License-Identifier: Apache-2.0
 * Collectives outside of steps: each is run through a mesh that records its results, kept as the
 * last one, and played back to a task that was frozen in it. reductions/, state/, input/ and
 * variables/ call it. */
#include "worker/library/runtime/regroup/between_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/regroup.h"

/* One result: a header, then its bytes. A record is a row of them. */
struct between_steps_entry {
    uint64_t bytes;
    uint32_t kind;
    int32_t status; /* CADRE_OK or INVALID_ARGUMENT: then the bytes are the message */
};

enum { KIND_ALL_REDUCE = 1, KIND_BROADCAST, KIND_BARRIER, KIND_ALL_GATHER };

struct record {
    uint8_t *bytes;
    size_t size;
    size_t capacity;
    bool whole;        /* all of it is there: there was memory */
    const void *value; /* of a variable, that follows the bytes; NULL: none does */
    size_t value_bytes;
};

struct between_steps_log {
    struct record last;    /* of the last completed one */
    struct record current; /* of the one under way */
    bool known;            /* there is a last one */
    bool plays;            /* the last one came from another task, which had completed it */
    const void *shares;    /* the current one broadcasts it last; or NULL */
    size_t shares_bytes;
};

cadre_status between_steps_open(struct between_steps_log **ret_log, struct cadre_error *error)
{
    *ret_log = calloc(1, sizeof **ret_log);
    return *ret_log != NULL ? CADRE_OK
                            : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                  "no memory for the log of collectives");
}

static void record_clear(struct record *record)
{
    free(record->bytes);
    *record = (struct record){.whole = true};
}

void between_steps_close(struct between_steps_log *log)
{
    if (log != NULL) {
        free(log->last.bytes);
        free(log->current.bytes);
        free(log);
    }
}

bool between_steps_known(const struct between_steps_log *log)
{
    return log->known && log->last.whole;
}

void between_steps_forget(cadre_strategy *strategy)
{
    if (strategy->regroup->between_steps_count > 0) {
        strategy->regroup->between_steps_count = 0;
        record_clear(&strategy->regroup->between_steps->last);
        strategy->regroup->between_steps->known = false;
    }
}

/* Room for so many bytes more; NULL: no memory, and the record is not whole any more. */
static uint8_t *record_room(struct record *record, size_t bytes)
{
    CADRE_ASSERT(record->value == NULL);
    CADRE_ASSERT(record->size <= record->capacity);
    if (record->capacity - record->size < bytes) {
        uint8_t *grown = record->whole ? realloc(record->bytes, record->size + bytes) : NULL;
        if (grown == NULL) {
            record->whole = false;
            return NULL;
        }
        record->bytes = grown;
        record->capacity = record->size + bytes;
    }
    uint8_t *room = record->bytes + record->size;
    record->size += bytes;
    return room;
}

/* --- passing the record on --- */

uint64_t between_steps_bytes(const struct between_steps_log *log)
{
    const struct record *last = &log->last;
    return last->size + (last->value == NULL ? 0 : last->value_bytes);
}

cadre_status between_steps_read(
    void *log, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* copying in the host's memory cannot fail */
    const struct record *last = &((struct between_steps_log *)log)->last;
    size_t own = offset < last->size ? last->size - offset : 0;
    own = own < bytes ? own : bytes;
    if (own > 0) {
        memcpy(into, last->bytes + offset, own);
    }
    if (bytes > own) {
        CADRE_ASSERT(last->value != NULL);
        CADRE_ASSERT(offset + bytes - last->size <= last->value_bytes);
        const uint8_t *value = last->value;
        memcpy((uint8_t *)into + own, value + (offset + own - last->size), bytes - own);
    }
    return CADRE_OK;
}

cadre_status between_steps_write(void *log, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct record *record = &((struct between_steps_log *)log)->current;
    if (offset == 0) {
        record_clear(record);
    }
    uint8_t *room = bytes > 0 ? record_room(record, bytes) : NULL;
    if (bytes > 0 && room == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %llu bytes that the last collective gave",
            (unsigned long long)total);
    }
    if (bytes > 0) {
        memcpy(room, from, bytes);
    }
    return CADRE_OK;
}

static void between_steps_complete(struct between_steps_log *log)
{
    free(log->last.bytes);
    log->last = log->current;
    log->current = (struct record){.whole = true};
    log->known = true;
}

void between_steps_share(cadre_strategy *strategy, const void *value, size_t bytes)
{
    strategy->regroup->between_steps->shares = value;
    strategy->regroup->between_steps->shares_bytes = value == NULL ? 0 : bytes;
}

void between_steps_settle(cadre_strategy *strategy, const void *value)
{
    struct record *last = &strategy->regroup->between_steps->last;
    if (value == NULL || last->value != value) {
        return;
    }
    last->value = NULL;
    uint8_t *room = record_room(last, last->value_bytes);
    if (room != NULL) {
        memcpy(room, value, last->value_bytes);
    }
}

void between_steps_drop(cadre_strategy *strategy, const void *value)
{
    if (strategy->regroup->between_steps->shares == value) {
        strategy->regroup->between_steps->shares = NULL;
    }
    if (value != NULL && strategy->regroup->between_steps->last.value == value) {
        record_clear(&strategy->regroup->between_steps->last);
        strategy->regroup->between_steps->known = false;
    }
}

void between_steps_replay(struct between_steps_log *log)
{
    CADRE_ASSERT(log->current.whole);
    between_steps_complete(log);
    log->plays = true;
}

/* --- the mesh that records, and the one that plays back --- */

struct recorder {
    struct mesh mesh; /* first: the part for the function */
    struct mesh *real;
    struct record *record;
    const void *shares; /* what its last broadcast may be of; or NULL */
    size_t shares_bytes;
    const char *what;       /* the collective, for messages */
    uint32_t first;         /* the id of local replica 0 */
    uint32_t replica_count; /* of the real mesh */
    uint32_t calls;         /* of local replica 0 */
    size_t *at;             /* playing: the offset of each local replica in the record */
};

static size_t bytes_of(const struct mesh_buffer *buffers, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += buffers[i].bytes;
    }
    return bytes;
}

/* A variable's value stays the same until the next step, or until it is settled: it need not be
 * kept twice. */
static bool is_shared(const struct recorder *recorder, const struct mesh_buffer *buffers)
{
    return recorder->shares != NULL && buffers[0].data == recorder->shares;
}

/* The results of one replica are those of all. */
static cadre_status write_down(struct recorder *recorder, uint32_t local, uint32_t kind,
    const struct mesh_buffer *buffers, size_t count, cadre_status status,
    const struct cadre_error *error)
{
    if (local != 0 || (status != CADRE_OK && status != CADRE_INVALID_ARGUMENT)) {
        return status;
    }
    struct between_steps_entry entry = {.kind = kind, .status = (int32_t)status};
    entry.bytes = status == CADRE_OK ? bytes_of(buffers, count) : strlen(error->text);
    bool shared = status == CADRE_OK && count == 1 && is_shared(recorder, buffers);
    size_t own = sizeof entry + (shared ? 0 : (size_t)entry.bytes);
    uint8_t *room = record_room(recorder->record, own);
    recorder->calls++;
    if (room == NULL) {
        return status;
    }
    memcpy(room, &entry, sizeof entry);
    room += sizeof entry;
    if (shared) {
        CADRE_ASSERT(buffers[0].bytes == recorder->shares_bytes);
        recorder->record->value = recorder->shares;
        recorder->record->value_bytes = recorder->shares_bytes;
        return status;
    }
    if (status != CADRE_OK) {
        memcpy(room, error->text, (size_t)entry.bytes);
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(room, buffers[i].data, buffers[i].bytes);
        room += buffers[i].bytes;
    }
    return status;
}

static cadre_status play_back(struct recorder *recorder, uint32_t local, uint32_t kind,
    const struct mesh_buffer *buffers, size_t count, struct cadre_error *error)
{
    CADRE_ASSERT(recorder->at != NULL);
    const struct record *record = recorder->record;
    size_t at = recorder->at[local];
    size_t left = record->size - at;
    struct between_steps_entry entry = {0};
    if (left >= sizeof entry) {
        memcpy(&entry, record->bytes + at, sizeof entry);
        left -= sizeof entry;
    }
    const uint8_t *from = record->bytes + at + sizeof entry;
    bool fits = entry.kind == kind && entry.bytes <= left &&
                (entry.status != CADRE_OK || entry.bytes == bytes_of(buffers, count));
    if (!fits) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "this task makes another collective than the tasks that had completed it already; all "
            "tasks must make the same calls in the same order");
    }
    if (local == 0) {
        recorder->calls++;
    }
    recorder->at[local] = at + sizeof entry + (size_t)entry.bytes;
    if (entry.status != CADRE_OK) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%.*s", (int)entry.bytes, (const char *)from);
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(buffers[i].data, from, buffers[i].bytes);
        from += buffers[i].bytes;
    }
    return CADRE_OK;
}

static size_t bytes_of_next(const struct recorder *recorder, uint32_t local)
{
    const struct record *record = recorder->record;
    size_t at = recorder->at[local];
    struct between_steps_entry entry = {0};
    if (record->size - at >= sizeof entry) {
        memcpy(&entry, record->bytes + at, sizeof entry);
    }
    return (size_t)entry.bytes;
}

static struct recorder *recorder_of(struct mesh *mesh)
{
    return (struct recorder *)mesh;
}

/* A disagreement names the collective as the program called it. */
static struct mesh_note between_steps_named(const struct recorder *recorder, uint32_t local,
    const struct mesh_note *note, char text[MESH_NOTE_BYTES])
{
    struct mesh_note own = note == NULL ? (struct mesh_note){.key = 0} : *note;
    if (own.text == NULL) {
        snprintf(text, MESH_NOTE_BYTES, "replica %u calls %.*s", recorder->first + local,
            STRATEGY_CALL_TEXT_BYTES - 1, recorder->what);
        own.text = text;
    }
    return own;
}

static cadre_status recorded_all_reduce(struct mesh *mesh, uint32_t local, enum mesh_op op,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct recorder *recorder = recorder_of(mesh);
    if (recorder->at != NULL) {
        return play_back(recorder, local, KIND_ALL_REDUCE, buffers, count, error);
    }
    struct mesh *real = recorder->real;
    char text[MESH_NOTE_BYTES];
    const struct mesh_note own = between_steps_named(recorder, local, note, text);
    cadre_status status = real->ops->all_reduce(real, local, op, buffers, count, &own, error);
    return write_down(recorder, local, KIND_ALL_REDUCE, buffers, count, status, error);
}

static cadre_status recorded_broadcast(struct mesh *mesh, uint32_t local, uint32_t root,
    const struct mesh_buffer *buffers, size_t count, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct recorder *recorder = recorder_of(mesh);
    if (recorder->at != NULL) {
        return play_back(recorder, local, KIND_BROADCAST, buffers, count, error);
    }
    struct mesh *real = recorder->real;
    char text[MESH_NOTE_BYTES];
    const struct mesh_note own = between_steps_named(recorder, local, note, text);
    cadre_status status = real->ops->broadcast(real, local, root, buffers, count, &own, error);
    return write_down(recorder, local, KIND_BROADCAST, buffers, count, status, error);
}

static cadre_status recorded_barrier(
    struct mesh *mesh, uint32_t local, const struct mesh_note *note, struct cadre_error *error)
{
    struct recorder *recorder = recorder_of(mesh);
    if (recorder->at != NULL) {
        return play_back(recorder, local, KIND_BARRIER, NULL, 0, error);
    }
    struct mesh *real = recorder->real;
    char text[MESH_NOTE_BYTES];
    const struct mesh_note own = between_steps_named(recorder, local, note, text);
    cadre_status status = real->ops->barrier(real, local, &own, error);
    return write_down(recorder, local, KIND_BARRIER, NULL, 0, status, error);
}

/* The sizes must be given: those of the generation that it was made in. */
static cadre_status recorded_all_gather(struct mesh *mesh, uint32_t local, const void *data,
    size_t bytes, const size_t *sizes, void *into, const struct mesh_note *note,
    struct cadre_error *error)
{
    struct recorder *recorder = recorder_of(mesh);
    struct mesh_buffer all = {.data = into, .dtype = MESH_U8};
    if (recorder->at != NULL) { /* as many bytes as the sizes, which were played back before */
        all.bytes = bytes_of_next(recorder, local);
        return play_back(recorder, local, KIND_ALL_GATHER, &all, 1, error);
    }
    for (uint32_t i = 0; i < recorder->replica_count; i++) {
        all.bytes += sizes[i];
    }
    struct mesh *real = recorder->real;
    char text[MESH_NOTE_BYTES];
    const struct mesh_note own = between_steps_named(recorder, local, note, text);
    cadre_status status = real->ops->all_gather(real, local, data, bytes, sizes, into, &own, error);
    return write_down(recorder, local, KIND_ALL_GATHER, &all, 1, status, error);
}

static void recorded_abort(struct mesh *mesh, const char *reason)
{
    struct recorder *recorder = recorder_of(mesh);
    recorder->real->ops->abort(recorder->real, reason);
}

/* Operations that no strategy_between_steps uses are absent. */
static const struct mesh_ops recorder_ops = {
    .name = "recorder",
    .all_reduce = recorded_all_reduce,
    .broadcast = recorded_broadcast,
    .all_gather = recorded_all_gather,
    .barrier = recorded_barrier,
    .abort = recorded_abort,
};

/* --- the collective --- */

/* Once, in the current generation. *ret_calls: how many collectives it made. */
static cadre_status between_steps_attempt(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, uint32_t *ret_calls, struct cadre_error *error)
{
    struct between_steps_log *log = strategy->regroup->between_steps;
    struct recorder recorder = {.mesh = {.ops = &recorder_ops},
        .real = strategy->mesh,
        .record = log->plays ? &log->last : &log->current,
        .shares = log->shares,
        .shares_bytes = log->shares_bytes,
        .what = what,
        .first = strategy->replica_first,
        .replica_count = strategy->replica_count};
    *ret_calls = 0;
    if (log->plays) {
        recorder.at = calloc(strategy->local_replicas, sizeof recorder.at[0]);
        if (recorder.at == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory to take over a collective's result");
        }
    } else {
        record_clear(&log->current);
        log->current.whole = strategy->roster.member_count > 1; /* alone, no task can lack it */
    }
    strategy->mesh = &recorder.mesh;
    cadre_status status = strategy_each_replica(strategy, function, user, error);
    strategy->mesh = recorder.real;
    *ret_calls = recorder.calls;
    free(recorder.at);
    return status;
}

cadre_status strategy_between_steps(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error)
{
    if (!strategy_is_catching_up(strategy)) {
        return strategy_between_steps_all(strategy, what, function, user, error);
    }
    cadre_status alone = generation_alone(strategy, function, user, error);
    strategy->regroup->between_steps->shares = NULL; /* no task lacks what one made alone */
    return alone == CADRE_OK || alone == CADRE_INVALID_ARGUMENT ? alone
                                                                : strategy_fail(strategy, error);
}

cadre_status strategy_between_steps_all(cadre_strategy *strategy, const char *what,
    strategy_function function, void *user, struct cadre_error *error)
{
    struct between_steps_log *log = strategy->regroup->between_steps;
    for (;;) {
        uint32_t calls = 0;
        cadre_status status = between_steps_attempt(strategy, what, function, user, &calls, error);
        if (status == CADRE_OK || status == CADRE_INVALID_ARGUMENT) {
            log->shares = NULL;
            if (calls > 0) {
                if (!log->plays) {
                    between_steps_complete(log);
                }
                log->plays = false;
                strategy->regroup->between_steps_count++;
            }
            return status;
        }
        if (!strategy_is_peer_failure(status)) {
            log->shares = NULL;
            return strategy_fail(strategy, error);
        }
        struct cadre_error cause = *error;
        status = strategy_regroup(strategy, &cause, error);
        if (status != CADRE_OK) {
            log->shares = NULL;
            return status;
        }
    }
}
