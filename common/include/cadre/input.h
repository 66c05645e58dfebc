/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: a dataset of global batches, one piece of each for every replica.
 * (tf.distribute.Strategy.experimental_distribute_dataset, tf.distribute.DistributedDataset.)
 *
 *     CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &input));
 *     while (cadre_next_epoch(input, 20, NULL)) {
 *         while (cadre_next(input, &batch) == CADRE_OK) {
 *             CADRE_CHECK(cadre_run(strategy, step, &model, batch, 0, NULL));
 *         }
 *     }
 *
 * Shared out by samples (CADRE_SHARD_DATA, and CADRE_SHARD_AUTO where it means that), what a step
 * holds depends on the dataset, the epoch and the step, never on which task reads it: tasks that
 * are lost or join change which task gets which slice, not what is in the global batch or when.
 *
 * Shared out by files (CADRE_SHARD_FILE), each task reads files of its own, so a step holds what
 * all of them have together. Every record is consumed once in an epoch, whichever tasks are lost or
 * join: what is left of the files is dealt again to the tasks that are there. So it is when a job
 * goes on from a checkpoint, also with as many tasks: the position in its pipeline is of each task
 * alone, and the checkpoint holds what all have in common, which is what was consumed of each file.
 * The rest of that epoch has another order than without the interruption, and those after it are as
 * they would have been. In a job that grows beyond the number of files, tasks without a file get
 * empty batches, and a warning says so; one that begins with fewer files than the fewest tasks that
 * the job allows is refused (INVALID_ARGUMENT). Where elements depend on those before them other
 * than by a shuffle or filter (take, cache, ... behind the files), an epoch cannot be dealt again
 * in its middle: FAILED_PRECONDITION when the number of tasks changes there.
 *
 * Wherever tasks have pipelines of their own (FILE, OFF, HINT, functions), a step exists as long as
 * one of them has data for it. They agree on that in each cadre_next, so all of them make the same
 * calls. A step whose only data was on a task that is lost in it is done with empty batches, and
 * cadre_replica_global_rows is 1 then.
 *
 * A task that joins a job that is under way, and all tasks of a job that goes on from a checkpoint,
 * run the program from its beginning. They are led to the job's position: epochs that are done are
 * passed over, and cadre_next_epoch returns true for the one that is in progress, at its next step.
 * A joining task waits in its first cadre_next_epoch with anything left, or its first cadre_run
 * without a batch, until the others begin such a step. What it does from there to its first
 * cadre_run the others have done before that step: collectives between steps (cadre_reduce,
 * cadre_barrier) then give its own value alone, assignments and cadre_save change nothing. Tasks
 * that go on from a checkpoint do all of it, together: an assignment after cadre_next_epoch is made
 * once more.
 *
 * All functions are for cross-replica context. With a dataset of a strategy that has ended those
 * that can fail give FAILED_PRECONDITION, and the others their value for nothing: false, 0,
 * CADRE_CARDINALITY_UNKNOWN. */
#ifndef CADRE_INPUT_H
#define CADRE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "cadre/replica.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A dataset that the tasks of a job read together, or one more way through one. The strategy's.
 * (tf.distribute.DistributedDataset, DistributedIterator.) */
typedef struct cadre_distributed_dataset cadre_distributed_dataset;

/* Where documents and implementation of tf.distribute differ in how a global batch is cut. */
typedef enum cadre_rebatch {
    CADRE_REBATCH_SPLIT = 0, /* as documented: each batch alone, pieces of ceil(rows / replicas) */
    CADRE_REBATCH_TENSORFLOW /* as TensorFlow 2.21 does it: under FILE, OFF and HINT, where the
                                batch size is known, the rows of all batches are one stream, cut by
                                a list of sizes that differ by one at most; else as above */
} cadre_rebatch;

/* For whom a pipeline is made. (tf.distribute.InputReplicationMode.) */
typedef enum cadre_replication_mode {
    CADRE_PER_WORKER = 0, /* one pipeline a worker, whose elements go to its replicas by turns */
    CADRE_PER_REPLICA     /* one pipeline a replica; only of functions, in a job of one worker */
} cadre_replication_mode;

/* How a dataset is distributed. Zeroed: the defaults. (tf.distribute.InputOptions.) */
typedef struct cadre_input_options {
    /* Under which the ledger keeps its position: 1 to 127 bytes of printable ASCII, unique in the
     * strategy. NULL: "dataset-1", "dataset-2", ... in order of creation. Copied. */
    const char *name;
    cadre_shard_policy auto_shard;
    cadre_rebatch rebatch;
    /* Where one worker reads elements that all have one fixed shape (batches with drop_remainder,
     * scalars), cadre_next ends before a step that only some of the replicas have an element of, as
     * get_next does, and a warning counts what was left. true: it gives that step, too, and the
     * others get empty tensors, as it is everywhere else; cadre_distributed_spec then says
     * CADRE_DIMENSION_ANY. (DistributedIterator.get_next_as_optional. That its end is no error
     * needs nothing here, where the end is a status.) */
    bool partial_steps;
    /* Batches read ahead by a thread; 0: what the dataset's own prefetch says, else 2. Of pipelines
     * that a function makes 0 is none: they read ahead where they have a prefetch, so many of their
     * elements. (Batches that go to GPUs are copied ahead all the same: per_replica_buffer.) */
    uint32_t prefetch;
    /* Steps of an epoch; 0: as many as the dataset has. Of an endless dataset epoch e then holds
     * the steps from e * steps_per_epoch on; another one ends earlier when it has fewer, and each
     * epoch begins it again. */
    uint64_t steps_per_epoch;
    cadre_replication_mode replication_mode;
    /* The last three say where the batches of replicas on GPUs lie; for others they change nothing.
     * Batches are read into page-locked memory and copied ahead, while the step before computes;
     * strings stay on the host. */
    bool keep_on_host;           /* do not copy batches to the replicas' devices
                                    (experimental_fetch_to_device=False) */
    bool copy_to_device;         /* each replica's pipeline gives batches on its device; needs
                                     CADRE_PER_REPLICA and keep_on_host, which then means that
                                     nothing else copies them. Pipelines compute on the CPU all the
                                     same (experimental_place_dataset_on_device) */
    uint32_t per_replica_buffer; /* batches on the device at a time besides the one in use; 0: 1.
                                    Not more than are read ahead. Changes no data. */
} cadre_input_options;

/* Distributes `data`, whose elements are global batches, and consumes one reference of it, also on
 * error. The first error of the dataset's chain comes out here. All tasks distribute the same
 * datasets in the same order: INVALID_ARGUMENT names what differs, as far as it can be seen (not
 * what functions do). Pipelines may be read, and the program's functions called, before this
 * returns and by other threads afterwards. The result belongs to the strategy and lives as long.
 * `options` may be NULL. INVALID_ARGUMENT: elements that cannot be divided among the replicas
 * (scalars: batch first), a bad name, options that do not go together, more than 64 batches to read
 * ahead. NOT_FOUND: CADRE_SHARD_FILE without files to share out. UNIMPLEMENTED: CADRE_PER_REPLICA,
 * which is for pipelines of functions. ALREADY_EXISTS: the name. RESOURCE_EXHAUSTED: more than 64
 * datasets of a strategy, no memory. (tf.distribute.Strategy.experimental_distribute_dataset.) */
CADRE_API cadre_status cadre_distribute_dataset(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_input_options *options, cadre_distributed_dataset **ret_distributed);

/* For whom a pipeline is made. (tf.distribute.InputContext.) */
typedef struct cadre_input_context {
    uint32_t num_input_pipelines;
    uint32_t input_pipeline_id; /* below num_input_pipelines */
    uint32_t num_replicas_in_sync;
} cadre_input_context;

/* The size of one replica's batch: global_batch / num_replicas_in_sync. INVALID_ARGUMENT: there is
 * a remainder, or a number is not positive. (InputContext.get_per_replica_batch_size.) */
CADRE_API cadre_status cadre_per_replica_batch_size(
    const cadre_input_context *context, int64_t global_batch, int64_t *ret_size);

/* Makes the pipeline of one worker (or replica): one reference. Its elements go to the replicas as
 * they are. Called again when the number of workers changes; on failure says why with cadre_fail.
 * Other calls with the strategy are refused in it (cadre/strategy.h). */
typedef cadre_status (*cadre_input_function)(
    const cadre_input_context *context, cadre_dataset **ret_data, void *user);

/* Distributes pipelines that the program makes and shards itself: nothing is cut, sharded or added,
 * and nothing read ahead that they do not ask for (cadre_dataset_prefetch). Each pipeline has a
 * position of its own, and there is no promise about samples across them. An epoch ends when no
 * pipeline has anything left; replicas without an element get empty tensors until then (where all
 * elements have one fixed shape: options->partial_steps). `user` outlives the strategy.
 * `options->auto_shard` and `rebatch` mean nothing here.
 * (tf.distribute.Strategy.distribute_datasets_from_function.) */
CADRE_API cadre_status cadre_distribute_datasets_from_function(cadre_strategy *strategy,
    cadre_input_function function, void *user, const cadre_input_options *options,
    cadre_distributed_dataset **ret_distributed);

/* Types, shapes and names of what one replica gets, all steps: the first dimension is
 * CADRE_DIMENSION_ANY where it may differ. (tf.distribute.DistributedDataset.element_spec.) */
CADRE_API cadre_status cadre_distributed_spec(
    const cadre_distributed_dataset *distributed, cadre_element_spec *ret_spec);

/* Begins the next epoch; false when `epochs` of them are done, or after an error (see
 * cadre_distributed_status), or where the call is not allowed (see cadre_error_message). An epoch
 * that was not read to its end is left where it is; until the next one begins nothing tells that it
 * was left, so a task that takes the job over enters it again (steps_per_epoch makes epochs shorter
 * without that). May be called with another number each time: cadre_next_epoch(test, epoch + 1,
 * NULL) reads a test set once per epoch of the training. *ret_epoch (may be NULL) gets the epoch's
 * number, from 0. Where the job was taken over from others, before the first step: true for the
 * epoch that they are in the middle of; also for one that is read to its end, with no step left,
 * when they went on from it to another dataset and are in the middle of that; else as always. */
CADRE_API bool cadre_next_epoch(
    cadre_distributed_dataset *distributed, uint64_t epochs, uint64_t *ret_epoch);

/* One more way through the data of `distributed`, from their beginning, beside its epochs and its
 * other iterators, as many as are wanted. The result is read by cadre_next from the start on, and
 * asked like a dataset (cadre_distributed_steps, _spec, _status, cadre_epoch: its number,
 * cadre_step); it has no further epochs. `steps`: how many it has at most, 0: as many as
 * the dataset's epochs.
 *
 *     for (uint64_t epoch = 0; epoch < 10; epoch++) {
 *         CADRE_CHECK(cadre_distributed_iterate(distributed, epoch, 5, &iterator));
 *         while (cadre_next(iterator, &batch) == CADRE_OK) {
 *             CADRE_CHECK(cadre_run(strategy, step, &model, batch, 0, NULL));
 *         }
 *         cadre_distributed_release(iterator);
 *     }
 *
 * `number` is the iterator's own: higher than that of those that were made of the dataset before.
 * It gives what epoch `number` of the dataset gives. A task that joins, and all tasks of a job that
 * goes on from a checkpoint, find their place by it: iterators that the job is past have no steps
 * left, and the one that it is in the middle of goes on at its next step. What the program does
 * around the steps of those it does again; a loop of cadre_next_epoch passes over that, too.
 *
 * Read by turns, iterators take their steps in the order of the program's calls. A job that goes on
 * in the middle of a turn begins with a new one: each step is done once, those of an iterator in
 * its order, but another of them may be ahead by what was done of the turn. So read each of them to
 * its end. A task that joins comes in where a turn begins.
 *
 * INVALID_ARGUMENT: the number, an iterator in place of the dataset. RESOURCE_EXHAUSTED: more than
 * 64 datasets and iterators at a time. (iter of a tf.distribute.DistributedDataset;
 * DistributedIterator.) */
CADRE_API cadre_status cadre_distributed_iterate(cadre_distributed_dataset *distributed,
    uint64_t number, uint64_t steps, cadre_distributed_dataset **ret_iterator);

/* Ends an iterator, read to its end or not, and its batch; NULL is allowed. Those that a program
 * does not release end with the strategy. Of anything else it does nothing but leave the reason in
 * cadre_error_message. */
CADRE_API void cadre_distributed_release(cadre_distributed_dataset *iterator);

/* The next step's batch: for each replica one tensor per component of the dataset's elements.
 * Borrowed, valid until the next cadre_next or cadre_next_epoch of this dataset. When a task is
 * lost or joins, its tensors are replaced by those of the new slice, in the next call that takes
 * it. A replica that has no part of the step gets empty tensors (a scalar is 0). OUT_OF_RANGE at
 * the end of the epoch, at the same step on every task, which is no error: what comes after the
 * loop goes on. Any other error is
 * sticky: it comes out of all further calls, and of cadre_finish. A batch that is not run is passed
 * over; every task must pass over the same ones. FAILED_PRECONDITION before the first epoch; and
 * under CADRE_SHARD_FILE where an epoch cannot be read on by another number of tasks (see
 * cadre/dataset.h). */
CADRE_API cadre_status cadre_next(
    cadre_distributed_dataset *distributed, cadre_per_replica **ret_batch);

/* The sticky error, or CADRE_OK. */
CADRE_API cadre_status cadre_distributed_status(const cadre_distributed_dataset *distributed);

/* Steps of the current epoch that cadre_next gives, before the first one of that; or
 * CADRE_CARDINALITY_UNKNOWN / _INFINITE. */
CADRE_API int64_t cadre_distributed_steps(const cadre_distributed_dataset *distributed);

/* The current epoch, from 0, as the ledger holds it: 0 before the first; of an iterator its number.
 */
CADRE_API uint64_t cadre_epoch(const cadre_distributed_dataset *distributed);

/* How many steps of the current epoch the ledger holds as applied. */
CADRE_API uint64_t cadre_step(const cadre_distributed_dataset *distributed);

#ifdef __cplusplus
}
#endif
#endif
