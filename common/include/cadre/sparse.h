/* SPDX-License-Identifier: Apache-2.0
 * Sparse values: some rows of a dense tensor, as the gradient of a look-up gives them.
 * (tf.IndexedSlices.) */
#ifndef CADRE_SPARSE_H
#define CADRE_SPARSE_H

#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row i of `values` belongs to row indices[i] of a dense tensor of shape [rows, d1, d2, ...]; what
 * is not named is zero, and rows that are named more than once add up. The tensors are whose the
 * structure is. */
typedef struct cadre_sparse {
    cadre_tensor *values;  /* [n, d1, d2, ...], of a number type */
    cadre_tensor *indices; /* CADRE_I64 [n], each in [0, rows) */
    int64_t rows;          /* of the dense tensor; CADRE_DIMENSION_ANY: not known */
} cadre_sparse;

/* Puts the values and indices of all replicas one after the other, in order of replica ids, on
 * every replica: nothing is added up, an index that several of them name stays as often. CADRE_MEAN
 * divides all values by the number of replicas, also those of rows that one replica alone names.
 * How many rows each gives may differ, 0 included; type, d1, d2, ... and `rows` are equal.
 * In replica context, under the rules of cadre/collective.h, of `options` bytes_per_pack aside.
 * On success *ret_sparse holds two tensors that are the caller's, for cadre_sparse_release; on
 * error it is zeroed. It is another place than `input`, which stays as it is. INVALID_ARGUMENT also
 * for shapes that do not belong together, an index outside of [0, rows), and an op other than
 * CADRE_SUM and CADRE_MEAN. (tf.distribute.ReplicaContext.all_reduce of tf.IndexedSlices.) */
CADRE_API cadre_status cadre_all_reduce_sparse(cadre_replica *replica, cadre_reduce_op op,
    const cadre_sparse *input, const cadre_collective_options *options, cadre_sparse *ret_sparse);

/* Releases both tensors. NULL and zeroed are allowed. */
CADRE_API void cadre_sparse_release(cadre_sparse *sparse);

#ifdef __cplusplus
}
#endif
#endif
