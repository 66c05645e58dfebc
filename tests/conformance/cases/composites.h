/* SPDX-License-Identifier: Apache-2.0
 * Ragged and sparse components of cases: a list of lists, and {"indices", "values", "dense_shape"}.
 * In a structure (values.h) each is one letter. */
#ifndef CADRE_TESTS_CONFORMANCE_COMPOSITES_H
#define CADRE_TESTS_CONFORMANCE_COMPOSITES_H

#include "datasets.h"
#include "replicas.h"

/* "ragged_batch" and "dense_to_sparse_batch"; other operations are not `ret_known`. */
bool composites_apply(struct conformance_case *self, const char *name, const json_t *op,
    struct case_dataset *dataset, bool *ret_known);

/* What becomes of the structure by "unbatch": rows are plain. */
void composites_unbatch(char *structure);

/* Gather and reduce of values of the "kind" that the case says: "ragged" or "sparse". */
void composites_gather(struct conformance_case *self);
void composites_reduce(struct conformance_case *self);

/* Prints the values, and compares the "text". */
void area_print(struct conformance_case *self);

#endif
