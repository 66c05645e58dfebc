/* SPDX-License-Identifier: Apache-2.0
 * The invariants: in each step, of what tasks do, and at the end. Every function calls broken()
 * with the invariant's name (README.md) when it does not hold.
 *
 * Where a check is lenient, and why:
 * - TRUTH: a fault counts for all jobs that have, or get, tasks on the worker, until a welcome on a
 * link that is neither cut, mute nor lossy (seed 7039577 at 3 workers: a job was placed on a worker
 * that had been silent for most of a lease, and had no time to wait for another). When the
 * coordinator is away for longer than a daemon keeps tasks without it, less a lease, that counts
 * for all. A limit on time may be overrun by the coordinator's absences since the job began, and by
 * the drift of its clock. - TRUTH: programs that disagreed may succeed when none of those that
 * noticed it had a daemon to report to (--compare, seed 1000033048 at 7 workers), and the others go
 * on without them. - REWIND: a decision of a turn is recorded at its end, so silence is exact to a
 * turn. Messages that are unread when the core hangs up count as received. - HALT: a task that
 * stopped with its whole generation may get bye when its job ended elsewhere. - VALUE: a wrong
 * state that all adopt from one source, or that a single task holds, cannot be detected. With
 * --verify-losses (every second job of seeds from SCENARIO_WORLD_2 on) the first is no excuse. */
#ifndef CADRE_SIM_CHECK_H
#define CADRE_SIM_CHECK_H

#include <stdbool.h>
#include <stdint.h>

struct core_action;
struct core_record;
struct job;
struct mesh;
struct process;
struct sim;
struct task_plan;
struct task_ref;
struct task_release;

/* ---- check.c: what is recorded and sent ---- */

/* The invariants of the core of this daemon, and of the coordinator's core; `whole`: of all jobs.
 */
void check_cores(struct sim *sim, uint32_t agent, bool whole);
/* PERSIST, before an action is sent. */
void check_sent(struct sim *sim, const struct core_action *action);
/* GANG, when a start is recorded. */
void check_started(struct sim *sim, const struct job *job);
/* DRAINED, of all workers. */
void check_drains(struct sim *sim);
/* ONCE, CONSUMED, CKPT_TIMELINE, GEN_UP, ... when a record is written. */
void check_record(struct sim *sim, struct job *job, const struct core_record *record);
/* REWIND, when the end of a task is recorded. */
void check_lost(struct sim *sim, const struct job *job, const struct core_record *record);
/* GEN_UP, PERSIST, RANKS, PS_JOB. */
void check_plan(struct sim *sim, const struct job *job, const struct task_plan *plan);
/* ARRIVED, PERSIST, HALT, END, PUBLISHED. */
void check_release(struct sim *sim, const struct job *job, const struct task_release *release);
/* HALT, PREEMPT, LAYOUT. */
void check_goodbye(struct sim *sim, const struct job *job);

/* ---- check_task.c: what tasks do ---- */

/* EXISTS, RANKS, TIMELINE, LAYOUT of a plan's source. */
void check_source(struct sim *sim, const struct job *job, const struct mesh *mesh);
/* OWN_STATE, when a task is reset. */
void check_begins_again(struct sim *sim, const struct process *process);
/* EXISTS, PREEMPT, ASKED, ADMIT, when a task enters a step. */
void check_enter(struct sim *sim, const struct process *process, uint64_t position);
/* `position` is the step that was just written into the variables: ADMIT, DRIFT, ONCE, EQUAL,
 * TIMELINE. */
void check_applied(struct sim *sim, const struct process *process, uint64_t position);
/* HALT, when a program leaves after its training. */
void check_left(struct sim *sim, const struct process *process);
/* SLOTS, when a task is started. */
void check_started_on(struct sim *sim, uint32_t agent, struct task_ref ref);
/* SLOTS, of the tasks of a daemon. */
void check_running(struct sim *sim, uint32_t agent);

/* ---- check_end.c: after the last job ---- */

/* TRUTH, CONSUMED, LEFT, SLOTS, PROGRESS. */
void check_outcomes(struct sim *sim);

/* ---- check_consumed.c ---- */

/* CONSUMED, END, of each epoch that is over for good at a position, when the plan that begins
 * there, or the checkpoint of it, is recorded. */
void check_consumed_before(struct sim *sim, const struct job *job, uint64_t position);
/* The same of each epoch of a job that has succeeded. */
void check_consumed(struct sim *sim, const struct job *job);

#endif
