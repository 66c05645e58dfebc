/* SPDX-License-Identifier: Apache-2.0
 * Closures: calls of registered functions that the chief schedules and workers run, in any order,
 * each at least once. (tf.distribute.coordinator.ClusterCoordinator.)
 *
 *     chief                                              worker
 *       cadre_schedule ──▶ queue ──── a closure ──────▶ function(closure, ...)
 *            │ a remote value,          its outputs        pulls, computes, pushes
 *            │ at once           ◀───────────────────────────┘
 *       cadre_join: until nothing is queued or runs      lost: to the queue's end again
 *
 * A closure that fails ends the batch: no closure of the queue starts any more, what is queued is
 * cancelled, closures that run can check for it (cadre_closure_cancelled). The next call of
 * cadre_schedule, cadre_join or cadre_done waits until nothing runs and returns the first error;
 * after that all is as new. Later errors of the batch are those of their own values alone.
 *
 * A closure whose worker is lost is run again by another one, without limit. What it pushed before
 * is not pushed again (cadre/served.h); what else it did is done again. All else that a function
 * returns is the program's own failure, whatever the code: calls for variables on servers wait by
 * themselves for a server that is lost, so UNAVAILABLE and DATA_LOSS of them mean that it did not
 * come back, and the job is to go on from a checkpoint.
 *
 * A worker has a strategy of its own for its functions, which cadre_strategy_current() gives there:
 * so many replicas as the job was started with (`--replicas`, CADRE_REPLICAS), else one on each GPU
 * that cadre_enable_gpus gives, or one on the CPU. In a closure
 *
 *     cadre_closure_batch(closure, 0, CADRE_FEED_ELEMENTS, &batch);
 *     cadre_run(cadre_strategy_current(), replica_step, NULL, batch, 1, &loss);
 *     cadre_reduce(cadre_strategy_current(), CADRE_SUM, loss, &sum);
 *
 * runs on that worker's replicas, whose collectives include no other replica: sums,
 * gathers, merge calls and metrics are theirs. It is no step of the ledger: the job's
 * position does not change, and what fails in it is the closure's error, which the function
 * may also look at and go on. Variables that are created by CADRE_PLACEMENT_PER_WORKER in
 * such a function are the worker's: made the first time, found by their name in all
 * closures after it, in no checkpoint, and lost with the worker; metrics likewise, which
 * the function of a resource makes best. Random streams are drawn by the closure's number:
 * the same when it is run again. What is about the job's state, its checkpoints, its
 * distributed datasets and its steps gives FAILED_PRECONDITION with it; the message names
 * what to call instead.
 *
 * Functions for the chief are called by one thread at a time. What is queued or runs when the
 * strategy ends (cadre_finish too) is cancelled: join first.
 *
 * Tensors and batches of closures, and of variables on servers, are in the memory of the host, also
 * where workers have GPUs; outside of cadre_run a function that computes on one uses CUDA by
 * itself, on the worker's own (CUDA_VISIBLE_DEVICES), and copies what it takes and gives. */
#ifndef CADRE_CLUSTER_COORDINATOR_H
#define CADRE_CLUSTER_COORDINATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/input.h"
#include "cadre/parameter_server.h"
#include "cadre/replica.h"
#include "cadre/values.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cadre_closure cadre_closure; /* one that runs: on its worker, while it does */
typedef struct cadre_remote_value
    cadre_remote_value;                           /* what one will have returned: on the chief */
typedef struct cadre_per_worker cadre_per_worker; /* something that each worker has its own of */

#define CADRE_CLOSURE_ARGUMENTS_MAX 64 /* arguments that a closure may have */

/* --- registering: in every task, after cadre_init and before cadre_serve or the strategy. Names: 1
 * to 127 bytes of printable ASCII; ALREADY_EXISTS. `user` outlives the job. --- */

/* A closure's function: fills `outputs` (NULL before; up to CADRE_OUTPUTS_MAX and 1 GiB, without
 * gaps; the chief gets copies and the references become the library's, also on failure). What it
 * returns other than CADRE_OK is the closure's error, with the sentence of cadre_fail: "`train` on
 * worker 1: ...". ABORTED, UNAVAILABLE and so on of a call for a variable are best returned as they
 * are. */
typedef cadre_status (*cadre_closure_function)(
    cadre_closure *closure, cadre_tensor *outputs[], void *user);

/* Registers a function under the name that cadre_schedule gives; workers call it with `user`. (The
 * function that ClusterCoordinator.schedule is given.) */
CADRE_API cadre_status cadre_function_register(
    const char *name, cadre_closure_function function, void *user);

/* Registers the function that makes a worker's dataset: its num_input_pipelines is 1,
 * num_replicas_in_sync the worker's replicas; cadre_worker_index says which worker. It is read from
 * the beginning of its epoch 0 to its end; one that is to be endless repeats itself. */
CADRE_API cadre_status cadre_dataset_register(
    const char *name, cadre_input_function function, void *user);

/* Makes a resource of a worker, whatever it is; `release` (may be NULL) ends it. */
typedef cadre_status (*cadre_resource_function)(void **ret_resource, void *user);

/* Registers how a worker makes a resource, and how the resource ends, under the name that
 * cadre_create_per_worker_resource gives. */
CADRE_API cadre_status cadre_resource_register(const char *name, cadre_resource_function function,
    void (*release)(void *resource, void *user), void *user);

/* The number of the worker that the calling thread makes a dataset or resource or runs a closure
 * for. FAILED_PRECONDITION elsewhere. (get_current_worker_index.) */
CADRE_API cadre_status cadre_worker_index(uint32_t *ret_index);

/* --- on the chief --- */

/* What a closure gets: a tensor, or what each worker has its own of; one of the two. */
typedef struct cadre_closure_argument {
    cadre_tensor *tensor;         /* retained until the closure is done */
    cadre_per_worker *per_worker; /* the worker's own */
} cadre_closure_argument;

/* Queues a call of `function`, and waits while 262,144 are queued. *ret_value is the caller's, to
 * be released; `ret_value` may be NULL. First an error of closures before is returned, and this one
 * is cancelled with them. NOT_FOUND: no function of that name is registered, and which are;
 * INVALID_ARGUMENT: arguments of neither kind or both, of another strategy, more than 64, more than
 * 1 GiB together. A tensor's values are those at the time when a worker gets it.
 * (ClusterCoordinator.schedule.) */
CADRE_API cadre_status cadre_schedule(cadre_strategy *strategy, const char *function,
    const cadre_closure_argument *arguments, uint32_t argument_count,
    cadre_remote_value **ret_value);

/* Waits until all that was scheduled is done, or one failed: its error. In a job that goes on from
 * a checkpoint the first call of cadre_schedule, cadre_join or cadre_done loads the chief's
 * variables and registered states (those on servers have their values since they were created): a
 * program whose loop begins with them joins before it, when nothing is scheduled. A step of the
 * ledger (cadre_strategy_position) when closures were done since the last one: so the position
 * counts them in a job that goes on from a checkpoint, and the coordinator can save or stop the job
 * there. (ClusterCoordinator.join.) */
CADRE_API cadre_status cadre_join(cadre_strategy *strategy);

/* Whether nothing is queued or runs; an error as above. (ClusterCoordinator.done.) */
CADRE_API cadre_status cadre_done(cadre_strategy *strategy, bool *ret_done);

/* Waits for the closure: its outputs, one reference each, *ret_count of them (may be NULL). With a
 * `capacity` of 0 it only waits and counts; INVALID_ARGUMENT: it is another one that is too small.
 * Else the closure's error; CANCELLED: it was cancelled with others, or not done when the strategy
 * ended. May be called repeatedly, also when its worker was lost, and after the strategy's end.
 * (ClusterCoordinator.fetch, RemoteValue.fetch.) */
CADRE_API cadre_status cadre_fetch(
    cadre_remote_value *value, cadre_tensor *ret_outputs[], uint32_t capacity, uint32_t *ret_count);

/* Whether cadre_fetch would not wait. Any thread. */
CADRE_API bool cadre_remote_value_ready(const cadre_remote_value *value);

/* Gives the caller's reference back; the closure runs all the same. NULL is allowed. Any thread. */
CADRE_API void cadre_remote_value_release(cadre_remote_value *value);

/* Each worker makes the dataset `name` of its own, at once, and again, from the start, when it
 * comes back. An iterator of it is an argument of closures; several may be made of one function.
 * What fails in making it fails the closures that use it with that error, and only these. The
 * strategy's. NOT_FOUND; RESOURCE_EXHAUSTED: more than 4096 of a strategy.
 * (create_per_worker_dataset and iter; a dataset is not shared out between workers.) */
CADRE_API cadre_status cadre_create_per_worker_dataset(
    cadre_strategy *strategy, const char *name, cadre_per_worker **ret_per_worker);

/* Each worker makes the resource `name` of its own, as it does with a dataset; what is true of that
 * is true of the resource. (create_per_worker_resource.) */
CADRE_API cadre_status cadre_create_per_worker_resource(
    cadre_strategy *strategy, const char *name, cadre_per_worker **ret_per_worker);

/* How many workers are connected now. */
CADRE_API uint32_t cadre_workers_connected(const cadre_strategy *strategy);

/* --- in a closure. INVALID_ARGUMENT names the argument and what it is where it is another kind.
 * --- */

/* How many arguments the closure was scheduled with. */
CADRE_API uint32_t cadre_closure_argument_count(const cadre_closure *closure);

/* A tensor that the closure was scheduled with, borrowed until the function returns. */
CADRE_API cadre_status cadre_closure_tensor(
    cadre_closure *closure, uint32_t argument, cadre_tensor **ret_tensor);

/* The next element of the worker's dataset: its components, one reference each. OUT_OF_RANGE at the
 * end, and from then on. Not in a replica function, nor is the next one. */
CADRE_API cadre_status cadre_closure_next(cadre_closure *closure, uint32_t argument,
    cadre_tensor *ret_components[], uint32_t capacity, uint32_t *ret_count);

/* What the replicas of a worker get of its dataset in a step. */
typedef enum cadre_feed {
    /* An element each, in order. (distribute_datasets_from_function.) */
    CADRE_FEED_ELEMENTS = 0,
    /* Each its part of one element, which is a global batch, cut as cadre_distribute_dataset cuts
     * it. (experimental_distribute_dataset.) */
    CADRE_FEED_PARTS
} cadre_feed;

/* The next step's batch of the worker's dataset: a value of the worker's replicas, for cadre_run;
 * the caller's to release. cadre_replica_global_rows is then that of the worker's replicas. At the
 * end replicas that have nothing get empty tensors while others have something, but where all
 * elements have one fixed shape: then it ends before, and a warning says what was left.
 * OUT_OF_RANGE from then on; any other error of the dataset also comes out of all further calls.
 * INVALID_ARGUMENT: another `feed` than before. FAILED_PRECONDITION: it was read by
 * cadre_closure_next. (next() of a per-worker iterator with several replicas.) */
CADRE_API cadre_status cadre_closure_batch(cadre_closure *closure, uint32_t argument,
    cadre_feed consumption, cadre_per_replica **ret_batch);

/* The worker's own resource, which its registered function made; borrowed until the function
 * returns. */
CADRE_API cadre_status cadre_closure_resource(
    cadre_closure *closure, uint32_t argument, void **ret_resource);

/* The closure's number, from 1: the same when it is run again. */
CADRE_API uint64_t cadre_closure_number(const cadre_closure *closure);

/* Whether an error is pending, so that what this closure does is not wanted any more: long ones may
 * look now and then, and return CANCELLED. */
CADRE_API bool cadre_closure_cancelled(const cadre_closure *closure);

#ifdef __cplusplus
}
#endif
#endif
