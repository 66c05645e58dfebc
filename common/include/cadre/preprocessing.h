/* SPDX-License-Identifier: Apache-2.0
 * Preprocessing: from tokens to ids, from ids to vectors, and numbers to a common scale.
 * (tf.keras.layers.StringLookup, IntegerLookup, Normalization, Rescaling, CategoryEncoding,
 * RandomFlip, RandomCrop; tf.lookup.StaticHashTable.)
 *
 * What is made here never changes, and may be used by any number of threads at once: in map
 * functions, which get it as their `user`, and in replica functions.
 *
 *     CADRE_CHECK(cadre_lookup_file("tokens.txt", CADRE_STRING, NULL, &lookup));
 *     data = cadre_dataset_map(data, cadre_lookup_map, lookup, NULL);
 *
 * What a constructor makes is the caller's to release; a dataset or replica function borrows it and
 * must not outlive it. On error a constructor sets its result to NULL. */
#ifndef CADRE_PREPROCESSING_H
#define CADRE_PREPROCESSING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/dataset.h"
#include "cadre/strategy.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- lookups --- */

#define CADRE_LOOKUP_NO_OOV ((int64_t)-1) /* a token outside of the vocabulary is an error */

/* A vocabulary, or a table of keys and values. */
typedef struct cadre_lookup cadre_lookup;

/* Which ids a vocabulary has besides those of its tokens. Zeroed: the defaults. Of each pair the
 * first is for tokens of CADRE_STRING, the second for CADRE_I64; the other one must be NULL. */
typedef struct cadre_lookup_options {
    /* How many ids there are for tokens outside of the vocabulary (OOV): 0 means one. Of several a
     * token gets the one that its hash says: FarmHash's Fingerprint64 of a string, the number
     * itself of an integer, modulo oov_ids; the same that TensorFlow computes. */
    int64_t oov_ids;
    /* A token that stands for "nothing here" and gets id 0; NULL: there is none. */
    const char *mask_string;
    const int64_t *mask_integer;
    /* What cadre_lookup_invert gives for an OOV id; NULL: "[UNK]", -1. Not one of the vocabulary.
     */
    const char *oov_string;
    const int64_t *oov_integer;
    /* How many ids there may be, mask and OOV with them; 0: any number. (max_tokens.) */
    int64_t max_tokens;
    /* Of cadre_lookup_adapt: of the dataset's elements. */
    uint32_t component;
} cadre_lookup_options;

/* Ids of a vocabulary: the mask's first (where there is one), then the OOV ids, then the tokens' in
 * their order. `tokens`: CADRE_STRING or an integer type, rank 1, copied. `options` may be NULL.
 * INVALID_ARGUMENT names the token: it stands there twice, or is the mask's or OOV's; or there is
 * none at all, or over 2^31, or more than max_tokens has room for. RESOURCE_EXHAUSTED: no memory (a
 * token takes its own bytes and about 40, an integer about 30). (StringLookup, IntegerLookup:
 * vocabulary.) */
CADRE_API cadre_status cadre_lookup_create(
    const cadre_tensor *tokens, const cadre_lookup_options *options, cadre_lookup **ret_lookup);

/* Ids of a vocabulary of `count` terminated strings; all else is as with cadre_lookup_create. */
CADRE_API cadre_status cadre_lookup_strings(const char *const tokens[], size_t count,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup);

/* Ids of a vocabulary in a text file or object with one token in each line: all its bytes but "\n"
 * or "\r\n", or one decimal integer where `dtype` is CADRE_I64. The last line need not be ended.
 * INVALID_ARGUMENT names the line: it is empty, no integer, or a token that stood there before.
 * NOT_FOUND: no such file. RESOURCE_EXHAUSTED: more than 4 GiB. */
CADRE_API cadre_status cadre_lookup_file(const char *path, cadre_dtype dtype,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup);

/* Finds the vocabulary of a dataset (rows or batches of them, in any shape; epoch 0), with all
 * tasks of the job, which all call it: each counts the tokens of its part, once. The more frequent
 * tokens come first; of those that are equally frequent the greater ones (high integers before low
 * ones, strings byte by byte, "b" before "a"), which is the order of tf.keras. With max_tokens the
 * rest is left out, and OOV from then on. The mask, and the OOV token ("[UNK]", -1), are not
 * counted where they stand in the data. All tasks come to the same vocabulary, at any number of
 * tasks.
 *
 * Collective, outside of steps; when a task is lost meanwhile, one joins, or the job goes on from a
 * checkpoint, it is as with cadre_normalization_adapt. Each task holds all different tokens in
 * memory while it counts, so a larger vocabulary is better found once and kept: cadre_lookup_file.
 *
 * Consumes one reference of `data`, also on error; `options` may be NULL. The component is
 * CADRE_STRING or of an integer type. Cross-replica context. INVALID_ARGUMENT: no such component,
 * another type, a dataset without an end or without a token. ABORTED: another task could not read
 * its part; the message says which, and why. Else the errors of the dataset.
 * (StringLookup.adapt, IntegerLookup.adapt.) */
CADRE_API cadre_status cadre_lookup_adapt(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup);

/* A plain table: element i of `keys` (CADRE_STRING or an integer type, rank 1, no key twice) has
 * the value i of `values` (any type, rank 1, as long), and every other key has `missing` (a scalar
 * of the values' type). Copies. (tf.lookup.StaticHashTable, KeyValueTensorInitializer.) */
CADRE_API cadre_status cadre_lookup_table(const cadre_tensor *keys, const cadre_tensor *values,
    const cadre_tensor *missing, cadre_lookup **ret_lookup);

/* Frees it; no dataset may use it any more. NULL is allowed. */
CADRE_API void cadre_lookup_release(cadre_lookup *lookup);

/* How many ids there are, mask and OOV with them: what an embedding needs as its rows. Of a table
 * its keys. Of NULL 0. (vocabulary_size; StaticHashTable.size.) */
CADRE_API int64_t cadre_lookup_size(const cadre_lookup *lookup);

/* The id of each token, as CADRE_I64 (of a table the values, in their type), in the shape of
 * `tokens`, which are CADRE_STRING or any integer type as the vocabulary is. On success *ret_ids is
 * the caller's, on error NULL. INVALID_ARGUMENT: another type; or a token that has no id, by name.
 */
CADRE_API cadre_status cadre_lookup_apply(
    const cadre_lookup *lookup, const cadre_tensor *tokens, cadre_tensor **ret_ids);

/* The token of each id, in the shape of `ids`, which are of any integer type: CADRE_STRING or
 * CADRE_I64. An id that is OOV's or of nothing gives the OOV token, with CADRE_LOOKUP_NO_OOV
 * INVALID_ARGUMENT; so does a table, which has no ids. (StringLookup with invert=True.) */
CADRE_API cadre_status cadre_lookup_invert(
    const cadre_lookup *lookup, const cadre_tensor *ids, cadre_tensor **ret_tokens);

/* Applies cadre_lookup_apply to the first component of each element, for cadre_dataset_map with the
 * lookup as `user`; the other components are passed on. */
CADRE_API cadre_status cadre_lookup_map(
    const cadre_element *in, cadre_element *ret_out, void *lookup);

/* Applies cadre_lookup_invert to the first component of each element, likewise. */
CADRE_API cadre_status cadre_lookup_invert_map(
    const cadre_element *in, cadre_element *ret_out, void *lookup);

/* --- normalization --- */

/* A mean and a variance, for all numbers or for each index of an axis. */
typedef struct cadre_normalization cadre_normalization;

/* Makes (x - mean) / max(sqrt(variance), 1e-7), with a mean and variance for each index of one
 * axis, the *features*. `mean`, `variance`: CADRE_F32 or CADRE_F64; both of rank 1 with as many
 * features, or scalars: one for all numbers. Copied. `axis`: which one, counted from the end as the
 * axes before it may be batches: -1 the last, -2 the one before it, to -CADRE_RANK_MAX; of no
 * meaning with scalars. INVALID_ARGUMENT also for a mean or variance that is no finite number, or a
 * variance below 0. (Normalization with mean and variance.) */
CADRE_API cadre_status cadre_normalization_create(const cadre_tensor *mean,
    const cadre_tensor *variance, int32_t axis, cadre_normalization **ret_normalization);

/* Of which numbers mean and variance are found. Zeroed: the defaults. */
typedef struct cadre_adapt_options {
    uint32_t component; /* of the dataset's elements */
    int32_t axis;       /* 0: -1. CADRE_AXIS_NONE: one mean and variance for all numbers. */
} cadre_adapt_options;

/* Finds mean and variance of all elements of a dataset (rows or batches of them; epoch 0), with all
 * tasks of the job, which all call it: each reads its part, once (of a dataset that is not
 * indexable it passes over the others' as well). The variance is that of all numbers (divided by
 * their count). They are summed in float64, in an order that depends on the dataset alone: the same
 * bits on every task, at any number of tasks, and in every run.
 *
 * Collective, outside of steps, and belongs to the step before it. When a task is lost meanwhile
 * the others read what it had not sent yet. A task that joins later, or goes on from a checkpoint,
 * finds the same again by reading all of it: the result is no state, and needs no checkpoint.
 *
 * Consumes one reference of `data`, also on error; `options` may be NULL. The component is of a
 * floating or integer type, its size along the axis the same in all elements. Cross-replica
 * context. INVALID_ARGUMENT: no component or axis of that number, another type, a size of the axis
 * that differs, a dataset without an end, no number at all in it, or one that is not finite.
 * ABORTED: another task could not read its part; the message says which, and why. Else the errors
 * of the dataset. (Normalization.adapt.) */
CADRE_API cadre_status cadre_normalization_adapt(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_adapt_options *options, cadre_normalization **ret_normalization);

/* Frees it; no dataset may use it any more. NULL is allowed. */
CADRE_API void cadre_normalization_release(cadre_normalization *normalization);

/* What it was made with or found: CADRE_F64, each of shape [features], or scalars. One reference of
 * each; either may be NULL. */
CADRE_API cadre_status cadre_normalization_moments(
    const cadre_normalization *normalization, cadre_tensor **ret_mean, cadre_tensor **ret_variance);

/* Applies it to `values`, of any floating or integer type whose size along the axis is that of the
 * features. The result has the same shape; it is CADRE_F64 for CADRE_F64 and else CADRE_F32, and
 * the caller's; on error it is NULL. INVALID_ARGUMENT names the shape that does not fit.
 * (Normalization.) */
CADRE_API cadre_status cadre_normalization_apply(const cadre_normalization *normalization,
    const cadre_tensor *values, cadre_tensor **ret_values);

/* Undoes it: x * max(sqrt(variance), 1e-7) + mean. All else is as in cadre_normalization_apply.
 * (Normalization with invert=True.) */
CADRE_API cadre_status cadre_normalization_invert(const cadre_normalization *normalization,
    const cadre_tensor *values, cadre_tensor **ret_values);

/* cadre_normalization_apply to the first component, for cadre_dataset_map. */
CADRE_API cadre_status cadre_normalization_map(
    const cadre_element *in, cadre_element *ret_out, void *normalization);

/* --- map functions for cadre_dataset_map with their options as `user`, which outlive the dataset.
 * They change one component of each element, a row or a batch, and pass on the others. --- */

/* The numbers of cadre_rescaling_map. Zeroed: the defaults. */
typedef struct cadre_rescaling_options {
    uint32_t component; /* that is changed */
    double scale;       /* 0: 1 */
    double offset;
} cadre_rescaling_options;

/* x * scale + offset, of any floating or integer type: CADRE_F64 for CADRE_F64, else CADRE_F32.
 * Bytes to [0, 1]: scale 1.0 / 255. (Rescaling.) */
CADRE_API cadre_status cadre_rescaling_map(
    const cadre_element *in, cadre_element *ret_out, void *options);

/* What comes of a sample. */
typedef enum cadre_encoding_mode {
    CADRE_ENCODE_MULTI_HOT, /* 1 for each category in it: [..., n] gives [..., num_tokens] */
    CADRE_ENCODE_ONE_HOT,   /* a vector for each of its numbers: [...] gives [..., num_tokens] */
    CADRE_ENCODE_COUNT      /* how often each is in it: [..., n] gives [..., num_tokens] */
} cadre_encoding_mode;

/* What cadre_category_encoding_map makes of which component. Zeroed: the defaults, but for
 * num_tokens. */
typedef struct cadre_category_encoding_options {
    uint32_t component; /* that is changed */
    int64_t num_tokens; /* categories, which are 0 to one less */
    cadre_encoding_mode mode;
} cadre_category_encoding_options;

/* Integers of any type as vectors of CADRE_F32. A scalar gives one vector in each mode. With
 * CADRE_ENCODE_ONE_HOT a last dimension of 1 behind others is taken for the number itself: [n, 1]
 * gives [n, num_tokens], as [n] does, whatever n is. INVALID_ARGUMENT, naming it: a number that is
 * no category. (CategoryEncoding; tf.one_hot.) */
CADRE_API cadre_status cadre_category_encoding_map(
    const cadre_element *in, cadre_element *ret_out, void *options);

/* --- augmentation: the same with random numbers, which are those of cadre_random_for_element
 * (cadre/random.h): other ones for each sample and epoch, and the same with any number of tasks and
 * when a job goes on. So a map with one of these stands before cadre_dataset_repeat, and behind
 * cadre_dataset_cache. The component holds images: [h, w, c], or a batch [n, h, w, c] of which each
 * is drawn for by itself, of any type but CADRE_STRING. Two maps with one seed draw the same: an
 * image and its mask. INVALID_ARGUMENT: another shape. --- */

/* In which directions an image may be flipped. */
typedef enum cadre_flip_mode {
    CADRE_FLIP_BOTH,       /* each way by itself */
    CADRE_FLIP_HORIZONTAL, /* left to right */
    CADRE_FLIP_VERTICAL
} cadre_flip_mode;

/* How cadre_random_flip_map flips. Zeroed: the defaults. */
typedef struct cadre_random_flip_options {
    uint32_t component; /* that is changed */
    cadre_flip_mode mode;
    uint64_t seed;
} cadre_random_flip_options;

/* Flips every other image, by chance. (RandomFlip.) */
CADRE_API cadre_status cadre_random_flip_map(
    const cadre_element *in, cadre_element *ret_out, void *options);

/* What cadre_random_crop_map cuts out. Zeroed: the defaults, but for height and width. */
typedef struct cadre_random_crop_options {
    uint32_t component; /* that is changed */
    bool center;        /* the middle of each image, without chance: for evaluation (CenterCrop) */
    int64_t height;
    int64_t width;
    uint64_t seed;
} cadre_random_crop_options;

/* Cuts [height, width] out of each image, anywhere in it. INVALID_ARGUMENT: an image that is
 * smaller, which Keras would resize. (RandomCrop.) */
CADRE_API cadre_status cadre_random_crop_map(
    const cadre_element *in, cadre_element *ret_out, void *options);

#ifdef __cplusplus
}
#endif
#endif
