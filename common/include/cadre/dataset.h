/* SPDX-License-Identifier: Apache-2.0
 * Datasets: descriptions of a sequence of elements, read lazily. A source, then transformations.
 * (tf.data.Dataset.)
 *
 *     data = cadre_dataset_npy("images.npy");
 *     data = cadre_dataset_map(data, scale, NULL, NULL);
 *     data = cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed);
 *     data = cadre_dataset_batch(data, 64, false);
 *
 * A dataset is a value: it never changes, may be shared by threads, and each iteration starts anew.
 * Every transformation consumes one reference of its input (retain it first to go on using it) and
 * returns one reference. Nothing here returns a status: the first error of the chain is kept in the
 * dataset and comes out of cadre_dataset_status, of iterating, and of cadre_distribute_dataset. A
 * function that finds no memory at all returns NULL, which every function takes as its input and
 * reports as RESOURCE_EXHAUSTED.
 *
 * Element i of epoch e is a function of the description, i and e alone while the chain is
 * *indexable*. All sources here are; all transformations keep it, but for the shuffle with a
 * buffer. */
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

#define CADRE_ELEMENT_TENSORS_MAX 8 /* components of one element */

#define CADRE_SHUFFLE_ALL          ((int64_t)-1) /* permutes the whole set, in O(1) memory */
#define CADRE_REPEAT_FOREVER       ((int64_t)-1)
#define CADRE_CARDINALITY_UNKNOWN  ((int64_t)-1)
#define CADRE_CARDINALITY_INFINITE ((int64_t)-2)

typedef struct cadre_dataset cadre_dataset;
typedef struct cadre_iterator cadre_iterator;

/* One element: 1 to CADRE_ELEMENT_TENSORS_MAX components. Whoever fills it gives one reference of
 * each tensor. */
typedef struct cadre_element {
    uint32_t count;
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX];
} cadre_element;

typedef struct cadre_element_spec {
    uint32_t count;
    cadre_tensor_spec tensors[CADRE_ELEMENT_TENSORS_MAX];
} cadre_element_spec;

/* Releases the tensors and zeroes the element. NULL is allowed. */
CADRE_API void cadre_element_clear(cadre_element *element);

/* How distributed input is divided among the tasks (tf.data.experimental.AutoShardPolicy; the
 * numbers are TF's). Only DATA promises anything about samples when tasks are lost or join. */
typedef enum cadre_shard_policy {
    CADRE_SHARD_OFF = -1, /* every task reads the whole pipeline; what is fed is not proved */
    CADRE_SHARD_AUTO = 0, /* DATA; once there is FILE, that where the source allows it */
    CADRE_SHARD_FILE = 1, /* whole files: UNIMPLEMENTED yet, NOT_FOUND for a source without files */
    CADRE_SHARD_DATA = 2, /* every sample exactly once per epoch, the same global order at any
                             number of tasks, also when it changes */
    CADRE_SHARD_HINT = 3  /* the program's own shard call, where it says so: UNIMPLEMENTED yet */
} cadre_shard_policy;

/* --- sources --- */

/* Scalars of CADRE_I64: start, start + step, ... below `stop` (above it for a negative step). step
 * 0 is an error. (tf.data.Dataset.range.) */
CADRE_API cadre_dataset *cadre_dataset_range(int64_t start, int64_t stop, int64_t step);

/* Element i holds row i of each of the `count` tensors, which agree in their first dimension. Takes
 * references of its own. The elements share memory with the tensors: do not write to either while
 * the dataset lives. (tf.data.Dataset.from_tensor_slices.) */
CADRE_API cadre_dataset *cadre_dataset_tensor_slices(cadre_tensor *const tensors[], size_t count);

/* Records of a fixed size, file after file, each as CADRE_U8 [record_bytes]; header and footer
 * bytes of each file are skipped. The files' sizes are read here, the records when asked for. A
 * file whose size is not header + footer + a whole number of records is DATA_LOSS. The paths are
 * copied. (tf.data.FixedLengthRecordDataset.) */
CADRE_API cadre_dataset *cadre_dataset_fixed_length(const char *const paths[], size_t path_count,
    int64_t header_bytes, int64_t record_bytes, int64_t footer_bytes);

/* The rows of an array saved by numpy (format 1.0 or 2.0, little endian, C order): element i has
 * shape[1:]. The header is read here, the rows when asked for. A file cut short is DATA_LOSS and
 * says what it should hold. Features and labels that belong together go into one array, or are
 * looked up by a map function over a range. */
CADRE_API cadre_dataset *cadre_dataset_npy(const char *path);

/* --- transformations --- */

/* Makes `ret_out` of `in`. `in` is borrowed; `ret_out` is empty and must be given one reference of
 * each tensor (also one retained from `in`; do not write to the tensors of `in`). May be called
 * from several threads at once, and for more elements than are fed, so it must depend on `in`
 * alone. On failure it returns a status, and says why with cadre_fail (cadre/program.h) or by the
 * public function that failed. Tensors it has put into `ret_out` are then released. */
typedef cadre_status (*cadre_map_function)(
    const cadre_element *in, cadre_element *ret_out, void *user);

typedef struct cadre_map_options {
    /* What the function returns, checked on each call; dims may be CADRE_DIMENSION_ANY. NULL: found
     * by calling the function once for the first element, when it is first needed. Copied. */
    const cadre_element_spec *output;
} cadre_map_options;

/* Applies `function` to each element. `user` outlives the dataset. `options` may be NULL.
 * (tf.data.Dataset.map.) */
CADRE_API cadre_dataset *cadre_dataset_map(
    cadre_dataset *data, cadre_map_function function, void *user, const cadre_map_options *options);

/* Stacks `size` consecutive elements: each component gets a new first dimension. The last batch of
 * an iteration may be shorter unless `drop_remainder`; a set of fewer than `size` elements then has
 * no batch at all. Elements of one batch must agree in shape. RESOURCE_EXHAUSTED when it is read:
 * the batch is larger than the machine's memory. (tf.data.Dataset.batch.) */
CADRE_API cadre_dataset *cadre_dataset_batch(
    cadre_dataset *data, int64_t size, bool drop_remainder);

/* Another order each epoch, the same on every machine. `buffer_size` CADRE_SHUFFLE_ALL: a seeded
 * permutation of the whole set computed per index; needs an indexable, finite input. Else >= 1:
 * draws from a buffer of so many elements, as tf.data does; the result is not indexable.
 * (tf.data.Dataset.shuffle.) */
CADRE_API cadre_dataset *cadre_dataset_shuffle(
    cadre_dataset *data, int64_t buffer_size, uint64_t seed);

/* The first `count` elements, all but the first `count`; count >= 0, and may be more than there
 * are. (tf.data.Dataset.take, skip.) */
CADRE_API cadre_dataset *cadre_dataset_take(cadre_dataset *data, int64_t count);
CADRE_API cadre_dataset *cadre_dataset_skip(cadre_dataset *data, int64_t count);

/* Elements index, index + shards, ...; 0 <= index < shards. Distributed input needs no such call:
 * it divides the batches itself. (tf.data.Dataset.shard.) */
CADRE_API cadre_dataset *cadre_dataset_shard(cadre_dataset *data, int64_t shards, int64_t index);

/* The elements `count` times over, each time as an epoch of its own to the shuffles before it;
 * count >= 0 or CADRE_REPEAT_FOREVER: then there is one epoch without an end, and the program
 * counts its steps. (tf.data.Dataset.repeat.) */
CADRE_API cadre_dataset *cadre_dataset_repeat(cadre_dataset *data, int64_t count);

/* Asks for `depth` >= 1 elements (at most 64 are) to be read ahead where the dataset is
 * distributed. Changes nothing else. (tf.data.Dataset.prefetch.) */
CADRE_API cadre_dataset *cadre_dataset_prefetch(cadre_dataset *data, int64_t depth);

/* --- a dataset itself --- */

/* Returns `data` with one reference more. NULL is passed through. */
CADRE_API cadre_dataset *cadre_dataset_retain(cadre_dataset *data);

/* Gives one reference back. NULL is allowed. */
CADRE_API void cadre_dataset_release(cadre_dataset *data);

/* The first error of the chain, CADRE_OK when it has none. Of NULL RESOURCE_EXHAUSTED. */
CADRE_API cadre_status cadre_dataset_status(const cadre_dataset *data);

/* Number of elements of one iteration, or CADRE_CARDINALITY_UNKNOWN / _INFINITE. Unknown for a
 * dataset with an error. (tf.data.Dataset.cardinality.) */
CADRE_API int64_t cadre_dataset_cardinality(const cadre_dataset *data);

/* Types and shapes of the components. May read one element and call a map function.
 * (tf.data.Dataset.element_spec.) */
CADRE_API cadre_status cadre_dataset_spec(cadre_dataset *data, cadre_element_spec *ret_spec);

/* --- plain reading: no distribution, one thread per iterator --- */

/* Starts reading at the first element of epoch `epoch` (0, 1, ...: what the shuffles are keyed by).
 * Takes a reference of its own. On success the iterator is the caller's to free. */
CADRE_API cadre_status cadre_dataset_iterate(
    cadre_dataset *data, uint64_t epoch, cadre_iterator **ret_iterator);

/* The next element; the caller clears it (cadre_element_clear). OUT_OF_RANGE at the end, and ever
 * after. On any failure *ret_element is empty. */
CADRE_API cadre_status cadre_iterator_next(cadre_iterator *iterator, cadre_element *ret_element);

/* NULL is allowed. */
CADRE_API void cadre_iterator_free(cadre_iterator *iterator);

#ifdef __cplusplus
}
#endif
#endif
