/* SPDX-License-Identifier: Apache-2.0
 * What the threads of a task do, and when: spans in a ring of fixed size, which each thread writes
 * without a lock and without memory of its own. While nothing is traced a place costs one branch on
 * a flag. One trace of a process at a time.
 *
 *     struct trace_mark mark = trace_begin();
 *     ...
 *     trace_end(mark, TRACE_INPUT, 0);
 */
#ifndef CADRE_WORKER_TRACE_TRACE_H
#define CADRE_WORKER_TRACE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/trace.h"

#define TRACE_RING_SPANS 65536

/* Where a span begins. */
struct trace_mark {
    uint64_t begin_ns; /* 0: nothing is recorded */
    uint64_t step;
};

extern atomic_bool trace_records;

/* What trace_begin() and the ends of spans call while something is recorded. */
struct trace_mark trace_mark_now(void);
void trace_put(struct trace_mark mark, enum trace_kind kind, uint32_t replica);
void trace_put_collective(struct trace_mark mark, enum trace_kind kind, uint32_t replica,
    uint64_t arrived_ns, uint64_t bytes, uint64_t match);

/* A span begins here, if a step is traced. Any thread. */
static inline struct trace_mark trace_begin(void)
{
    if (!atomic_load_explicit(&trace_records, memory_order_relaxed)) {
        return (struct trace_mark){0};
    }
    return trace_mark_now();
}

/* It ends here. `replica`: the local one whose thread this is. */
static inline void trace_end(struct trace_mark mark, enum trace_kind kind, uint32_t replica)
{
    if (mark.begin_ns != 0) {
        trace_put(mark, kind, replica);
    }
}

/* The clock of spans; 0 where the mark is none. For arrived_ns. */
uint64_t trace_now(struct trace_mark mark);

/* What this thread is; TRACE_THREAD_REPLICA at first. */
void trace_thread_is(enum trace_thread thread);

/* --- one thread at a time: the task's, under its lock --- */

/* Makes the ring, once, and empties it. False: no memory. */
bool trace_open(void);

/* Spans are recorded from now on, as of this step; or not. */
void trace_set(bool records, uint64_t step);

/* Moves up to `max` spans out of the ring, in the order in which they ended. */
size_t trace_take(struct trace_span *ret_spans, size_t max);

/* How many spans there was no room for, since the process began. */
uint64_t trace_lost(void);

/* --- trace_clock.c --- */

/* The clock of spans: the host's monotonic one. */
uint64_t trace_clock_ns(void);

/* The same number in all processes of this host until it boots again, whatever their containers. */
uint64_t trace_clock_id(void);

#endif
