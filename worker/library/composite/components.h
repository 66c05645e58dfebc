/* SPDX-License-Identifier: Apache-2.0
 * The two kinds of composite values, behind composite.h. `tensors` are the components; those of
 * cuts and joins were checked. On error all results are NULL. */
#ifndef CADRE_WORKER_COMPOSITE_COMPONENTS_H
#define CADRE_WORKER_COMPOSITE_COMPONENTS_H

#include "worker/library/composite/composite.h"

enum { RAGGED_VALUES = 0, RAGGED_SPLITS, RAGGED_COMPONENTS };
enum { SPARSE_INDICES = 0, SPARSE_VALUES, SPARSE_SHAPE, SPARSE_COMPONENTS };

/* Row splits that rows of `values` rows can have: I64, rank 1, from 0 on, never falling, to
 * `values`. INVALID_ARGUMENT. */
cadre_status ragged_check(cadre_tensor *const tensors[], struct cadre_error *error);
/* Rows [first, first + count) of a ragged value. */
cadre_status ragged_slice(cadre_tensor *const tensors[], int64_t first, int64_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error);
/* The ragged values from `component` on of all elements, one behind the other. */
cadre_status ragged_concat(uint32_t component, const cadre_element elements[], size_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error);

/* Indices, values and a dense shape that fit together. INVALID_ARGUMENT. */
cadre_status sparse_check(cadre_tensor *const tensors[], struct cadre_error *error);
/* The values whose first index is in [first, first + count). */
cadre_status sparse_slice(cadre_tensor *const tensors[], int64_t first, int64_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error);
/* The sparse values from `component` on of all elements, one behind the other. */
cadre_status sparse_concat(uint32_t component, const cadre_element elements[], size_t count,
    cadre_tensor *ret_tensors[], struct cadre_error *error);

/* INVALID_ARGUMENT unless `tensor`, the `part` of a composite value, is CADRE_I64 of `rank`. */
cadre_status component_check(
    const cadre_tensor *tensor, const char *part, uint32_t rank, struct cadre_error *error);

/* Releases `count` tensors and sets them to NULL. */
void components_release(cadre_tensor *tensors[], uint32_t count);

/* The tensors of one component of `count` elements joined along their first dimension. */
cadre_status components_concat(const cadre_element elements[], size_t count, uint32_t component,
    cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
