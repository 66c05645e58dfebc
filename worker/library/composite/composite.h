/* SPDX-License-Identifier: Apache-2.0
 * Components that are one value together: how many they are, their rows, and pieces of them. A
 * component that belongs to no ragged or sparse value is a composite of itself alone, so that loops
 * over elements have no special cases. */
#ifndef CADRE_WORKER_COMPOSITE_H
#define CADRE_WORKER_COMPOSITE_H

#include <stdint.h>
#include <stdio.h>

#include "cadre/dataset.h"
#include "cadre/tensor.h"
#include "common/base/error.h"

#define COMPOSITE_COMPONENTS_MAX 3

/* Of adjacent components. */
struct composite {
    cadre_composite kind;
    uint32_t first; /* component */
    uint32_t count; /* of components: 1, 2 or 3 */
};

/* The value that begins with component `first`. A mark without its other components is ignored. */
struct composite composite_of_element(const cadre_element *element, uint32_t first);
/* The same of a spec. */
struct composite composite_of_spec(const cadre_element_spec *spec, uint32_t first);

/* "component 2", "components 2 and 3 (ragged)": for messages. */
#define COMPOSITE_TEXT_BYTES 48
/* Writes that text and returns it. */
const char *composite_text(const struct composite *composite, char text[COMPOSITE_TEXT_BYTES]);

/* --- facts about a value; `tensors` are its own, from its first component on --- */

/* INVALID_ARGUMENT: its components do not fit together. A plain one always passes. */
cadre_status composite_check(
    cadre_composite kind, cadre_tensor *const tensors[], struct cadre_error *error);

/* Its rows; of a scalar 1. Of components that were not checked some number of rows, >= 0. */
int64_t composite_rows(cadre_composite kind, cadre_tensor *const tensors[]);

/* INVALID_ARGUMENT: component N of `who` is marked and no ragged or sparse value ends there. */
cadre_status composite_spec_check(
    const cadre_element_spec *spec, const char *who, struct cadre_error *error);

/* CADRE_DIMENSION_ANY: not known, or a scalar's. */
int64_t composite_spec_rows(const cadre_element_spec *spec, const struct composite *composite);

/* Sets its rows to `rows` or CADRE_DIMENSION_ANY; the lengths of ragged and the number of sparse
 * values become unknown. Does nothing for a scalar. */
void composite_spec_set_rows(
    cadre_element_spec *spec, const struct composite *composite, int64_t rows);

/* The same of all components. */
void element_spec_set_rows(cadre_element_spec *spec, int64_t rows);

/* --- pieces --- */

/* Rows [first, first + count) of each component, numbered from 0. Shares memory where it can. On
 * error all results are NULL. INVALID_ARGUMENT: a scalar, components that do not fit together, no
 * such rows. */
cadre_status composite_slice(cadre_composite kind, cadre_tensor *const tensors[], int64_t first,
    int64_t count, cadre_tensor *ret_tensors[], struct cadre_error *error);

/* The rows of `count` >= 1 elements one behind the other, of the components that `composite` names.
 * On error all results are NULL. */
cadre_status composite_concat(const struct composite *composite, const cadre_element elements[],
    size_t count, cadre_tensor *ret_tensors[], struct cadre_error *error);

/* A value without rows: dimensions that the spec does not have are 0. */
cadre_status composite_empty(const cadre_element_spec *spec, const struct composite *composite,
    cadre_tensor *ret_tensors[], struct cadre_error *error);

/* Row `row` of a ragged value, [length, d1, ...], sharing memory: reads no other row. OUT_OF_RANGE:
 * there is no such row. */
cadre_status ragged_row(
    cadre_tensor *const tensors[], int64_t row, cadre_tensor **ret_row, struct cadre_error *error);

/* --- making them --- */

/* Row splits [count + 1] of rows of these lengths, each >= 0. */
cadre_status ragged_splits_of(const int64_t lengths[], int64_t count, cadre_tensor **ret_row_splits,
    struct cadre_error *error);

/* A dense shape. */
cadre_status sparse_shape_of(
    const int64_t dims[], uint32_t rank, cadre_tensor **ret_dense_shape, struct cadre_error *error);

/* --- components that were gathered from several values, one behind the other --- */

/* `row_splits` has those of `count` values, of sizes[i] entries each. */
cadre_status ragged_splits_concat(const cadre_tensor *row_splits, const int64_t sizes[],
    size_t count, cadre_tensor **ret_row_splits, struct cadre_error *error);

/* `indices` has those of `count` values, sizes[i] each, `dense_shapes` their dense shapes. The
 * indices are written in place. The result has all rows, and of the other dimensions the
 * largest. */
cadre_status sparse_indices_concat(cadre_tensor *indices, const cadre_tensor *dense_shapes,
    const int64_t sizes[], size_t count, cadre_tensor **ret_dense_shape, struct cadre_error *error);

/* --- as text --- */

/* <RaggedTensor [[1, 2], [], [3]]>, SparseTensor(indices=..., values=..., dense_shape=...). */
cadre_status composite_print(
    cadre_composite kind, cadre_tensor *const tensors[], FILE *to, struct cadre_error *error);

#endif
