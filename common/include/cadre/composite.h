/* SPDX-License-Identifier: Apache-2.0
 * Composite values: rows of unequal length, as several tensors beside each other.
 * (tf.RaggedTensor, tf.SparseTensor.)
 *
 *     ragged                                     sparse
 *     component  values      [total, d1, ...]    component  indices      I64 [n, rank]
 *     the next   row splits  I64 [rows + 1]      the next   values       [n]
 *                                                the next   dense shape  I64 [rank]
 *
 * Row i of a ragged value holds the values from row_splits[i] on, up to row_splits[i + 1]; so
 * [[1, 2], [], [3]] is the values [1, 2, 3] and the row splits [0, 2, 2, 3]. Only the first
 * dimension is one of unequal rows: d1, ... are equal. Value k of a sparse value is at index
 * indices[k] of a dense tensor of the dense shape, and what is not named is nothing; its rows are
 * those of the first index.
 *
 * They are plain components of elements, batches and per-replica values: functions get each as a
 * tensor of its own. The last of them marks what they are: row splits and dense shapes are marked.
 * Those of the functions here, of cadre_dataset_ragged_batch and _sparse_batch and of parsers are;
 * one that is retained or copied stays so, a view is not. Where rows count, a composite value is
 * one thing: a batch of it is cut by rows for the replicas, its row splits begin at 0 and its
 * indices at row 0 in each piece; what has no rows has the row splits [0], no index, and 0 in its
 * dense shape; rebatching, cadre_dataset_unbatch and cadre_gather along axis 0 put rows together or
 * apart in the same way, and cadre_value_print prints it as TensorFlow does. cadre_reduce refuses
 * it: sum what is computed of the rows.
 *
 *     data = cadre_dataset_map(lines, words_of, NULL, &options);  // string [?]
 *     data = cadre_dataset_ragged_batch(data, 64, false);         // words [?], row splits [65]
 *     ...
 *     CADRE_CHECK(cadre_ragged_row(inputs[0], inputs[1], i, &words)); // in the replica function
 *
 * Parts that do not belong together are INVALID_ARGUMENT wherever they are used: row splits that do
 * not begin at 0, that fall, or do not end with the number of values; indices outside of the dense
 * shape. The functions here are for tensors in the memory of the host (FAILED_PRECONDITION), any
 * thread and context; on success ret_ places hold one reference, on error NULL. */
#ifndef CADRE_COMPOSITE_H
#define CADRE_COMPOSITE_H

#include <stdint.h>

#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A copy of `row_splits` (CADRE_I64, rank 1) marked as those of `values`, which stand before it.
 * (tf.RaggedTensor.from_row_splits.) */
CADRE_API cadre_status cadre_ragged_from_row_splits(
    const cadre_tensor *values, const cadre_tensor *row_splits, cadre_tensor **ret_row_splits);

/* Row `row`, [length, d1, ...], sharing the memory of `values`, which may lie on a GPU.
 * OUT_OF_RANGE: there is no such row. (tf.RaggedTensor.__getitem__.) */
CADRE_API cadre_status cadre_ragged_row(
    cadre_tensor *values, const cadre_tensor *row_splits, int64_t row, cadre_tensor **ret_row);

/* All rows as [rows, width, d1, ...]: cut at `width` values, filled up with `default_value`, a
 * scalar of their type; NULL: 0, "". CADRE_DIMENSION_ANY: as wide as the longest row.
 * (tf.RaggedTensor.to_tensor.) */
CADRE_API cadre_status cadre_ragged_to_dense(cadre_tensor *values, const cadre_tensor *row_splits,
    int64_t width, const cadre_tensor *default_value, cadre_tensor **ret_dense);

/* A copy of `dense_shape` (CADRE_I64, rank 1) marked as that of `indices` and `values`, which stand
 * before it. (tf.SparseTensor.) */
CADRE_API cadre_status cadre_sparse_from_indices(const cadre_tensor *indices,
    const cadre_tensor *values, const cadre_tensor *dense_shape, cadre_tensor **ret_dense_shape);

/* A tensor of the dense shape, with `default_value` (as above) where no value is. INVALID_ARGUMENT
 * also where indices are not in row-major order, each once. (tf.sparse.to_dense.) */
CADRE_API cadre_status cadre_sparse_to_dense(const cadre_tensor *indices,
    const cadre_tensor *values, const cadre_tensor *dense_shape, const cadre_tensor *default_value,
    cadre_tensor **ret_dense);

#ifdef __cplusplus
}
#endif
#endif
