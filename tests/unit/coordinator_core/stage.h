/* SPDX-License-Identifier: Apache-2.0
 * One core with its watch, and what a faulty cluster of WORKERS workers might send. */
#ifndef CADRE_TESTS_COORDINATOR_CORE_STAGE_H
#define CADRE_TESTS_COORDINATOR_CORE_STAGE_H

#include "tests/unit/coordinator_core/watch.h"

#define SECOND  UINT64_C(1000000)
#define WORKERS 3

/* One core with its watch and what a faulty cluster might send. */
struct stage {
    void *memory;
    struct core *core;
    struct watch *watch;
    struct core_actions actions;
    uint64_t now_us;
    uint64_t calls;
    uint64_t link_last;
    uint64_t links[WORKERS]; /* 0: down */
    uint64_t boots[WORKERS];
    uint64_t job_last; /* highest id that may exist */
    bool whole;        /* check all after each step */
    bool ps_job;       /* jobs of the alphabet have a worker and a server */
    bool plain;        /* hellos are of plain programs */
    bool fixed;        /* jobs of the alphabet need all of their tasks */
    uint32_t
        compares; /* states are compared, and that of slot s is s % compares; 0: they are not */
    uint64_t steps;
    struct stage_kept *kept; /* NULL: nothing was */
};

enum task_event {
    STARTED,
    HELLO,
    FINISHED,
    WANTS,
    FREEZES, /* halted when a halt is pending, else as after an abort */
    DIRTY,
    PEER_ERROR,
    DIVERGES,
    JOINS,
    STALLS,
    PART,
    EXIT_0,
    EXIT_1,
    COLLECTED
};

/* Allocates the core and its watch, and starts it. */
void stage_open(struct stage *stage);
/* Starts the core again, empty. */
void stage_init(struct stage *stage);
/* Frees them. */
void stage_close(struct stage *stage);

/* Keeps the whole state for stage_return(). */
void stage_keep(struct stage *stage);
/* Returns to the state of the last stage_keep(). */
void stage_return(struct stage *stage);

/* One event, checked by the watch. */
void stage_step(struct stage *stage, struct core_event event);
/* A message of an agent. */
void stage_up(struct stage *stage, uint64_t link, const struct agent_up *message);
/* Time passes, with ticks. */
void stage_pass_time(struct stage *stage, uint64_t us);
/* On a new stream, as the same daemon unless its boot nonce was changed. */
void stage_hello(struct stage *stage, uint32_t w, uint32_t slots, const struct task_ref *tasks,
    size_t task_count);
/* The stream of worker `w` ends. */
void stage_link_down(struct stage *stage, uint32_t w);
/* A client submits a job. */
void stage_submit(struct stage *stage, const struct core_job_spec *spec);
/* A client cancels the job. */
void stage_cancel(struct stage *stage, uint64_t job);
/* A client drains the worker. */
void stage_drain(struct stage *stage, const char *worker);
/* A message of the task's worker about it; none when the task is not placed or its worker is away.
 */
void stage_task_event(struct stage *stage, uint64_t job, uint32_t slot, enum task_event what);
/* The i-th worker of the job arrives `ahead` beyond the release. */
void stage_arrive(struct stage *stage, uint64_t job, uint32_t i, uint64_t ahead, uint32_t stream);

#endif
