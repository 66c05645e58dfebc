/* SPDX-License-Identifier: Apache-2.0
 * Components that are one value together: how many they are, their rows, and pieces of them. One
 * that is no part of a ragged or sparse value is a composite of itself alone, so that loops over
 * elements need no cases. */
#ifndef CADRE_WORKER_COMPOSITE_H
#define CADRE_WORKER_COMPOSITE_H

#include <stdint.h>
#include <stdio.h>

#include "cadre/dataset.h"
#include "cadre/tensor.h"
#include "common/base/error.h"

#define COMPOSITE_COMPONENTS_MAX 3

/* Of any components in a row. */
struct composite {
    cadre_composite kind;
    uint32_t first; /* component */
    uint32_t count; /* of components: 1, 2 or 3 */
};

/* What begins with component `first`. A mark whose other parts are not there says nothing. */
struct composite composite_of_element(const cadre_element *element, uint32_t first);
struct composite composite_of_spec(const cadre_element_spec *spec, uint32_t first);

/* "component 2", "components 2 and 3 (ragged)": for messages. */
#define COMPOSITE_TEXT_BYTES 48
const char *composite_text(const struct composite *composite, char text[COMPOSITE_TEXT_BYTES]);

/* --- what is known of it; `tensors` are its own, from its first component on --- */

/* INVALID_ARGUMENT: its parts do not belong together. Of a plain one nothing is asked. */
cadre_status composite_check(
    cadre_composite kind, cadre_tensor *const tensors[], struct cadre_error *error);

/* Its rows; of a scalar 1. Of parts that were not checked some number of rows, >= 0. */
int64_t composite_rows(cadre_composite kind, cadre_tensor *const tensors[]);

/* INVALID_ARGUMENT: component N of `who` is marked and no ragged or sparse value ends there. */
cadre_status composite_spec_check(
    const cadre_element_spec *spec, const char *who, struct cadre_error *error);

/* CADRE_DIMENSION_ANY: not known, or a scalar's. */
int64_t composite_spec_rows(const cadre_element_spec *spec, const struct composite *composite);

/* Says that it has `rows` rows, or CADRE_DIMENSION_ANY; the lengths of ragged and the number of
 * sparse values are not known then. Of a scalar nothing. */
void composite_spec_set_rows(
    cadre_element_spec *spec, const struct composite *composite, int64_t rows);

/* The same of all components. */
void element_spec_set_rows(cadre_element_spec *spec, int64_t rows);

/* --- pieces --- */

/* Rows [first, first + count) of each part, numbered from 0. Shares memory where it can. On error
 * the places are NULL. INVALID_ARGUMENT: a scalar, parts that do not belong together, no such
 * rows. */
cadre_status composite_slice(cadre_composite kind, cadre_tensor *const tensors[], int64_t first,
    int64_t count, cadre_tensor *ret_tensors[], struct cadre_error *error);

/* The rows of `count` >= 1 elements one behind the other, of the components that `composite` names.
 * On error the places are NULL. */
cadre_status composite_concat(const struct composite *composite, const cadre_element elements[],
    size_t count, cadre_tensor *ret_tensors[], struct cadre_error *error);

/* Without a row: dimensions that the spec does not know are 0. */
cadre_status composite_empty(const cadre_element_spec *spec, const struct composite *composite,
    cadre_tensor *ret_tensors[], struct cadre_error *error);

/* Row `row` of a ragged value, [length, d1, ...], sharing memory: looks at no other row.
 * OUT_OF_RANGE: there is no such row. */
cadre_status ragged_row(
    cadre_tensor *const tensors[], int64_t row, cadre_tensor **ret_row, struct cadre_error *error);

/* --- making them --- */

/* Row splits [count + 1] of rows of these lengths, each >= 0. */
cadre_status ragged_splits_of(const int64_t lengths[], int64_t count, cadre_tensor **ret_row_splits,
    struct cadre_error *error);

/* A dense shape. */
cadre_status sparse_shape_of(
    const int64_t dims[], uint32_t rank, cadre_tensor **ret_dense_shape, struct cadre_error *error);

/* --- parts of it that came one behind the other from several: what a gather of each component
 * gives --- */

/* `row_splits` is those of `count` parts, of sizes[i] entries each. */
cadre_status ragged_splits_concat(const cadre_tensor *row_splits, const int64_t sizes[],
    size_t count, cadre_tensor **ret_row_splits, struct cadre_error *error);

/* `indices` is those of `count` parts, sizes[i] each, `dense_shapes` their dense shapes. The
 * indices are written in place. The result has all rows, and of the other dimensions the largest.
 */
cadre_status sparse_indices_concat(cadre_tensor *indices, const cadre_tensor *dense_shapes,
    const int64_t sizes[], size_t count, cadre_tensor **ret_dense_shape, struct cadre_error *error);

/* --- as text --- */

/* <RaggedTensor [[1, 2], [], [3]]>, SparseTensor(indices=..., values=..., dense_shape=...). */
cadre_status composite_print(
    cadre_composite kind, cadre_tensor *const tensors[], FILE *to, struct cadre_error *error);

#endif
