/* SPDX-License-Identifier: Apache-2.0
 * Datasets: descriptions of a sequence of elements, read lazily. A source (cadre/sources.h), then
 * transformations (cadre/transformations.h). (tf.data.Dataset.)
 *
 *     data = cadre_dataset_npy("images.npy");
 *     data = cadre_dataset_map(data, scale, NULL, NULL);
 *     data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed, NULL);
 *     data = cadre_dataset_batch(data, 64, false);
 *
 * A dataset is a value: it never changes, may be shared by threads, and each iteration starts from
 * the beginning. Every transformation consumes one reference of its input (retain it first to go on
 * using it) and returns one reference. Nothing here returns a status: the first error of the chain
 * is kept in the dataset and comes out of cadre_dataset_status, of iterating, and of
 * cadre_distribute_dataset. A function that finds no memory at all returns NULL, which every
 * function takes as its input and reports as RESOURCE_EXHAUSTED.
 *
 * Where a chain is *indexable*, element i of epoch e is found without reading those before it: each
 * worker of a job then reads its own samples only, a whole set is shuffled in O(1) memory, and
 * reading goes on in the middle of an epoch at once. Each source and transformation says whether it
 * is, or keeps it. Elsewhere elements come in order, and only in order. */
#ifndef CADRE_DATASET_H
#define CADRE_DATASET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/status.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_ELEMENT_TENSORS_MAX 64 /* components of one element */

#define CADRE_CARDINALITY_UNKNOWN  ((int64_t)-1) /* found only by reading to the end */
#define CADRE_CARDINALITY_INFINITE ((int64_t)-2) /* it has no end */

/* A source with the transformations behind it: reference-counted, never changed. */
typedef struct cadre_dataset cadre_dataset;

/* A reading of a dataset in this process, by one thread at a time. */
typedef struct cadre_iterator cadre_iterator;

/* One element: 1 to CADRE_ELEMENT_TENSORS_MAX components. The function that fills it gives one
 * reference of each tensor. Several of them may be one ragged or sparse value (cadre/composite.h).
 *
 * What are dicts and tuples elsewhere is flat here, with names beside it: component i is called
 * names[i]. A component of a structure in a structure has its path for a name, with '/' between:
 * 'image/left', and in a tuple the number of the part: '0/image'. Elements have the names that
 * cadre_dataset_named gives them, or the spec that a generator or a map declares; batches and all
 * that changes no component keep them; zip and enumerate make tuples; a map that declares no names
 * takes them away. They go with the dataset through its distribution to the replicas
 * (cadre_replica_input). (The structures of tf.nest.) */
typedef struct cadre_element {
    uint32_t count;
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX];
    /* Of an element that the library gives, where its dataset has names; NULL: it has none. Of one
     * that the program makes they are looked at where that is said. */
    const char *const *names;
} cadre_element;

/* Types, shapes and names of the components that elements have. */
typedef struct cadre_element_spec {
    uint32_t count;
    cadre_tensor_spec tensors[CADRE_ELEMENT_TENSORS_MAX];
    /* [count], each given once, NULL for a component without one; NULL: none has a name. Those that
     * the library gives last until the process ends, and it keeps copies of those it is given. */
    const char *const *names;
} cadre_element_spec;

/* Releases the tensors and zeroes the element. NULL is allowed. */
CADRE_API void cadre_element_release(cadre_element *element);

/* The component that is called `name`, borrowed from the element: in a function that a dataset
 * calls, or of one that was read. NOT_FOUND lists which names there are. (element["image"].) */
CADRE_API cadre_status cadre_element_named(
    const cadre_element *element, const char *name, cadre_tensor **ret_tensor);

/* How distributed input is divided among the tasks (tf.data.experimental.AutoShardPolicy; the
 * numbers are TF's). DATA and FILE promise each sample exactly once when tasks are lost or join;
 * the order is the same at any number of tasks under DATA only, and so in an epoch that was
 * interrupted (a task died or came, or the job goes on from a checkpoint). FILE promises it where
 * each record passes on by itself from the files to the batches (map, filter, shuffle, prefetch).
 * Elsewhere (take, zip, unbatch, ...) an epoch that was begun by so many tasks cannot be read on by
 * another number of them: cadre_next then fails with FAILED_PRECONDITION, which gives the reason.
 *
 * Files are shared out by name where flat_map or interleave reads names, and where a source holds a
 * list of them (cadre_dataset_tfrecord, _text_lines, _fixed_length). AUTO comes to FILE for names.
 * A list it could divide either way, so it comes to FILE where there are several tasks, the list
 * has a file for each of those that the job asks for, and the promise above holds; else to DATA. A
 * job that goes on from a checkpoint keeps what AUTO came to when it began. A warning, once, where
 * AUTO comes to DATA because a list has too few files, or where each task then reads all of the
 * dataset (what cannot be read by place). */
typedef enum cadre_shard_policy {
    CADRE_SHARD_OFF = -1, /* every task reads the whole pipeline; what is consumed is not proved */
    CADRE_SHARD_AUTO = 0, /* FILE where the pipeline can be shared out by files, else DATA */
    CADRE_SHARD_FILE = 1, /* whole files: worker i of W reads the files i, i + W, ... of the names
                             or the list; NOT_FOUND where there are none, and behind a shuffle of
                             all, which reads by place. Fewer files than workers: INVALID_ARGUMENT
                             in the first step; but where a job has grown the rest get empty
                             batches */
    CADRE_SHARD_DATA = 2, /* every sample exactly once per epoch, the same global order at any
                             number of tasks, also when it changes */
    CADRE_SHARD_HINT = 3  /* shard calls with CADRE_SHARD_BY_HINT become this worker's shard */
} cadre_shard_policy;

/* --- a dataset itself --- */

/* Returns `data` with one reference more. NULL is passed through. */
CADRE_API cadre_dataset *cadre_dataset_retain(cadre_dataset *data);

/* Gives one reference back. NULL is allowed. */
CADRE_API void cadre_dataset_release(cadre_dataset *data);

/* The first error of the chain, CADRE_OK when it has none. Of NULL RESOURCE_EXHAUSTED. */
CADRE_API cadre_status cadre_dataset_status(const cadre_dataset *data);

/* Number of elements of one iteration, or CADRE_CARDINALITY_UNKNOWN / _INFINITE; what is known
 * without reading. Of TFRecord files it becomes known when the places of their records are (a
 * shuffle of all was read, or the dataset was distributed); where it must be known before, set it
 * with cadre_dataset_assert_cardinality, or count (cadre_dataset_reduce). Unknown for a dataset
 * with an error. (tf.data.Dataset.cardinality.) */
CADRE_API int64_t cadre_dataset_cardinality(const cadre_dataset *data);

/* Types and shapes of the components. May read one element and call a map function.
 * (tf.data.Dataset.element_spec.) */
CADRE_API cadre_status cadre_dataset_spec(cadre_dataset *data, cadre_element_spec *ret_spec);

/* --- plain reading: no distribution, one thread per iterator --- */

/* Starts reading at the first element of epoch `epoch` (0, 1, ...: what the shuffles are keyed by).
 * Takes a reference of its own. On success the iterator is the caller's to free. */
CADRE_API cadre_status cadre_dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator);

/* The next element; the caller clears it (cadre_element_release). OUT_OF_RANGE at the end, and ever
 * after. On any failure *ret_element is empty. */
CADRE_API cadre_status cadre_iterator_next(cadre_iterator *iterator, cadre_element *ret_element);

/* Ends the reading and frees the iterator. NULL is allowed. */
CADRE_API void cadre_iterator_release(cadre_iterator *iterator);

#ifdef __cplusplus
}
#endif
#endif
