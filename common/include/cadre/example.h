/* SPDX-License-Identifier: Apache-2.0
 * tf.train.Example: the named features that TFRecord files mostly hold, as tensors and back.
 *
 *     const cadre_feature features[] = {
 *         {.name = "image", .dtype = CADRE_F32, .rank = 2, .dims = {28, 28}},
 *         {.name = "label", .dtype = CADRE_I64},
 *     };
 *     CADRE_CHECK(cadre_example_parser_create(features, 2, &parser));
 *     data = cadre_dataset_tfrecord(paths, count, NULL);
 *     data = cadre_dataset_batch(data, 128, false);
 *     data = cadre_dataset_map(data, cadre_example_map, parser, NULL);
 *
 * Batch first and parse the batch, as above, where there is a choice: it makes one tensor per
 * feature and batch instead of one per feature and example. The format (protocol buffers):
 * https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto. */
#ifndef CADRE_EXAMPLE_H
#define CADRE_EXAMPLE_H

#include "cadre/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many values of a feature an example has, and what tensors they become. */
typedef enum cadre_feature_kind {
    /* Exactly as many values as `dims` say; one value for rank 0. (tf.io.FixedLenFeature.) */
    CADRE_FEATURE_FIXED = 0,
    /* Any number of values of shape `dims`, none if the feature is missing. In a batch padded to
     * the longest. (tf.io.FixedLenSequenceFeature with allow_missing.) */
    CADRE_FEATURE_SEQUENCE,
    /* Any number of values, none if the feature is missing; `rank` is 0. In a batch ragged
     * (cadre/composite.h): the values of all examples one behind the other, and their row splits.
     * (tf.io.RaggedFeature.) */
    CADRE_FEATURE_VARYING,
    /* The same, sparse: indices, values and a dense shape, in a batch with a row for each example
     * and as wide as the longest. (tf.io.VarLenFeature.) */
    CADRE_FEATURE_SPARSE
} cadre_feature_kind;

/* One feature as it is wanted. Zeroed but for name and dtype: a scalar that must be there. */
typedef struct cadre_feature {
    const char *name;
    cadre_feature_kind kind;
    cadre_dtype dtype; /* CADRE_F32, CADRE_I64 or CADRE_STRING: what examples can hold */
    uint32_t rank;     /* with `dims`: the shape of one value; at most CADRE_RANK_MAX - 1, of a
                          SEQUENCE CADRE_RANK_MAX - 2 */
    int64_t dims[CADRE_RANK_MAX];
    /* FIXED: the value where the feature is missing, as many elements as `dims` say; NULL: it must
     * not be missing. SEQUENCE: a scalar to pad with in batches; NULL: 0, "". The others: NULL.
     */
    cadre_tensor *default_value;
} cadre_feature;

/* The features that are wanted of each example; it never changes. */
typedef struct cadre_example_parser cadre_example_parser;

/* Copies the description of `count` features, 1 to CADRE_ELEMENT_TENSORS_MAX; takes references of
 * the defaults. On success *ret_parser is the caller's, to be freed after the datasets that use it.
 * INVALID_ARGUMENT names the feature that is described wrongly. */
CADRE_API cadre_status cadre_example_parser_create(
    const cadre_feature features[], size_t count, cadre_example_parser **ret_parser);

/* Frees it; no dataset may use it any more. NULL is allowed. */
CADRE_API void cadre_example_parser_release(cadre_example_parser *parser);

/* What parsing one example gives, in the order of the features, each called like it: FIXED [dims],
 * SEQUENCE [?, dims], VARYING [?]; SPARSE indices [?, 1], values [?], dense shape [1], called
 * 'ids/indices', 'ids/values' and 'ids/dense_shape' where the feature is 'ids'. For
 * cadre_map_options.output: without it the first example is read to see. */
CADRE_API cadre_status cadre_example_parser_spec(
    const cadre_example_parser *parser, cadre_element_spec *ret_spec);

/* What parsing a batch gives: in the order of the features FIXED [n, dims], SEQUENCE [n, ?, dims];
 * VARYING the values [?] and, after them, row splits [n + 1], called 'ids/values' and
 * 'ids/row_splits'; SPARSE indices [?, 2], values [?], dense shape [2]. INVALID_ARGUMENT: that is
 * more than CADRE_ELEMENT_TENSORS_MAX components. */
CADRE_API cadre_status cadre_example_parser_batch_spec(
    const cadre_example_parser *parser, cadre_element_spec *ret_spec);

/* --- parsing. Any thread; the parser does not change. Of a feature that is there twice the last
 * one counts; features that the parser does not list are passed over; a feature without any list is
 * missing. INVALID_ARGUMENT, naming the feature: it is missing, holds another type, or another
 * number of values. DATA_LOSS: the bytes are no example. On failure *ret_element is empty. --- */

/* One example of `size` bytes. (tf.io.parse_single_example.) */
CADRE_API cadre_status cadre_example_parse(
    const cadre_example_parser *parser, const void *bytes, size_t size, cadre_element *ret_element);

/* All elements of `examples`, CADRE_STRING [n], at once. Strings may share its memory.
 * (tf.io.parse_example.) */
CADRE_API cadre_status cadre_example_parse_batch(
    const cadre_example_parser *parser, cadre_tensor *examples, cadre_element *ret_element);

/* A cadre_map_function with the parser as `user`: elements of one component, a CADRE_STRING scalar
 * or a batch [n] of them, which it parses as the two above do. */
CADRE_API cadre_status cadre_example_map(
    const cadre_element *in, cadre_element *ret_out, void *parser);

/* --- making them --- */

/* An example with `count` features, names and tensors side by side, as a CADRE_STRING scalar; the
 * values of a tensor become a list, its shape is not kept. INVALID_ARGUMENT: a tensor that is not
 * CADRE_F32, CADRE_I64 or CADRE_STRING, or a name that is there twice. (tf.train.Example.) */
CADRE_API cadre_status cadre_example_serialize(const char *const names[],
    cadre_tensor *const tensors[], size_t count, cadre_tensor **ret_example);

#ifdef __cplusplus
}
#endif
#endif
