/* SPDX-License-Identifier: Apache-2.0
 * The time of a thread cut into pieces, each with the innermost span that it is in. Pure. */
#ifndef CADRE_CLI_TRACE_TRACE_PIECES_H
#define CADRE_CLI_TRACE_TRACE_PIECES_H

#include "coordinator/cli/trace/trace_conclusion.h"

struct trace_piece {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t step;
    enum trace_split part;
};

/* Of one replica of one process: its own thread's pieces, by their begin. */
struct trace_lane {
    uint32_t process;
    uint32_t replica;
    size_t first; /* index of its first piece */
    size_t count;
};

struct trace_pieces {
    struct trace_piece *items; /* owned */
    size_t count;
    size_t capacity;
    struct trace_lane *lanes; /* owned; by process and replica */
    size_t lane_count;
    size_t lane_capacity;
};

/* Of an aligned store with its waits. False: no memory; *ret_pieces is the caller's to free, also
 * then. */
bool trace_pieces_make(const struct trace_store *store, struct trace_pieces *ret_pieces);
void trace_pieces_free(struct trace_pieces *pieces);

/* NULL: it has none. */
const struct trace_lane *trace_pieces_lane(
    const struct trace_pieces *pieces, uint32_t process, uint32_t replica);

/* Adds to `split` how much of [begin_ns, end_ns) of the lane is what; what is in no piece is the
 * program's. Nanoseconds. */
void trace_pieces_between(const struct trace_pieces *pieces, const struct trace_lane *lane,
    uint64_t begin_ns, uint64_t end_ns, double split[TRACE_SPLITS]);

#endif
