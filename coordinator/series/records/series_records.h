/* SPDX-License-Identifier: Apache-2.0
 * The values of a job as the bytes of a file: records one behind the other, each with its length,
 * its type and a CRC-64. Replaying them gives the set that they were made of. No I/O. */
#ifndef CADRE_COORDINATOR_SERIES_RECORDS_SERIES_RECORDS_H
#define CADRE_COORDINATOR_SERIES_RECORDS_SERIES_RECORDS_H

#include "common/model/task_message.h"
#include "common/wire/wire.h"
#include "coordinator/series/series.h"
#include "coordinator/series/series_starts.h"

/* A set, and what its file lost. */
struct series_state {
    struct series_set set;
    struct series_starts starts; /* where the steps are the program's own numbers */
    uint64_t lost_bytes;         /* cut off because they were damaged */
    bool outdated; /* its file is of an earlier version: a snapshot has to take its place before
                    * anything is appended */
};

/* What begins a file. */
bool series_records_head(struct wire_buffer *buffer);

/* Each changes the state and appends the records that do the same when they are replayed; false:
 * no memory, and the state is to be read again from the file. */

/* A generation of the job, which repeats the steps from position `resume` on. Nothing for a source
 * whose steps are the program's own numbers. */
bool series_records_plan(
    struct series_state *state, uint64_t generation, uint64_t resume, struct wire_buffer *buffer);

/* The values that a task reported, which is `source`. Those of a generation that is over are left
 * out. */
bool series_records_values(struct series_state *state, enum series_source source,
    const struct task_values *values, struct wire_buffer *buffer);

/* So many bytes of the file were damaged. */
bool series_records_lost(struct series_state *state, uint64_t bytes, struct wire_buffer *buffer);

/* Appends the whole of a file with the state as it is. */
bool series_records_snapshot(const struct series_state *state, struct wire_buffer *buffer);

enum series_end {
    SERIES_END_WHOLE,   /* the bytes end behind a record */
    SERIES_END_TORN,    /* in one, or with zeros: the writer was killed, or lost its power */
    SERIES_END_DAMAGED, /* a record is not what was written */
};

/* Replays a file into a state that is all zero, or was used: it has only what the file has.
 * *ret_size: of the records that were replayed. */
enum series_end series_records_replay(
    const uint8_t *bytes, size_t size, struct series_state *state, size_t *ret_size);

#endif
