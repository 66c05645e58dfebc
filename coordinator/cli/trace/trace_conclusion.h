/* SPDX-License-Identifier: Apache-2.0
 * Where the time of a step goes, and which task the others wait for: made of the spans alone. Only
 * the program's own thread of each task counts, because what is done beside it costs no time. Pure.
 */
#ifndef CADRE_CLI_TRACE_TRACE_CONCLUSION_H
#define CADRE_CLI_TRACE_TRACE_CONCLUSION_H

#include "coordinator/cli/trace/trace_waits.h"

/* What a moment of a thread belongs to: the innermost span that it is in. */
enum trace_split {
    TRACE_SPLIT_INPUT,
    TRACE_SPLIT_FUNCTION,
    TRACE_SPLIT_WAIT,     /* for other tasks */
    TRACE_SPLIT_TRANSFER, /* collectives, once all have come */
    TRACE_SPLIT_RELEASE,  /* by the coordinator, once all have come */
    TRACE_SPLIT_APPLY,
    TRACE_SPLIT_CHECKPOINT,
    TRACE_SPLIT_REGROUP,
    TRACE_SPLIT_PULL,     /* values are read from parameter servers */
    TRACE_SPLIT_PUSH,     /* and changed there */
    TRACE_SPLIT_SCHEDULE, /* of closures, by the chief */
    TRACE_SPLIT_CLOSURES, /* for closures, where it is for no task in particular */
    TRACE_SPLIT_LIBRARY,  /* the rest of cadre_run */
    TRACE_SPLIT_PROGRAM,  /* outside of all calls: the program between steps */
    TRACE_SPLITS
};

/* "input", "function", ...: as a key. */
const char *trace_split_name(enum trace_split part);

/* Of one task, over the steps that count. */
struct trace_share {
    uint32_t process;
    uint64_t steps;              /* of it that count */
    double split[TRACE_SPLITS];  /* of its time; together 1 */
    double awaited;              /* of the others' time: they wait for it, on average */
    double longer[TRACE_SPLITS]; /* what takes it longer than the others; together 1, or all 0 */
};

#define TRACE_NAMED 0.05 /* less of a step is not worth a name */

struct trace_conclusion {
    uint64_t steps;   /* that were traced whole */
    uint64_t counted; /* of these: the middle half, by how long they took */
    double step_us;   /* the median of them */
    /* Of a step, on average of the tasks that are not waited for; together 1. So what is waited for
     * the slowest is a part of what is waited. */
    double split[TRACE_SPLITS];
    bool of_others;             /* it is not of all tasks: the slowest is left out */
    struct trace_share *shares; /* owned: of each process, in their order */
    size_t share_count;
    uint64_t longest; /* the step that took longest, */
    double longest_us;
    double longest_wait;  /* and the share of it that one process waited most for another: */
    uint32_t longest_for; /* or TRACE_NO_PROCESS */
    /* The process that is waited for most, TRACE_NAMED of a step or more; TRACE_NO_PROCESS: none.
     */
    uint32_t slowest;
};

/* Of a store that is aligned, with its waits. False: no memory. The conclusion is the caller's to
 * free, also then. */
bool trace_conclude(const struct trace_store *store, struct trace_conclusion *ret_conclusion);
void trace_conclusion_free(struct trace_conclusion *conclusion);

#define TRACE_SENTENCE_BYTES 512

/* One sentence or two: who is waited for and why, else what takes the time. */
void trace_sentence(const struct trace_store *store, const struct trace_conclusion *conclusion,
    char ret_text[TRACE_SENTENCE_BYTES]);

#endif
