/* SPDX-License-Identifier: Apache-2.0
 * What the threads of a task did, and when: the spans of a trace. */
#ifndef CADRE_MODEL_TRACE_H
#define CADRE_MODEL_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* What a span is of. The numbers are those of the wire; new ones are added at the end. */
enum trace_kind {
    TRACE_STEP = 1,   /* cadre_run: one step, with all of its attempts */
    TRACE_INPUT,      /* cadre_next: the program waits for its batch */
    TRACE_FUNCTION,   /* the replica function, or that of a closure */
    TRACE_RELEASE,    /* a replica waits until all tasks have the batches of the step */
    TRACE_APPLY,      /* what is written when the step can no longer fail */
    TRACE_CHECKPOINT, /* the program waits while the state is copied, or written */
    TRACE_REGROUP,    /* from one generation to the next */
    TRACE_ALL_REDUCE, /* collectives: */
    TRACE_REDUCE_SCATTER,
    TRACE_BROADCAST,
    TRACE_ALL_GATHER,
    TRACE_BARRIER,
    /* of jobs with parameter servers: */
    TRACE_PULL,     /* values are read from servers */
    TRACE_PUSH,     /* servers are sent what changes them, until they have it */
    TRACE_SCHEDULE, /* cadre_schedule, on the chief */
    TRACE_WAIT      /* the chief for closures, a worker for its next one */
};

/* Which thread of the task it is. */
enum trace_thread {
    TRACE_THREAD_REPLICA = 0,   /* a replica's; that of replica 0 is the program's own */
    TRACE_THREAD_COMMUNICATION, /* carries out a replica's collectives that were started */
    TRACE_THREAD_CHECKPOINT     /* writes checkpoints */
};

/* Times are nanoseconds of the host's monotonic clock. */
struct trace_span {
    uint32_t kind;
    uint32_t thread;
    uint32_t replica; /* of this task, from 0 */
    uint64_t step;    /* steps that were applied when it began; or the program's own number */
    uint64_t begin_ns;
    uint64_t end_ns;
    /* Of a collective: until here it waited for others, from here on bytes are moved. 0: that is
     * not known apart. */
    uint64_t arrived_ns;
    uint64_t bytes; /* of a collective: that this replica gives; of a pull, a push: of the rows */
    uint64_t match; /* of a collective: the same on all that take part in it, and of no other */
};

/* A request for the spans of steps first .. end - 1; in the order of the coordinator's messages no
 * task that is in the ledger has begun the first of them. The newest request counts; a task whose
 * numbers are of the other sort only answers. */
struct trace_order {
    uint64_t id; /* 0: none is wanted any more */
    uint64_t first;
    uint64_t end;
    uint64_t limit_us; /* from its receipt: then the task ends it by itself */
    uint64_t asked_ns; /* the coordinator's clock, to be returned */
    bool own_numbers;  /* first and end are numbers of the program's own, as in task_spans */
};

#endif
