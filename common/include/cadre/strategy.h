/* SPDX-License-Identifier: Apache-2.0
 * Strategies: how many replicas train together, and where. (tf.distribute.Strategy.)
 *
 * A *replica* is one copy of the model on one local device, run by a thread of its own; a *task* is
 * one process of the job with all its replicas. Every strategy here is synchronous: a step is done
 * by all replicas of all tasks or by none. Without a GPU the local device is the CPU: one replica,
 * or as many virtual ones as were asked for.
 *
 * A job of several tasks survives the loss of some, and takes in others. When a task dies, the rest
 * goes on at once: what was being done is done again with the replicas that are left, and no call
 * returns an error for it. A task that comes later (in the place of a lost one, or because the job
 * grows) runs the same program from its beginning: its variables get the job's values, and
 * cadre_next_epoch leads it to where the others are (cadre/input.h). So the number of replicas, the
 * rank of a task, who is chief, and the ids of replicas change, but never while a step runs. What a
 * program needs of the past it keeps in variables or registers with cadre_state_register; the size
 * of the global batch must not depend on the number of tasks.
 *
 * One strategy lives at a time in a process. Unless a function says otherwise it is called from
 * *cross-replica context*, that is outside of replica functions, by one thread at a time; called
 * elsewhere, while a step runs, or with a strategy that has ended it gives FAILED_PRECONDITION. An
 * argument that is NULL and cannot be left out gives INVALID_ARGUMENT, which names it. */
#ifndef CADRE_STRATEGY_H
#define CADRE_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cadre_strategy cadre_strategy;

/* What the job was started with: mirrored in a job of one task (also by hand, without any daemon),
 * multi-worker mirrored in one of several. Waits until all tasks of the job are there, unless the
 * job is under way: then it returns at once, and the task prepares alone until its program comes to
 * a step.
 *
 * This and the other constructors: on success the strategy is the caller's, to be given to
 * cadre_finish or cadre_strategy_release; on error *ret_strategy is NULL. FAILED_PRECONDITION:
 * cadre_init was not called, another strategy lives, a task under a daemon had its strategy
 * already, or the tasks have different numbers of replicas. UNAVAILABLE, ABORTED,
 * DEADLINE_EXCEEDED: the worker daemon or another task did not come or went away.
 * RESOURCE_EXHAUSTED: no memory or no more threads. (tf.distribute.get_strategy, TF_CONFIG.) */
CADRE_API cadre_status cadre_strategy_default(cadre_strategy **ret_strategy);

/* Replicas of this process only. `replicas`: how many; 0 for one per local device. The number that
 * the job was started with (`--replicas`, CADRE_REPLICAS) has precedence over both, so that a
 * program need not be changed. At most 256, INVALID_ARGUMENT. FAILED_PRECONDITION in a job of
 * several tasks.
 * (tf.distribute.MirroredStrategy.) */
CADRE_API cadre_status cadre_strategy_mirrored(uint32_t replicas, cadre_strategy **ret_strategy);

/* `replicas`, as above, in each task of the job. All tasks have equally many.
 * (tf.distribute.MultiWorkerMirroredStrategy.) */
CADRE_API cadre_status cadre_strategy_multi_worker_mirrored(
    uint32_t replicas, cadre_strategy **ret_strategy);

/* Ends the strategy with all that was made in its scope: variables, distributed datasets, values
 * that were not retained. Nothing is saved. A job whose tasks all do this instead of cadre_finish
 * has succeeded; where only some do, they have failed. NULL, one that has ended, and a call while a
 * step runs do nothing. */
CADRE_API void cadre_strategy_release(cadre_strategy *strategy);

/* The next four may be called from any context and thread. Of NULL, and of a strategy that has
 * ended, they say 0 and false. */

/* Replicas of the whole job, as it is now; of a task that has not joined yet: as it would be with
 * it. (tf.distribute.Strategy.num_replicas_in_sync.) */
CADRE_API uint32_t cadre_strategy_num_replicas_in_sync(const cadre_strategy *strategy);

/* Replicas of this task. (len(strategy.extended.worker_devices).) */
CADRE_API uint32_t cadre_strategy_local_replicas(const cadre_strategy *strategy);

/* Whether this task is the chief (rank 0): the one that prints, reports and writes checkpoints.
 * When the chief dies another task is: ask each time. A task that has not joined yet is never it.
 * (tf.distribute.cluster_resolver.ClusterResolver.task_type "chief".) */
CADRE_API bool cadre_strategy_is_chief(const cadre_strategy *strategy);

/* Steps that the state of this task holds: the ledger's position, never the program's own count. */
CADRE_API uint64_t cadre_strategy_position(const cadre_strategy *strategy);

/* Whether the calling thread is outside of replica functions.
 * (tf.distribute.in_cross_replica_context.) */
CADRE_API bool cadre_in_cross_replica_context(void);

#ifdef __cplusplus
}
#endif
#endif
