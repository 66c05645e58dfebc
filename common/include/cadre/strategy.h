/* SPDX-License-Identifier: Apache-2.0
 * Strategies: how many replicas train together, and where. (tf.distribute.Strategy.)
 *
 * A *replica* is one copy of the model on one local device, run by a thread of its own; a *task* is
 * one process of the job with all its replicas. Every strategy here is synchronous: a step is done
 * by all replicas of all tasks or by none. The local device is the CPU: one replica, or as many
 * virtual ones (CPU:0, CPU:1, ...) as were asked for. A program that has called cadre_enable_gpus
 * (cadre/gpu.h) has a replica on each GPU instead where there are any, and devices that are named
 * may be GPUs in any program.
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
 * Contexts. Three kinds of code run in a program:
 *
 *     main                      replica function          cadre_merge_call's, an update's
 *     cross-replica context     replica context           cross-replica context, inside a step
 *     cadre_run, cadre_reduce   cadre_all_reduce          updates and reads
 *
 * Unless a function says otherwise it is called from *cross-replica context*, that is outside of
 * replica functions; called elsewhere, while a step runs, or with a strategy that has ended it
 * gives FAILED_PRECONDITION. An argument that is NULL and cannot be left out gives
 * INVALID_ARGUMENT, which names it.
 *
 * One call at a time. Any thread may make it, but while a call with a strategy has not returned the
 * next one gives FAILED_PRECONDITION and does nothing: that of another thread, and that of a
 * function which the program gave to the first (an initializer, a pipeline's or a value's function,
 * those of cadre/preemption.h). Such functions may call what says "any context", read variables and
 * make random streams.
 *
 * A program started by hand may have several strategies at a time, up to 64, of which each is a job
 * of its own (their checkpoints go to one folder: finish one of them, release the others). In a job
 * under a daemon or of several tasks there is one. Functions that take no strategy mean the one of
 * their context; else of the thread's scope; else the one that was set; else the only one that
 * lives. */
#ifndef CADRE_STRATEGY_H
#define CADRE_STRATEGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A strategy, with all that is made in its scope. */
typedef struct cadre_strategy cadre_strategy;

/* The strategy that the job was started with: mirrored in a job of one task (also by hand, without
 * any daemon), multi-worker mirrored in one of several. Waits until all tasks of the job are there,
 * unless the job is under way: then it returns at once, and the task prepares alone until its
 * program comes to a step.
 *
 * This and the other constructors: on success the strategy is the caller's, to be given to
 * cadre_finish or cadre_strategy_release; on error *ret_strategy is NULL. FAILED_PRECONDITION:
 * cadre_init was not called, a task of a job has its strategy or had it already, or the tasks have
 * different numbers of replicas. UNAVAILABLE, ABORTED, DEADLINE_EXCEEDED: the worker daemon or
 * another task did not come or went away. RESOURCE_EXHAUSTED: no memory, no more threads, or more
 * than 64 strategies. In a program that was started by hand on a terminal a line on stderr says
 * which devices it is on. (TF_CONFIG.) */
CADRE_API cadre_status cadre_strategy_default(cadre_strategy **ret_strategy);

/* One replica, on the device of that name (cadre/device.h: "CPU:0"): the same program without any
 * distribution. INVALID_ARGUMENT: not a device's name. FAILED_PRECONDITION: a device of another
 * task, a GPU that is not there, a job of several tasks or of several replicas in each.
 * (tf.distribute.OneDeviceStrategy.) */
CADRE_API cadre_status cadre_strategy_one_device(const char *device, cadre_strategy **ret_strategy);

/* Replicas of this process only. `replicas`: how many; 0 for one on each GPU that
 * cadre_enable_gpus gives, or one on the CPU. The number that the job was started with
 * (`--replicas`, CADRE_REPLICAS) has precedence over both, so that a program need not be changed.
 * At most 256, and on GPUs as many as there are, INVALID_ARGUMENT. FAILED_PRECONDITION in a job of
 * several tasks. (tf.distribute.MirroredStrategy.) */
CADRE_API cadre_status cadre_strategy_mirrored(uint32_t replicas, cadre_strategy **ret_strategy);

/* Replicas of this process on `count` devices, replica r on devices[r]. INVALID_ARGUMENT: an
 * empty list, not a device's name, a device twice. FAILED_PRECONDITION: a device of another task, a
 * GPU that is not there, or the job was started with another number of replicas. GPUs and CPUs may
 * stand in one list: then sums go through the memory of the host, and a warning says so.
 * (tf.distribute.MirroredStrategy(devices).) */
CADRE_API cadre_status cadre_strategy_mirrored_devices(
    const char *const devices[], size_t count, cadre_strategy **ret_strategy);

/* Each variable is stored once, on `parameter_device` (NULL: CPU:0, or the only GPU; on a GPU, too,
 * it lies in the memory of the host, where the replicas' values are combined); the
 * computation is replicated over `compute_devices`, as above (NULL and 0: those of
 * cadre_strategy_mirrored(0)). One process. (tf.distribute.experimental.CentralStorageStrategy.) */
CADRE_API cadre_status cadre_strategy_central_storage(const char *const compute_devices[],
    size_t count, const char *parameter_device, cadre_strategy **ret_strategy);

/* `replicas` in each task of the job, as cadre_strategy_mirrored has them in one. All tasks have
 * equally many. In a cluster that TF_CONFIG, Slurm or the program describes the chief, if it has
 * one, and the workers are the job; ps tasks take no part, and in one of them it is
 * FAILED_PRECONDITION. (tf.distribute.MultiWorkerMirroredStrategy.) */
CADRE_API cadre_status cadre_strategy_multi_worker_mirrored(
    uint32_t replicas, cadre_strategy **ret_strategy);

/* Ends the strategy with all that was made in its scope: variables, distributed datasets, values
 * that were not retained; and its scopes. Nothing is saved. A job whose tasks all do this instead
 * of cadre_finish has succeeded; where only some do, they have failed. NULL and one that has ended
 * do nothing; nor does a call while another one with the strategy has not returned (a step, an
 * update), or in a closure, and cadre_error_message has the reason. */
CADRE_API void cadre_strategy_release(cadre_strategy *strategy);

/* --- looking at it. Any context and thread. Of NULL, and of a strategy that has ended, they return
 * 0 and false. --- */

/* Replicas of the whole job, as it is now; of a task that has not joined yet: as it would be with
 * it. With parameter servers: those of one worker, which is how many run a step of a closure.
 * (tf.distribute.Strategy.num_replicas_in_sync.) */
CADRE_API uint32_t cadre_strategy_num_replicas_in_sync(const cadre_strategy *strategy);

/* Replicas of this task. (len(strategy.extended.worker_devices).) */
CADRE_API uint32_t cadre_strategy_local_replicas(const cadre_strategy *strategy);

/* Whether this task is the chief (rank 0): the one that prints, reports and writes checkpoints.
 * When the chief dies another task is: ask each time. A task that has not joined yet is never it.
 * (tf.distribute.cluster_resolver.ClusterResolver.task_type "chief".) */
CADRE_API bool cadre_strategy_is_chief(const cadre_strategy *strategy);

/* Steps that the state of this task holds: the ledger's position, never the program's own count. */
CADRE_API uint64_t cadre_strategy_position(const cadre_strategy *strategy);

/* --- its devices, and a description --- */

/* Which devices of a strategy. */
typedef enum cadre_device_list {
    /* Of this task's replicas, in order of local id.
     * (tf.distribute.StrategyExtended.worker_devices.) */
    CADRE_WORKER_DEVICES = 0,
    /* Those that variables have their components on, which is where cadre_update_non_slot calls its
     * function, too: with central storage the parameter device, else those of the replicas.
     * (tf.distribute.StrategyExtended.parameter_devices, non_slot_devices.) */
    CADRE_PARAMETER_DEVICES
} cadre_device_list;

/* The canonical names of these devices: *ret_devices[*ret_count], the strategy's. Any context and
 * thread. FAILED_PRECONDITION: NULL, or one that has ended. INVALID_ARGUMENT: not one of the lists.
 */
CADRE_API cadre_status cadre_strategy_devices(const cadre_strategy *strategy,
    cadre_device_list which, const char *const **ret_devices, uint32_t *ret_count);

/* Prints what the strategy is made of, as it is now: its kind, the replicas of the whole job, the
 * tasks and which one this is, the devices of this task's replicas, how replicas meet, and the
 * position:
 *
 *     MirroredStrategy: 2 replicas in sync, in 1 task
 *       replica 0: /job:localhost/replica:0/task:0/device:CPU:0
 *       replica 1: /job:localhost/replica:0/task:0/device:CPU:1
 *       communication: the memory of this process
 *       position: 0 steps
 *
 * The words may change with versions. Between steps.
 * FAILED_PRECONDITION: it has ended, or a step is running. */
CADRE_API cadre_status cadre_describe(const cadre_strategy *strategy, FILE *file);

/* --- scopes: which strategy a thread's calls mean --- */

/* Makes the strategy the calling thread's current one, in cross-replica context, until
 * cadre_scope_leave with the same one. Scopes of one strategy nest. NULL stands for the default
 * strategy here: a scope of cadre_strategy_current() can always be entered. FAILED_PRECONDITION:
 * inside the scope of another strategy, or with another one set ("mixing"); in a replica function;
 * the strategy has ended. Also every function that is given a strategy is refused inside another
 * one's scope. (tf.distribute.Strategy.scope.) */
CADRE_API cadre_status cadre_scope_enter(cadre_strategy *strategy);

/* Leaves the thread's innermost scope. FAILED_PRECONDITION: it is not one of this strategy. A scope
 * ends with its strategy too; then it need not be left. */
CADRE_API cadre_status cadre_scope_leave(cadre_strategy *strategy);

/* Makes the strategy current outside of scopes, in all threads but those of workers; NULL: none. It
 * ends with the strategy. FAILED_PRECONDITION inside a scope, a replica function or one that a
 * worker runs. (tf.distribute.experimental_set_strategy.) */
CADRE_API cadre_status cadre_strategy_set(cadre_strategy *strategy);

/* The current strategy: in a replica function its own; else of the scope; else in a function that a
 * worker runs for the chief the worker's own (cadre/cluster_coordinator.h), which is not to be
 * released; else the one that was set; else the *default strategy*, of which cadre_has_strategy
 * says false. Any thread.
 *
 * The default strategy is one replica on CPU:0 of this process, by itself whatever job the process
 * is a task of, so that a function which is written for a strategy can be called without one:
 * cadre_run calls it once, reductions give the value back, and distributed datasets are the
 * pipeline's own batches. Variables that are created with it are regular ones. It saves nothing,
 * goes on from nothing, and ends with the process: it is not to be released, and counts neither as
 * the only open strategy nor among the 64.
 * NULL, and cadre_error_message says why: before cadre_init, in a plain program (cadre/plain.h),
 * without memory. (tf.distribute.get_strategy.) */
CADRE_API cadre_strategy *cadre_strategy_current(void);

/* Whether the current strategy is another one than the default strategy. Any thread.
 * (tf.distribute.has_strategy.) */
CADRE_API bool cadre_has_strategy(void);

/* Whether the calling thread is in a strategy's scope (or one is set) and in no replica function.
 * Outside of everything it is false, and functions of cross-replica context can be called all the
 * same. (tf.distribute.in_cross_replica_context.) */
CADRE_API bool cadre_in_cross_replica_context(void);

#ifdef __cplusplus
}
#endif
#endif
