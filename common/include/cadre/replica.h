/* SPDX-License-Identifier: Apache-2.0
 * Running a step: a function once per replica, and the values it takes and returns.
 * (tf.distribute.Strategy.run, tf.distribute.ReplicaContext, tf.distribute.DistributedValues.) */
#ifndef CADRE_REPLICA_H
#define CADRE_REPLICA_H

#include <stdint.h>

#include "cadre/strategy.h"
#include "cadre/tensor.h"
#include "cadre/values.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_OUTPUTS_MAX 64 /* tensors that a replica function may return */

/* --- replica context: what a replica function is given. Valid during the call; any thread that the
 * function itself starts and waits for may look at it. Of NULL these return 0. --- */

/* A replica in a step: what a replica function is called with. Borrowed until it returns.
 * (tf.distribute.ReplicaContext.) */
typedef struct cadre_replica cadre_replica;

/* The replica's number in the whole job, from 0 to cadre_replica_count() - 1: rank of the task *
 * local replicas + local id. The same during a step, not from step to step.
 * (tf.distribute.ReplicaContext.replica_id_in_sync_group.) */
CADRE_API uint32_t cadre_replica_id(const cadre_replica *replica);

/* Replicas of the whole job. (tf.distribute.ReplicaContext.num_replicas_in_sync.) */
CADRE_API uint32_t cadre_replica_count(const cadre_replica *replica);

/* Which of this task's replicas it is. */
CADRE_API uint32_t cadre_replica_local_id(const cadre_replica *replica);

/* Rows of the step's whole batch over all replicas of all tasks, not of this slice: what gradients
 * summed over samples are divided by. 0 in a step without a batch, also in one with other values:
 * what their rows are depends on the program. */
CADRE_API int64_t cadre_replica_global_rows(const cadre_replica *replica);

/* How many tensors `inputs` holds: the components of what cadre_run was given, as of a dataset's
 * elements; 0 without. */
CADRE_API uint32_t cadre_replica_input_count(const cadre_replica *replica);

/* The input that is called `name`: a component of the batch, or of an argument
 * (cadre_run_arguments). Borrowed. NOT_FOUND lists which names there are; INVALID_ARGUMENT: several
 * inputs are called so. It compares with each name, which is quick for as many as there are. Any
 * thread that the function waits for. FAILED_PRECONDITION: the function is not running.
 *
 *     CADRE_TRY(cadre_replica_input(replica, "image", &image));
 *
 * (The arguments' structures in tf.distribute.Strategy.run.) */
CADRE_API cadre_status cadre_replica_input(
    const cadre_replica *replica, const char *name, cadre_tensor **ret_tensor);

/* Returns `tensor` from the replica function as the output `name`, in the next place of its outputs
 * that is empty; takes one reference over, also on error. cadre_values_named finds it among what
 * cadre_run gives back. All replicas give the same names in the same order. INVALID_ARGUMENT, which
 * fails the step: NULL, an empty name or one that was given already, no place left.
 * FAILED_PRECONDITION in another thread than the function's.
 *
 *     return cadre_replica_output(replica, "loss", loss);
 *
 * (The dict that a function given to tf.distribute.Strategy.run returns.) */
CADRE_API cadre_status cadre_replica_output(
    cadre_replica *replica, const char *name, cadre_tensor *tensor);

/* The canonical name of its device (cadre/device.h), the strategy's; of NULL "".
 * (tf.distribute.ReplicaContext.devices.) */
CADRE_API const char *cadre_replica_device(const cadre_replica *replica);

/* The replica whose function the calling thread runs. NULL in cross-replica context: in a
 * strategy's scope, in a merge call's function and an update's. Outside of all that the default
 * strategy's only one, with id 0 of 1 (cadre_strategy_current); its id can be read, and collectives
 * are made in cadre_run. (tf.distribute.get_replica_context.) */
CADRE_API cadre_replica *cadre_replica_current(void);

/* The strategy that the replica is of, borrowed. (tf.distribute.ReplicaContext.strategy.) */
CADRE_API cadre_strategy *cadre_replica_strategy(const cadre_replica *replica);

/* --- merge calls --- */

/* Runs once for all replicas of this task. `inputs`: n_inputs values, each of one component with
 * the tensors that the replicas gave, borrowed. `outputs`: CADRE_OUTPUTS_MAX places, all NULL; on
 * success each of the first n_outputs holds one reference of a value of one component, for each
 * local replica (cadre/values.h makes them), and no other does. They are taken, also on failure. */
typedef cadre_status (*cadre_merge_function)(cadre_strategy *strategy,
    cadre_per_replica *const inputs[], cadre_per_replica *outputs[], void *user);

/* In a replica function: the replicas of this task meet, `function` runs once in cross-replica
 * context, in the thread that called cadre_run and with local replica 0's `user`, and each replica
 * gets its part of the result: ret_outputs[n_outputs], one reference of each; NULL after an error.
 * Where the function gave all replicas one tensor they share it: it is only read, and no collective
 * is made on it in place.
 * `inputs`: n_inputs tensors, at most CADRE_ELEMENT_TENSORS_MAX; either may be NULL when there are
 * none.
 * Inputs of replicas on GPUs are tensors on these GPUs, as they were given; combining them
 * (cadre_reduce_to) gives tensors of the host.
 * The function may update, assign and read variables, reduce values of this task and enter scopes
 * of the strategy; collectives and whatever runs a step give FAILED_PRECONDITION there. Other tasks
 * do not meet in it: what it writes is the same on all when it follows from what was all-reduced
 * before. It may be called more than once for one step, as the replica function may.
 * Errors end the step, on all replicas of the task: what the function returned, with its message;
 * INVALID_ARGUMENT, naming both sides, when replicas come with another function or other numbers,
 * when one returns without coming, or begins a collective while another waits here; ABORTED where
 * another replica failed before it came. FAILED_PRECONDITION outside of a replica function.
 * (tf.distribute.ReplicaContext.merge_call.) */
CADRE_API cadre_status cadre_merge_call(cadre_replica *replica, cadre_merge_function function,
    void *user, cadre_tensor *const inputs[], uint32_t n_inputs, uint32_t n_outputs,
    cadre_tensor *ret_outputs[]);

/* --- run --- */

/* One replica's part of a step.
 * `inputs`: its slice of the global batch, or its part of other values, borrowed; do not write to
 * them. A slice may have 0 rows; its types and the other dimensions are right nevertheless.
 * `outputs`: CADRE_OUTPUTS_MAX places, all NULL; on success each of the first n_outputs holds one
 * reference of a tensor, and no other does; cadre_replica_output fills them by name. cadre_run
 * takes them, also on failure. To return an input, or a tensor in several places, retain it for
 * each. Without a reference left for it, such as when the function released it, the step fails with
 * INVALID_ARGUMENT. `user`: shared by all replicas, whose functions run at the same time. Every
 * replica makes the same collective calls in the same order. Variables are written after the last
 * of them. It may be called more than once for one step, when a task is lost: with the slice and
 * the ids of those that are left, and all variables as before the step. So it changes nothing else
 * that lasts. A status other than CADRE_OK ends the step for all replicas; cadre_fail says why. A
 * collective or an assignment that failed ends it too, whatever the function returns. */
typedef cadre_status (*cadre_replica_function)(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user);

/* One step: calls `function` once per local replica, each in a thread of its own (local replica
 * 0 in the calling thread), while the other tasks do the same. `input` is a batch, which
 * cadre_next gave; or other values, those of cadre_values_from_function or outputs of
 * cadre_run; or NULL. Only a batch consumes samples, when it is run for the first time; with
 * all else it is a step without samples. Values are those of this task's replicas: when a task
 * is lost the others do the step with theirs, and those of the lost one are lost. What a task
 * that joins has to receive is kept in a variable instead. `ret_outputs`: n_outputs places,
 * each of which gets a value of one component; borrowed, valid until the next cadre_run; NULL
 * after an error. May be NULL when n_outputs is 0. The step is admitted by the coordinator
 * before its first collective. A step that fails leaves all variables as they were, and no
 * output. When a task dies or joins, the step is done by those that are there then, with the
 * same samples: the tensors inside a batch are replaced, the function is called again. Where
 * other tasks had completed the step already, this one takes over what it lacks instead: the
 * variables, and as outputs those of another task. Errors: what a replica function returned,
 * with its message and number; INVALID_ARGUMENT when outputs are missing or too many, and when
 * replicas disagree in a collective: then it names what they called; FAILED_PRECONDITION for a
 * batch of another strategy, INVALID_ARGUMENT for values of another number of replicas. They
 * are final in a job under a daemon: the job fails, and all calls that follow give the same
 * error. By hand the next step is a fresh start. UNAVAILABLE, ABORTED: the daemon went away for
 * good, or this task was replaced; CANCELLED: the job was stopped.
 * (tf.distribute.Strategy.run.) */
CADRE_API cadre_status cadre_run(cadre_strategy *strategy, cadre_replica_function function,
    void *user, cadre_per_replica *input, uint32_t n_outputs, cadre_per_replica *ret_outputs[]);

/* Runs a step with several values: the function's inputs are the components of all arguments, one
 * after the other.
 *
 *     const cadre_argument arguments[] = {{.values = batch}, {.tensor = rate, .name = "rate"}};
 *     cadre_run_arguments(strategy, step, &model, arguments, 2, 1, &loss);
 *
 * `arguments`: n_arguments, borrowed; NULL and 0 as without any. One batch may be among them, also
 * in parts (cadre_values_named), and is consumed once. Batches of two datasets cannot be, since a
 * step of the ledger is one of one dataset: INVALID_ARGUMENT. Put them together before they are
 * distributed: cadre_dataset_zip. INVALID_ARGUMENT, too, for an argument that has both or none of
 * its two, and for more than CADRE_ELEMENT_TENSORS_MAX inputs. (tf.distribute.Strategy.run with
 * args and kwargs.) */
CADRE_API cadre_status cadre_run_arguments(cadre_strategy *strategy,
    cadre_replica_function function, void *user, const cadre_argument arguments[],
    uint32_t n_arguments, uint32_t n_outputs, cadre_per_replica *ret_outputs[]);

#ifdef __cplusplus
}
#endif
#endif
