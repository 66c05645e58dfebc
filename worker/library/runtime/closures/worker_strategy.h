/* SPDX-License-Identifier: Apache-2.0
 * The strategy that a worker has for the functions that it runs: only its own replicas take part,
 * in steps that are in no ledger. It is a whole one, with a coordinator's core of its own, as the
 * default strategy is; it begins and ends with the worker's connection to the chief, and with it
 * all objects that were made in it.
 *
 *     the thread that runs closures = local replica 0     threads of the pool = the others
 *       cadre_run ── begin: which closure ──▶ bind: they act for that worker and closure, too */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_STRATEGY_H
#define CADRE_RUNTIME_CLOSURES_WORKER_STRATEGY_H

#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Must not move while it is open. */
struct worker_strategy {
    struct ps_job_state *ps_job;
    cadre_strategy *strategy;
    struct environment environment; /* its own, not the process's */
    cadre_closure *closure;         /* that its thread runs; NULL: none */
    uint64_t runs;                  /* calls of cadre_run in it, or since the closure before */
};

/* How many replicas each worker has, by this task's environment: the job's number, else that of its
 * own devices. */
uint32_t worker_strategy_replicas(void);

/* Makes the strategy of the calling thread, which runs the worker's functions from now on. */
cadre_status worker_strategy_open(
    struct worker_strategy *worker, struct ps_job_state *ps_job, struct cadre_error *error);
/* Does nothing when it is not open. */
void worker_strategy_close(struct worker_strategy *worker);

/* Its thread runs that closure from now on. */
void worker_strategy_enter(struct worker_strategy *worker, cadre_closure *closure);
/* The closure is done. */
void worker_strategy_leave(struct worker_strategy *worker);

#endif
