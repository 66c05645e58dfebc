/* SPDX-License-Identifier: Apache-2.0
 * Beside cadre/client.h, in libcadre-client: what the tasks of a job that runs do in a step, and
 * when.
 *
 *     static bool on_trace(const cadre_trace *trace, void *user)
 *     {
 *         for (size_t i = 0; i < trace->span_count; i++) { count(user, &trace->spans[i]); }
 *         return true;
 *     }
 *     ...
 *     cadre_client_trace(client, job, NULL, on_trace, user, NULL);
 */
#ifndef CADRE_CLIENT_TRACE_H
#define CADRE_CLIENT_TRACE_H

#include "cadre/client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a span is of. A later version may have more: name them by their number. */
typedef enum cadre_trace_kind {
    CADRE_TRACE_STEP = 1,   /* cadre_run: one step, with all of its attempts */
    CADRE_TRACE_INPUT,      /* cadre_next: the program waits for its batch */
    CADRE_TRACE_FUNCTION,   /* the replica function, or that of a closure */
    CADRE_TRACE_RELEASE,    /* a replica waits until all tasks have the batches of the step */
    CADRE_TRACE_APPLY,      /* what is written when the step can no longer fail */
    CADRE_TRACE_CHECKPOINT, /* the program waits while the state is copied, or written */
    CADRE_TRACE_REGROUP,    /* from one generation to the next */
    CADRE_TRACE_ALL_REDUCE, /* collectives: */
    CADRE_TRACE_REDUCE_SCATTER,
    CADRE_TRACE_BROADCAST,
    CADRE_TRACE_ALL_GATHER,
    CADRE_TRACE_BARRIER,
    /* of jobs with parameter servers: */
    CADRE_TRACE_PULL,     /* values are read from servers */
    CADRE_TRACE_PUSH,     /* servers are sent what changes them, until they have it */
    CADRE_TRACE_SCHEDULE, /* cadre_schedule, on the chief */
    CADRE_TRACE_WAIT      /* the chief for closures, a worker for its next one */
} cadre_trace_kind;

/* Which thread of a task a span is of. */
typedef enum cadre_trace_thread {
    CADRE_TRACE_REPLICA = 0,   /* a replica's; that of replica 0 is the program's own */
    CADRE_TRACE_COMMUNICATION, /* carries out a replica's collectives that were started */
    CADRE_TRACE_WRITER         /* writes checkpoints */
} cadre_trace_thread;

/* What one thread did. Times are nanoseconds of the monotonic clock of its host. */
typedef struct cadre_trace_span {
    uint32_t kind;    /* cadre_trace_kind */
    uint32_t thread;  /* cadre_trace_thread */
    uint32_t replica; /* of this task, from 0 */
    uint64_t step;    /* steps that were applied when it began; or as own_numbers has it */
    uint64_t begin_ns;
    uint64_t end_ns;
    /* Of a collective: until here it waited for others, from here on bytes are moved; 0: that is
     * not known apart. */
    uint64_t arrived_ns;
    uint64_t bytes; /* of a collective: that this replica gives; of a pull, a push: of the rows */
    uint64_t match; /* of a collective: the same on all that take part in it; 0: not known */
} cadre_trace_span;

/* How far the trace of a task is. */
typedef enum cadre_trace_state {
    CADRE_TRACE_ASKED = 1, /* nothing came from it */
    CADRE_TRACE_RECORDS,
    CADRE_TRACE_ENDED, /* its spans are whole, but for those that are counted as lost */
    CADRE_TRACE_GONE   /* it ended, or its worker is away: its newest spans may be missing */
} cadre_trace_state;

/* One process of a task. The coordinator's clock is its clock + offset_ns (modulo 2^64), or up to
 * error_ns before or behind that. */
typedef struct cadre_trace_task {
    uint32_t task;
    uint64_t incarnation;
    cadre_trace_state state;
    const char *worker;
    uint32_t pid;
    uint64_t clock; /* the same number on all of one host; 0: nothing came */
    uint64_t offset_ns;
    uint64_t error_ns; /* UINT64_MAX: not measured */
    uint64_t position; /* steps that were applied, or as own_numbers has it */
    uint64_t spans;    /* that came */
    uint64_t lost;     /* for which the task had no room */
    uint64_t missing;  /* that were lost on the way, or that this client did not read in time */
} cadre_trace_task;

/* A piece of a trace: the spans of one task, or tasks of which something changed, or both; or
 * neither, twice a second. Of a task the newest description counts, for all of its spans. */
typedef struct cadre_trace {
    uint64_t first;    /* the steps of the trace, */
    uint64_t end;      /* from the first one to before this one */
    uint64_t clock_ns; /* the coordinator's clock now, and the time of day */
    uint64_t wall_us;
    const cadre_trace_task *tasks;
    size_t task_count;
    uint32_t task; /* that recorded the spans, */
    uint64_t incarnation;
    const cadre_trace_span *spans;
    size_t span_count;
    bool own_numbers; /* a plain program: a step is from one collective of all tasks to the next */
    bool ended;       /* nothing follows; */
    const char *message; /* and why not all of the steps are in it; "": they are */
} cadre_trace;

/* Zeroed: the next ten steps, for a minute at most. */
typedef struct cadre_trace_options {
    bool from_first; /* from step `first` on, which no task has begun; else from the next one */
    uint64_t first;
    uint64_t steps;    /* how many, at most 10000; 0: ten */
    uint64_t limit_us; /* after so long it ends with what there is, at most an hour; 0: a minute */
} cadre_trace_options;

/* Called with each piece, valid until it returns. False: the trace ends with OK. */
typedef bool cadre_trace_fn(const cadre_trace *trace, void *user);

/* Records what the tasks of a job do in some of its steps to come, until all of them are past
 * these steps, or the job or the time ends. When the call ends no task records any more. Of a job
 * with parameter servers its chief and its workers record; a step is from one cadre_join to the
 * next. `options` may be NULL. NOT_FOUND: there is no such job. FAILED_PRECONDITION: it has ended,
 * is traced already, or a task may have begun step `first`. UNAVAILABLE: the coordinator went away;
 * what came before that is valid. (tf.profiler.experimental.client.trace.) */
CADRE_API cadre_status cadre_client_trace(cadre_client *client, uint64_t job,
    const cadre_trace_options *options, cadre_trace_fn *on_trace, void *user,
    const cadre_then *then);

#ifdef __cplusplus
}
#endif

#endif
