/* SPDX-License-Identifier: Apache-2.0
 * Workers, tasks and clients of one coordinator: jobs of one size, which step, save, end and are
 * replaced by others. Each message is a turn of its own. */
#ifndef CADRE_SIM_LEDGER_LOAD_H
#define CADRE_SIM_LEDGER_LOAD_H

#include "leader.h"

struct placed {
    struct link_id link;
    uint64_t incarnation;
};

struct job {
    struct job_id id;
    struct generation generation;
    uint64_t released;
};

struct load {
    struct scale_leader log; /* first: the user of the engine's sink is this */
    uint32_t jobs, tasks;    /* of each job */
    struct job *items;
    uint32_t *by_id; /* index of the job of this number */
    uint64_t id_max;
    struct placed *placed; /* by job, then slot */
    uint32_t churning, stage;
};

/* All workers have joined, and all jobs run. */
void load_open(struct load *load, const char *path, uint32_t jobs, uint32_t tasks);
void load_close(struct load *load);
/* An engine with the load's limits. */
void load_begin_engine(struct load *load);
/* Steps of all jobs, one after another, for some seconds; a job saves every 10 minutes. `churns`:
 * and ends after an hour, when another one begins. */
void load_run(struct load *load, uint64_t step_us, uint64_t seconds, bool churns);

struct task_ref load_task(const struct load *load, uint32_t job, uint32_t slot);
/* Of the worker on this link; with its task, if it has one. */
void load_worker_hello(struct load *load, uint64_t link, const struct task_ref *task);
/* What the task says first, also to a coordinator that took over. */
void load_task_hello(struct load *load, uint32_t job, uint32_t slot);
/* All tasks of the job have batches for its next step. */
void load_step(struct load *load, uint32_t job);

#endif
