/* SPDX-License-Identifier: Apache-2.0
 * What came of a trace: the processes of its tasks, and their spans, put on one clock when all is
 * there. No I/O. */
#ifndef CADRE_CLI_TRACE_TRACE_STORE_H
#define CADRE_CLI_TRACE_TRACE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/client_trace.h"

#define TRACE_STORE_SPANS_MAX ((size_t)2 * 1024 * 1024)

#define TRACE_NO_PROCESS UINT32_MAX

/* Times are on the coordinator's clock, from the begin of the first span. */
struct stored_span {
    uint32_t process; /* index */
    uint32_t kind;
    uint32_t thread;
    uint32_t replica;
    uint64_t step;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t arrived_ns; /* 0: not known */
    uint64_t bytes;
    uint64_t match;
    /* Of a collective, a release and a wait for closures, by trace_waits(): until here it waited
     * for that process; begin_ns: for none. */
    uint64_t until_ns;
    uint32_t waits_for; /* or TRACE_NO_PROCESS */
};

struct stored_process {
    cadre_trace_task task; /* its worker is `worker` */
    char worker[129];
    uint64_t received; /* spans, here */
    bool chief;        /* it schedules closures; by trace_waits() */
};

/* Zeroed: empty. */
struct trace_store {
    struct stored_process *processes; /* owned; by slot and incarnation once it is aligned */
    size_t process_count;
    size_t process_capacity;
    struct stored_span *spans; /* owned; by process, thread and begin once it is aligned */
    size_t span_count;
    size_t span_capacity;
    uint64_t dropped; /* spans for which there was no room here */
    uint64_t first;
    uint64_t end;
    uint64_t clock_ns; /* of the newest piece: the coordinator's clock and the time of day */
    uint64_t wall_us;
    uint64_t began_wall_us; /* once it is aligned: the time of day of time 0 */
    bool own_numbers;       /* of a plain program: a step is from one collective to the next */
    bool ended;
    char message[512];
};

/* Adds a piece. False: no memory. */
bool trace_store_add(struct trace_store *store, const cadre_trace *piece);

/* All is there: spans are put on the coordinator's clock, and in order. */
void trace_store_align(struct trace_store *store);

/* Steps of the trace that all tasks that are still in it are past. */
uint64_t trace_store_steps_done(const struct trace_store *store);

/* Spans that are not here, as far as is known. */
uint64_t trace_store_lost(const struct trace_store *store);

/* The most by which the clock of a process is wrong, of all of them; UINT64_MAX: one was not
 * measured. */
uint64_t trace_store_clock_error(const struct trace_store *store);

/* Frees what it owns. */
void trace_store_free(struct trace_store *store);

#endif
