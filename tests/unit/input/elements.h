/* SPDX-License-Identifier: Apache-2.0
 * Elements as text, and what must hold of every dataset: for the tests of transformations.
 *
 * A scalar is "5" or "word", a vector "[1 2]", a matrix "[[1 2] [3 4]]"; an element of several
 * components is "(5, [1 2])". */
#ifndef CADRE_TESTS_INPUT_ELEMENTS_H
#define CADRE_TESTS_INPUT_ELEMENTS_H

#include "worker/library/input/node/node.h"

#define ELEMENTS_TEXT_BYTES 65536

/* The same elements in the same order, not indexable: a filter that keeps them all. */
cadre_dataset *in_order_only(cadre_dataset *data);

/* All elements of an iteration with spaces between them, at most `most`; an error as
 * "!INVALID_ARGUMENT" and its message. In one of four buffers that are used in turn. */
const char *elements_text(cadre_dataset *data, const struct pass *pass, size_t most);

/* Of epoch 0, in order. Consumes `data`. */
void expect_elements(cadre_dataset *data, const char *expected);

/* The dataset, or reading it to its end, fails with this code, and says `part`. Consumes `data`. */
void expect_failure(cadre_dataset *data, cadre_status code, const char *part);

/* "i64 [] f32 [?, 2]" */
void expect_spec(cadre_dataset *data, const char *expected);

/* The elements and the ids of `data`:
 *  - saved at every position and restored in another iterator give exactly the rest,
 *  - are the same by next_rows (where stacked) and after skips,
 *  - and by index, where the dataset is indexable: at, gather, ids_at, rows and at_rows.
 * Of epochs 0 and 1. */
void expect_consistent(cadre_dataset *data);

/* Both give the same elements with the same ids. */
void expect_same(cadre_dataset *data, cadre_dataset *other, const struct pass *pass);

/* The first of these, of one pass. */
void expect_positions(cadre_dataset *data, const struct pass *pass);

#endif
