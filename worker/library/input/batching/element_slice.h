/* SPDX-License-Identifier: Apache-2.0
 * Rows of batches as elements of their own, sharing memory; and what stands where there are none.
 * Components that are a ragged or sparse value together are cut and joined as one. */
#ifndef CADRE_WORKER_INPUT_BATCHING_ELEMENT_SLICE_H
#define CADRE_WORKER_INPUT_BATCHING_ELEMENT_SLICE_H

#include "worker/library/input/node/node.h"
#include "worker/library/input/batching/rebatch.h"

/* Another reference of each tensor. */
void element_reference(const cadre_element *element, cadre_element *ret_element);

/* A batch without rows: the first dimension is 0, and so are unknown ones; row splits are [0]. */
cadre_status element_make_empty(
    const cadre_element_spec *spec, cadre_element *ret_element, struct cadre_error *error);

/* What a replica gets that has nothing: unknown dimensions are 0; where all of a component are
 * known, the first one; a scalar is 0, a string empty. */
cadre_status element_make_dummy(
    const cadre_element_spec *spec, cadre_element *ret_element, struct cadre_error *error);

/* The rows that all components have. INVALID_ARGUMENT: a scalar, or they differ. */
cadre_status element_row_count(
    const cadre_element *element, int64_t *ret_rows, struct cadre_error *error);

/* The rows of the first component, or of the ragged or sparse value that begins with it. */
int64_t element_first_rows(const cadre_element *element);

/* Rows `range` of each component, which has them. */
cadre_status element_slice(const cadre_element *element, struct row_range range,
    cadre_element *ret_element, struct cadre_error *error);

/* Piece `piece` of `pieces` of each component by the split rule, each on its own number of rows.
 * INVALID_ARGUMENT: a scalar. */
cadre_status element_slice_piece(const cadre_element *element, uint64_t pieces, uint64_t piece,
    cadre_element *ret_element, struct cadre_error *error);

/* `count` >= 1 batches one behind the other. */
cadre_status element_concat(const cadre_element elements[], size_t count,
    cadre_element *ret_element, struct cadre_error *error);

/* Appends the ids of rows `range` of a batch of `rows` rows with the ids `from`: row by row, or
 * where they are not one each, all of them with the first row. `ids` may be NULL. */
cadre_status id_list_slice(const struct id_list *from, int64_t rows, struct row_range range,
    struct id_list *ids, struct cadre_error *error);

/* The same for a piece of the split rule: the ids are cut by it as rows are. */
cadre_status id_list_slice_piece(const struct id_list *from, uint64_t pieces, uint64_t piece,
    struct id_list *ids, struct cadre_error *error);

/* What pieces of the split rule look like. */
void element_spec_split(cadre_element_spec *spec, uint64_t pieces);

/* INVALID_ARGUMENT where a component is a scalar, which cannot be divided among `pieces`. */
cadre_status element_spec_check_divisible(
    const cadre_element_spec *spec, uint64_t pieces, struct cadre_error *error);

#endif
