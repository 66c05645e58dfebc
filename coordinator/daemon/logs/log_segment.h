/* SPDX-License-Identifier: Apache-2.0
 * A piece of a task's log as an object of a store: its name, its bytes, and which of several
 * count. Nothing here reads or writes.
 *
 * Of two coordinators that write at the same time one was replaced and does not know it yet. Both
 * put what the task's worker sends at the begin of its incarnation (base) plus its offset. They may
 * have seen another base only if one has not seen what the other put, and then that was not
 * acknowledged: so of an incarnation the base of its newest term counts, and the base of a newer
 * incarnation ends the one before. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_SEGMENT_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/pure/log_mark.h"

#define LOG_SEGMENT_NAME_BYTES 88 /* with the terminator */

struct log_segment {
    uint64_t term; /* of the coordinator that put it */
    uint64_t incarnation;
    uint64_t base; /* where the incarnation begins in the log */
    uint64_t begin;
    uint64_t end;
    /* By log_segments_arrange(): those of its bytes that count. */
    uint64_t from;
    uint64_t to;
};

void log_segment_name(const struct log_segment *segment, char ret_name[LOG_SEGMENT_NAME_BYTES]);
/* False: it is not the name of a segment. */
bool log_segment_parse(const char *name, struct log_segment *ret_segment);

/* Keeps those that count, in the order of their bytes; returns how many. Their bytes do not
 * overlap. */
size_t log_segments_arrange(struct log_segment *segments, size_t count);

/* The first and the last byte that no segment has, of arranged ones: *ret_from == *ret_to: none. */
void log_segments_hole(
    const struct log_segment *segments, size_t count, uint64_t *ret_from, uint64_t *ret_to);

/* How many of the last ones are to become one: 0, or at least LOG_SEGMENTS_JOINED, small ones of
 * one incarnation whose bytes follow one another. */
#define LOG_SEGMENTS_JOINED 16
size_t log_segments_to_join(const struct log_segment *segments, size_t count);

/* The object: malloc'ed. NULL: no memory. Marks are at or behind segment->begin. */
uint8_t *log_segment_pack(const struct log_segment *segment, const uint8_t *bytes,
    const struct log_mark *marks, size_t mark_count, size_t *ret_size);

/* What is in an object; `bytes` points into it, *ret_marks is the caller's to free. DATA_LOSS: it
 * is not what was put. */
cadre_status log_segment_unpack(const struct log_segment *segment, const uint8_t *object,
    size_t size, const uint8_t **ret_bytes, struct log_mark **ret_marks, size_t *ret_mark_count,
    struct cadre_error *error);

#endif
