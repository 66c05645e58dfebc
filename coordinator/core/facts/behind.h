/* SPDX-License-Identifier: Apache-2.0
 * A ledger that is older than what a task of a job has seen, because a disk lied about an fsync, or
 * an older copy was put back. What the ledger would decide contradicts what the tasks have
 * received, so the job waits: nothing is decided or sent for it, no deadline of it runs, and its
 * tasks keep their state, until a client cancels it or the coordinator is started with a newer
 * ledger (protocol, rule 30). Ends of its tasks are recorded as always.
 *
 * With a shared log the same holds for one that etcd has lost entries of (rule HA12). A leader that
 * was replaced, and so has an older ledger, ends no task either: what ends one waits for an append,
 * which fails and shows that another one leads. The coordinator takes part all the same, because
 * with a restored etcd that was accepted there are such tasks, and the other jobs go on. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_BEHIND_H
#define CADRE_COORDINATOR_CORE_FACTS_BEHIND_H

#include "common/pure/text.h"
#include "coordinator/core/state/state.h"

/* The job waits so. An outcome, which only a client can set meanwhile, ends that. */
bool behind_is(const struct job *job);
/* Whether a task of this generation has received a plan that the ledger does not have. */
bool behind_of_generation(const struct job *job, struct generation seen);
/* The task in this slot has this generation: the job waits from now on. */
void behind_found(struct core *core, struct job *job, uint32_t slot, struct generation seen);
/* A task that is unknown, on this worker. True: nothing that ends it may be sent, because the
 * ledger is older than it, and its job waits; or no such job is known at all. */
bool behind_keeps(struct core *core, uint32_t worker, struct task_ref ref);
/* The newest job of which the worker holds anything; 0: of none. */
struct job_id behind_newest(const struct agent_hello *hello);
/* Keeps its number: as long as it is newer than the ledger no job is submitted, because one would
 * get the number of another that has tasks. */
void behind_note_newest(struct core *core, const struct agent_hello *hello);
/* Adds that a worker keeps state of this job, which is newer than the ledger, and the remedy. */
void behind_text(const struct core *core, struct job_id job, struct text *text);

#endif
