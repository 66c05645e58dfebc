/* SPDX-License-Identifier: Apache-2.0
 * Preemption: what a job does when its machines are taken from it.
 * (tf.distribute.experimental.PreemptionCheckpointHandler, TerminationConfig.)
 *
 * A notice is SIGTERM to any one task, a call of cadre_preempt, or `cadre drain` of a worker that
 * the job cannot do without. The first one fixes a step that all tasks can still come to: one more
 * than the highest that any has begun. All run up to it and do what they do behind it; where they
 * would begin the next one, the state is saved as one checkpoint, and when that is published they
 * leave: cadre_next (or cadre_run, where a step has no batch) gives
 * CANCELLED with the message "preempted: saved at step S", and so does all that follows;
 * cadre_next_epoch gives false; cadre_finish writes nothing more and returns CADRE_EXIT_PREEMPTED.
 * A program with the usual loops needs nothing for it. What comes between them can ask
 * cadre_preempted; CADRE_CHECK that meets the CANCELLED exits with CADRE_EXIT_PREEMPTED as well.
 *
 *     task 0 ──●────────●─ SIGTERM ─●────────●─ S ┬ saved, published ─ cadre_finish: 42
 *     task 1 ──●────────●───────────●────────●─ S ┘ waits ──────────── cadre_finish: 42
 *
 * What then becomes of the job: submitted with --max-restarts of more than 0, or drained, it goes
 * back to the queue and goes on from the checkpoint on other workers; that counts against nothing.
 * Else (`cadre run`, --max-restarts 0) it ends as "preempted", `cadre run` and `cadre submit` exit
 * with 42, and --restore goes on from there. By hand the process exits, and CADRE_RESTORE goes on.
 * Exactly the remaining steps are done, with the same samples.
 *
 * Who does not come to the step in the time that the coordinator gives (--grace) is ended, and the
 * job goes on from its newest checkpoint. When a task dies meanwhile, the others save where they
 * stand. A second notice changes nothing; a job that ends by itself before the step just ends.
 *
 * Under a daemon the handler of SIGTERM is there from the strategy's creation to its end, and a
 * handler that the program had is called after it; the daemon's own SIGTERM (a cancelled job) ends
 * the process as ever. `--env CADRE_PREEMPTION=off` leaves SIGTERM alone. By hand SIGTERM ends the
 * program as ever, unless CADRE_PREEMPTION=on or cadre_preemption_handler_set is called. */
#ifndef CADRE_PREEMPTION_H
#define CADRE_PREEMPTION_H

#include <stdbool.h>

#include "cadre/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a preempted program exits with, so that a supervisor knows that it is to be started again;
 * TensorFlow's default, too. */
#define CADRE_EXIT_PREEMPTED 42

/* Called in the program's thread, between two steps, with what was given as `user`. */
typedef void (*cadre_preemption_function)(cadre_strategy *strategy, void *user);

/* What this task does when the job is preempted. Zeroed: the defaults. (TerminationConfig.) */
typedef struct cadre_preemption_options {
    bool off; /* SIGTERM does what it did before; cadre_preempt and drains work as ever */
    /* More than 0: the notice comes so long before the end (grace_period). The state is saved at
     * once at one step, the training goes on, and saves again and leaves when the time is over. */
    double grace_seconds;
    int exit_code; /* of cadre_finish, 1 to 255; 0: CADRE_EXIT_PREEMPTED */
    /* Called on every task at the step where it stops, before the checkpoint is written: for what
     * the program wants to keep besides (save_fn). It makes no collectives, changes nothing, takes
     * no step and ends nothing: calls with the strategy (cadre_run, cadre_next, cadre_finish) give
     * FAILED_PRECONDITION. It may read variables. */
    cadre_preemption_function save_function;
    /* Called on every task when the checkpoint is published and it may go (exit_fn). It may call
     * exit, and make no other call with the strategy, which cadre_finish ends later; when it
     * returns, the program's loops end. */
    cadre_preemption_function exit_function;
    void *user;
} cadre_preemption_options;

/* Sets how this task answers a notice, and handles SIGTERM from now on (unless `off`) until the
 * strategy ends; NULL options are {0}. Call it before the first step; all tasks should set the
 * same. INVALID_ARGUMENT: a negative or not finite grace, an exit code out of range. Cross-replica
 * context. (PreemptionCheckpointHandler.__init__.) */
CADRE_API cadre_status cadre_preemption_handler_set(
    cadre_strategy *strategy, const cadre_preemption_options *options);

/* A notice by the program itself: the whole job saves at one step and leaves. Returns at once.
 * Any thread, any context. FAILED_PRECONDITION with a strategy that has ended.
 * (PreemptionCheckpointHandler.watch_preemption_scope.) */
CADRE_API cadre_status cadre_preempt(cadre_strategy *strategy);

/* Whether the job was preempted and this task has left it: for programs that want to say something
 * else then. Cross-replica context. */
CADRE_API bool cadre_preempted(const cadre_strategy *strategy);

#ifdef __cplusplus
}
#endif
#endif
