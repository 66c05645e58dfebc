/* SPDX-License-Identifier: Apache-2.0
 * Events of TensorBoard's event files as bytes (proto/tensorflow/event.proto). Only written, never
 * read: readers are TensorBoard and its like. */
#ifndef CADRE_WIRE_SUMMARY_EVENT_H
#define CADRE_WIRE_SUMMARY_EVENT_H

#include "common/base/error.h"
#include "common/wire/wire.h"

enum summary_kind {
    SUMMARY_FILE_VERSION = 0, /* the first of a file */
    SUMMARY_START,            /* what was written before of this step and later ones is void */
    SUMMARY_SCALAR,
    SUMMARY_HISTOGRAM,
    SUMMARY_TEXT
};

/* Bucket i reaches from limits[i - 1], the first from `min`, to limits[i]. */
struct summary_histogram {
    double min;
    double max;
    double count; /* of the values */
    double sum;
    double sum_squares;
    uint32_t bucket_count;
    double *limits; /* [bucket_count], rising */
    double *counts; /* [bucket_count] */
};

struct summary_event {
    enum summary_kind kind;
    uint64_t wall_us; /* Unix time */
    uint64_t step;
    const char *tag; /* of the last three kinds; UTF-8 */
    double scalar;   /* stored as float: NaN and infinities too */
    const struct summary_histogram *histogram;
    const char *text; /* UTF-8, Markdown */
    size_t text_bytes;
};

/* Appends the encoding. RESOURCE_EXHAUSTED: no memory, the buffer is as before. */
cadre_status wire_pack_summary_event(
    const struct summary_event *event, struct wire_buffer *buffer, struct cadre_error *error);

#endif
