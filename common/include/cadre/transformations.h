/* SPDX-License-Identifier: Apache-2.0
 * Transformations of datasets. Each consumes one reference of its input (of each of its inputs) and
 * returns one reference; errors are kept in the dataset (see cadre/dataset.h). */
#ifndef CADRE_TRANSFORMATIONS_H
#define CADRE_TRANSFORMATIONS_H

#include "cadre/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CADRE_SHUFFLE_ALL    ((int64_t)-1) /* permutes the whole set, in O(1) memory */
#define CADRE_REPEAT_FOREVER ((int64_t)-1) /* without an end */
#define CADRE_SHARD_BY_HINT  ((int64_t)-1) /* as many shards as CADRE_SHARD_HINT says */
#define CADRE_PARALLEL_AUTO  ((int32_t)-1) /* one thread per processor */

/* --- functions of the program. They get one element, borrowed, and may be called from several
 * threads at once and for more elements than are consumed, so they must depend on it alone (random
 * numbers of their own: cadre_random_for_element, in cadre/random.h). On failure they return a
 * status, and say why with cadre_fail (cadre/program.h) or by the public function that failed; that
 * fails the reading. `user` outlives the dataset. --- */

/* Makes `ret_out` of `in`. `ret_out` is empty and must be given one reference of each tensor (also
 * one retained from `in`; do not write to the tensors of `in`). What was put into it before a
 * failure is released. */
typedef cadre_status (*cadre_map_function)(
    const cadre_element *in, cadre_element *ret_out, void *user);

/* Whether `in` is kept. */
typedef cadre_status (*cadre_filter_function)(const cadre_element *in, bool *ret_keep, void *user);

/* A dataset made of `in`; one reference is given. Elements of all of them agree in type and rank.
 */
typedef cadre_status (*cadre_dataset_function)(
    const cadre_element *in, cadre_dataset **ret_data, void *user);

/* The next state of `state` and `in`; one reference of each tensor. */
typedef cadre_status (*cadre_reduce_function)(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user);

/* --- one element for one. They keep indexability. --- */

/* How a map is carried out. Zeroed: one call at a time, and what the function returns is found by
 * calling it. */
typedef struct cadre_map_options {
    /* What the function returns, checked on each call; dims may be CADRE_DIMENSION_ANY. Its names
     * are those of the components; row splits and dense shapes are marked in `composite`. NULL:
     * found by calling the function for the first two elements, when it is first needed; sizes that
     * first differ later must be declared. Copied. */
    const cadre_element_spec *output;
    int32_t parallel; /* calls at a time; 0 and 1: one; or CADRE_PARALLEL_AUTO */
    bool unordered;   /* whatever is done first comes first, in plain reading; distributed input
                         always keeps the order */
} cadre_map_options;

/* Applies `function` to each element. `options` may be NULL. (tf.data.Dataset.map.) */
CADRE_API cadre_dataset *cadre_dataset_map(
    cadre_dataset *data, cadre_map_function function, void *user, const cadre_map_options *options);

/* Calls the components of each element names[0] to names[count - 1], whatever they were called; a
 * name is NULL where a component has none. They are copied. INVALID_ARGUMENT: a name is empty or
 * there twice; when it is read or distributed: elements have another number of components.
 *
 *     static const char *const names[] = {"image", "label"};
 *     data = cadre_dataset_named(data, names, 2);
 *
 * Keeps indexability. (A map to a dict.) */
CADRE_API cadre_dataset *cadre_dataset_named(
    cadre_dataset *data, const char *const names[], size_t count);

/* Puts the element's number before its components, as a CADRE_I64 scalar: start, start + 1, ...
 * Names are those of a tuple: '0' is the number, '1' or '1/image' are the element.
 * (tf.data.Dataset.enumerate.) */
CADRE_API cadre_dataset *cadre_dataset_enumerate(cadre_dataset *data, int64_t start);

/* Element i holds the components of element i of each dataset, of `count` >= 1; ends with the
 * shortest. The first one's samples are those that are counted. Names are those of a tuple: of the
 * second dataset '1', or '1/image', or '1/0' and '1/1' where several have none.
 *
 * This is how a step consumes two datasets: zipped, then distributed, they are one stream of the
 * ledger, whose epochs have zip's length, and whose batches cadre_values_named takes apart. Batches
 * side by side may differ in their rows under CADRE_SHARD_DATA, where each is cut by its own.
 * (tf.data.Dataset.zip; zip of two distributed datasets.) */
CADRE_API cadre_dataset *cadre_dataset_zip(cadre_dataset *const datasets[], size_t count);

/* Keeps the elements at hand: the first complete iteration stores them, later ones, of any epoch,
 * read the store. What comes before it is read as epoch 0 in each epoch, so that what is stored
 * does not depend on which task reads first. `path` NULL: in memory (RESOURCE_EXHAUSTED before
 * there is none left). Else in files beginning with `path`, in a folder that exists, which a later
 * program finds again; they are replaced when they do not fit the pipeline, which cannot tell that
 * a function of the program has changed, and DATA_LOSS says what to remove when they are damaged.
 * Of several processes with one path one writes them; workers whose pipelines differ need paths of
 * their own. (tf.data.Dataset.cache.) */
CADRE_API cadre_dataset *cadre_dataset_cache(cadre_dataset *data, const char *path);

/* --- fewer, more, in another order --- */

/* The elements for which `function` gives true. Not indexable. (tf.data.Dataset.filter.) */
CADRE_API cadre_dataset *cadre_dataset_filter(
    cadre_dataset *data, cadre_filter_function function, void *user);

/* Each element's first occurrence; one component of an integer type or CADRE_STRING. Holds all
 * different elements in memory. Not indexable. (tf.data.Dataset.unique.) */
CADRE_API cadre_dataset *cadre_dataset_unique(cadre_dataset *data);

/* What a shuffle does in the epochs after the first. Zeroed: another order each epoch. */
typedef struct cadre_shuffle_options {
    bool once; /* one order for all epochs (reshuffle_each_iteration=False) */
} cadre_shuffle_options;

/* Another order each epoch, the same on every machine. `buffer_size` CADRE_SHUFFLE_ALL: a seeded
 * permutation of the whole set computed per index; needs an indexable, finite input. Else >= 1:
 * draws from a buffer of so many elements, as tf.data does; the result is not indexable. `options`
 * may be NULL. RESOURCE_EXHAUSTED when read: the buffer is larger than the machine's memory.
 * (tf.data.Dataset.shuffle.) */
CADRE_API cadre_dataset *cadre_dataset_shuffle(
    cadre_dataset *data, int64_t buffer_size, uint64_t seed, const cadre_shuffle_options *options);

/* The first `count` elements; count >= 0, and may be more than there are. Keeps indexability.
 * (tf.data.Dataset.take.) */
CADRE_API cadre_dataset *cadre_dataset_take(cadre_dataset *data, int64_t count);

/* All but the first `count` elements; count >= 0, and may be more than there are. Keeps
 * indexability. (tf.data.Dataset.skip.) */
CADRE_API cadre_dataset *cadre_dataset_skip(cadre_dataset *data, int64_t count);

/* Elements index, index + shards, ...; 0 <= index < shards. Keeps indexability. Distributed input
 * needs no such call: it divides the batches itself. With `shards` CADRE_SHARD_BY_HINT it is a mark
 * that CADRE_SHARD_HINT replaces by the worker's own shard; reading the mark as it is fails with
 * FAILED_PRECONDITION. (tf.data.Dataset.shard, tf.data.experimental.SHARD_HINT.) */
CADRE_API cadre_dataset *cadre_dataset_shard(cadre_dataset *data, int64_t shards, int64_t index);

/* The elements `count` times over, each time as an epoch of its own to the shuffles before it;
 * count >= 0 or CADRE_REPEAT_FOREVER: then there is one epoch without an end, and the program
 * counts its steps. Keeps indexability. (tf.data.Dataset.repeat.) */
CADRE_API cadre_dataset *cadre_dataset_repeat(cadre_dataset *data, int64_t count);

/* First all of `data`, then all of `more`; types and ranks agree. Indexable where both are.
 * (tf.data.Dataset.concatenate.) */
CADRE_API cadre_dataset *cadre_dataset_concatenate(cadre_dataset *data, cadre_dataset *more);

/* All elements of the dataset that `function` makes of the first element, then of the second, ...
 * Not indexable. Of files: the function makes a source of the name it is given, and the names can
 * be shared out among the workers (CADRE_SHARD_FILE). (tf.data.Dataset.flat_map.) */
CADRE_API cadre_dataset *cadre_dataset_flat_map(
    cadre_dataset *data, cadre_dataset_function function, void *user);

/* How many datasets are read by turns, and how. Zeroed: the defaults. */
typedef struct cadre_interleave_options {
    int64_t cycle_length; /* datasets read by turns; 0: 16 */
    int64_t block_length; /* elements of one before the next one's turn; 0: 1 */
    int32_t parallel;     /* of the cycle, read ahead by threads; 0: none; or CADRE_PARALLEL_AUTO */
    bool unordered;       /* as in cadre_map_options */
} cadre_interleave_options;

/* The elements of the datasets that `function` makes, a block of each by turns. `options` may be
 * NULL. (tf.data.Dataset.interleave.) */
CADRE_API cadre_dataset *cadre_dataset_interleave(cadre_dataset *data,
    cadre_dataset_function function, void *user, const cadre_interleave_options *options);

/* --- batches --- */

/* Stacks `size` consecutive elements: each component gets a new first dimension. The last batch of
 * an iteration may be shorter unless `drop_remainder`; a set of fewer than `size` elements then has
 * no batch at all. Elements of one batch must agree in shape. RESOURCE_EXHAUSTED when it is read:
 * the batch is larger than the machine's memory. Keeps indexability. (tf.data.Dataset.batch.) */
CADRE_API cadre_dataset *cadre_dataset_batch(
    cadre_dataset *data, int64_t size, bool drop_remainder);

/* To which shapes elements are padded, and with what. Zeroed: to the largest of each batch, with 0,
 * false or "". */
typedef struct cadre_padded_batch_options {
    /* Shapes to pad to; CADRE_DIMENSION_ANY: the largest of the batch. NULL: that everywhere. Only
     * rank and dims are looked at. Copied. */
    const cadre_element_spec *shapes;
    /* A scalar of each component's type, or NULL: 0, false, "". Retained. */
    cadre_tensor *const *values;
} cadre_padded_batch_options;

/* Stacks elements of one rank and different shapes, padded at the end of each dimension. An element
 * larger than a given shape is INVALID_ARGUMENT. `options` may be NULL. Keeps indexability.
 * (tf.data.Dataset.padded_batch.) */
CADRE_API cadre_dataset *cadre_dataset_padded_batch(cadre_dataset *data, int64_t size,
    const cadre_padded_batch_options *options, bool drop_remainder);

/* Like cadre_dataset_batch for elements of unequal length: a component whose first dimension is
 * CADRE_DIMENSION_ANY in the elements' spec becomes two, ragged (cadre/composite.h): the values of
 * all elements one behind the other, and CADRE_I64 row splits. The others are stacked. Sizes of
 * such a component's other dimensions are known and equal (INVALID_ARGUMENT: there is one unequal
 * dimension). Keeps indexability. (tf.data.Dataset.ragged_batch.) */
CADRE_API cadre_dataset *cadre_dataset_ragged_batch(
    cadre_dataset *data, int64_t size, bool drop_remainder);

/* Elements of one component, of rank 1 or more, as one sparse value (cadre/composite.h): all their
 * numbers in order, zeros too, with indices [n, 1 + rank] and the dense shape [rows, row_shape].
 * `row_shape`: what no element is larger than (INVALID_ARGUMENT), CADRE_DIMENSION_ANY: the largest
 * of the batch. Only its rank and dims are looked at. Copied. Keeps indexability.
 * (tf.data.experimental.dense_to_sparse_batch.) */
CADRE_API cadre_dataset *cadre_dataset_sparse_batch(
    cadre_dataset *data, int64_t size, const cadre_tensor_spec *row_shape, bool drop_remainder);

/* Each row of each element as an element of its own; components agree in their rows. Indexable
 * where the input is and all its elements have one known number of rows, which is found when it is
 * built: by cadre_dataset_spec. (tf.data.Dataset.unbatch.) */
CADRE_API cadre_dataset *cadre_dataset_unbatch(cadre_dataset *data);

/* --- how it is read --- */

/* Reads `depth` >= 1 elements ahead, by a thread, where the dataset is read in order. At the end of
 * what is distributed: batches read ahead (at most 64). Changes no element.
 * (tf.data.Dataset.prefetch.) */
CADRE_API cadre_dataset *cadre_dataset_prefetch(cadre_dataset *data, int64_t depth);

/* Sets how many elements there are, where that cannot be known: it is then the cardinality.
 * FAILED_PRECONDITION, when read, if there turn out to be more or fewer.
 * (tf.data.experimental.assert_cardinality.) */
CADRE_API cadre_dataset *cadre_dataset_assert_cardinality(cadre_dataset *data, int64_t count);

/* What a dataset says of how it is distributed and read. Zeroed: nothing is set. */
typedef struct cadre_dataset_options {
    bool has_auto_shard; /* `auto_shard` holds where cadre_input_options leave AUTO */
    cadre_shard_policy auto_shard;
    bool deterministic; /* `unordered` before it is not heeded */
} cadre_dataset_options;

/* Attaches options. Of several policies the last one holds; `deterministic` is for all that is
 * before it, and is not taken back behind it. (tf.data.Dataset.with_options.) */
CADRE_API cadre_dataset *cadre_dataset_with_options(
    cadre_dataset *data, const cadre_dataset_options *options);

/* --- to its end --- */

/* Folds epoch 0 of `data`: *state (its tensors are given up, also on error) and the first element,
 * and so on. On success *state holds the last one, the caller's to clear; on error it is empty.
 * Borrows `data`. (tf.data.Dataset.reduce.) */
CADRE_API cadre_status cadre_dataset_reduce(
    cadre_dataset *data, cadre_element *state, cadre_reduce_function function, void *user);

#ifdef __cplusplus
}
#endif
#endif
