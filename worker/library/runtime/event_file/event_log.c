/* SPDX-License-Identifier: Apache-2.0
 * Values as frames of an event file, or kept for one. summaries/ and plain/ call it. */
#include "worker/library/runtime/event_file/event_log.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/input/files/record_frame.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/event_file/event_file.h"
#include "worker/library/runtime/event_file/event_tags.h"

#define KEPT_US    CADRE_US_PER_S /* of a task that is not the chief: so much, up to twice */
#define KEPT_BYTES ((size_t)1 << 20)

/* Frames of about a second. */
struct kept_frames {
    struct wire_buffer frames;
    uint64_t first_step;
    uint64_t since_us;
};

struct event_log {
    struct event_target target;
    bool leads;
    bool own;            /* the program has added a value */
    bool failed;         /* there is no thread, or no memory, for the file */
    uint64_t generation; /* in which it leads */
    uint64_t start;      /* steps from here on that were written before are void */
    _Atomic(struct event_file *) file;
    struct kept_frames older;
    struct kept_frames newer;
    struct event_tags tags;
    struct wire_buffer frame; /* the one that is made */
};

/* --- frames --- */

/* Makes log->frame. */
static cadre_status make_frame(
    struct event_log *log, const struct summary_event *event, struct cadre_error *error)
{
    struct wire_buffer *frame = &log->frame;
    wire_buffer_clear(frame);
    if (fault_point("event.memory") || !wire_buffer_reserve(frame, RECORD_HEADER_BYTES)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an event");
    }
    frame->size = RECORD_HEADER_BYTES;
    CADRE_TRY(wire_pack_summary_event(event, frame, error));
    if (!wire_buffer_reserve(frame, RECORD_FOOTER_BYTES)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an event");
    }
    record_frame_make(frame->bytes + RECORD_HEADER_BYTES, frame->size - RECORD_HEADER_BYTES,
        frame->bytes, frame->bytes + frame->size);
    frame->size += RECORD_FOOTER_BYTES;
    return CADRE_OK;
}

static struct event_file *event_log_file(const struct event_log *log)
{
    return atomic_load_explicit(&((struct event_log *)log)->file, memory_order_acquire);
}

/* --- of a task that is not the chief --- */

static void keep_frame(struct event_log *log, uint64_t step, uint64_t now_us)
{
    struct kept_frames *newer = &log->newer;
    bool full = newer->frames.size + log->frame.size > KEPT_BYTES;
    if (newer->frames.size > 0 && (full || now_us - newer->since_us >= KEPT_US)) {
        struct kept_frames emptied = log->older;
        log->older = log->newer;
        log->newer = emptied;
        wire_buffer_clear(&newer->frames);
    }
    if (!wire_buffer_reserve(&newer->frames, log->frame.size)) {
        return; /* it is kept for a case that mostly does not come */
    }
    if (newer->frames.size == 0) {
        newer->first_step = step;
        newer->since_us = now_us;
    }
    memcpy(newer->frames.bytes + newer->frames.size, log->frame.bytes, log->frame.size);
    newer->frames.size += log->frame.size;
}

/* The kept frames are the first values of the file. */
static void append_kept(struct event_log *log, struct event_file *file)
{
    struct kept_frames *const kept[] = {&log->older, &log->newer};
    for (size_t i = 0; i < CADRE_COUNT_OF(kept); i++) {
        if (kept[i]->frames.size > 0) {
            event_file_append(file, kept[i]->frames.bytes, kept[i]->frames.size);
        }
        wire_buffer_clear(&kept[i]->frames);
    }
}

static uint64_t first_kept(const struct event_log *log, uint64_t otherwise)
{
    const struct kept_frames *first = log->older.frames.size > 0 ? &log->older : &log->newer;
    bool earlier = first->frames.size > 0 && first->first_step < otherwise;
    return earlier ? first->first_step : otherwise;
}

/* --- of the chief --- */

static cadre_status append_event(struct event_log *log, struct event_file *file,
    const struct summary_event *event, struct cadre_error *error)
{
    CADRE_TRY(make_frame(log, event, error));
    event_file_append(file, log->frame.bytes, log->frame.size);
    return CADRE_OK;
}

static cadre_status begin_file(struct event_log *log, struct cadre_error *error)
{
    struct event_file *file;
    uint64_t now_us = clock_wall_us();
    uint64_t start = first_kept(log, log->start);
    CADRE_TRY(event_file_open(&log->target, log->generation, &file, error));
    const struct summary_event version = {.kind = SUMMARY_FILE_VERSION, .wall_us = now_us};
    const struct summary_event from = {.kind = SUMMARY_START, .wall_us = now_us, .step = start};
    cadre_status status = append_event(log, file, &version, error);
    if (status == CADRE_OK) {
        status = append_event(log, file, &from, error);
    }
    if (status != CADRE_OK) {
        event_file_close(file);
        return status;
    }
    append_kept(log, file);
    atomic_store_explicit(&log->file, file, memory_order_release);
    return CADRE_OK;
}

/* The values go on being counted, and are in no file. */
static void begin_or_warn(struct event_log *log)
{
    struct cadre_error error;
    if (begin_file(log, &error) != CADRE_OK) {
        log->failed = true;
        show_warning("TensorBoard's event file is missing: %s", error.text);
    }
}

void event_log_lead(struct event_log *log, uint64_t generation, uint64_t position)
{
    if (log->leads) {
        return;
    }
    log->leads = true;
    log->failed = false;
    log->generation = generation;
    log->start = position + 1;
    if (log->own) {
        begin_or_warn(log);
    } else { /* the chief before it may have written more than this task would */
        wire_buffer_clear(&log->older.frames);
        wire_buffer_clear(&log->newer.frames);
    }
}

void event_log_follow(struct event_log *log)
{
    struct event_file *file = event_log_file(log);
    if (log->leads) {
        event_log_flush(log);
        atomic_store_explicit(&log->file, NULL, memory_order_release);
        event_file_close(file);
        log->leads = false;
    }
}

/* --- values --- */

/* Whether a value is written now; else, of a scalar, it waits. */
static bool is_due(
    struct event_tag *tag, const struct summary_event *value, uint64_t file_bytes, uint64_t now_us)
{
    bool due = event_tag_due(tag, file_bytes, now_us);
    tag->waits = !due && value->kind == SUMMARY_SCALAR;
    if (tag->waits) {
        tag->step = value->step;
        tag->wall_us = value->wall_us;
        tag->value = value->scalar;
    }
    return due;
}

static cadre_status add_to_file(
    struct event_log *log, const struct summary_event *value, struct cadre_error *error)
{
    struct event_file *file = event_log_file(log);
    struct event_tag *tag;
    CADRE_TRY(event_tags_find(&log->tags, value->tag, &tag, error));
    return is_due(tag, value, event_file_size(file), clock_monotonic_us())
               ? append_event(log, file, value, error)
               : CADRE_OK;
}

cadre_status event_log_add(
    struct event_log *log, const struct summary_event *value, bool own, struct cadre_error *error)
{
    CADRE_ASSERT(value->kind >= SUMMARY_SCALAR);
    struct summary_event event = *value;
    event.wall_us = clock_wall_us();
    log->own = log->own || own;
    if (!log->leads) {
        CADRE_TRY(make_frame(log, &event, error));
        keep_frame(log, event.step, clock_monotonic_us());
        return CADRE_OK;
    }
    if (event_log_file(log) == NULL && own && !log->failed) {
        begin_or_warn(log);
    }
    return event_log_file(log) != NULL ? add_to_file(log, &event, error) : CADRE_OK;
}

bool event_log_has_file(const struct event_log *log)
{
    return event_log_file(log) != NULL;
}

/* The newest scalars that are not written yet. */
static void add_waiting(struct event_log *log, struct event_file *file)
{
    for (uint32_t i = 0; i < log->tags.count; i++) {
        struct event_tag *tag = &log->tags.list[i];
        const struct summary_event event = {.kind = SUMMARY_SCALAR,
            .wall_us = tag->wall_us,
            .step = tag->step,
            .tag = tag->name,
            .scalar = tag->value};
        struct cadre_error ignored; /* it waits on */
        if (tag->waits && append_event(log, file, &event, &ignored) == CADRE_OK) {
            tag->waits = false;
        }
    }
}

void event_log_flush(struct event_log *log)
{
    struct event_file *file = event_log_file(log);
    if (file != NULL) {
        add_waiting(log, file);
        event_file_flush(file);
    }
}

void event_log_write_out(struct event_log *log)
{
    struct event_file *file = event_log_file(log);
    if (file != NULL) {
        event_file_flush(file);
    }
}

/* --- lifetime --- */

cadre_status event_log_open(
    const struct event_target *target, struct event_log **ret_log, struct cadre_error *error)
{
    struct event_log *log = fault_point("event.memory") ? NULL : calloc(1, sizeof *log);
    *ret_log = log;
    if (log == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for event files");
    }
    log->target = *target;
    return CADRE_OK;
}

void event_log_close(struct event_log *log)
{
    if (log == NULL) {
        return;
    }
    event_log_follow(log);
    wire_buffer_free(&log->older.frames);
    wire_buffer_free(&log->newer.frames);
    wire_buffer_free(&log->frame);
    event_tags_clear(&log->tags);
    free(log);
}
