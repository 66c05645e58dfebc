/* SPDX-License-Identifier: Apache-2.0
 * Tensors as JSON and back: nested lists, a number or a string for a scalar. What JSON has no word
 * for is a string: "nan", "inf", "-inf". */
#ifndef CADRE_TESTS_CONFORMANCE_VALUES_H
#define CADRE_TESTS_CONFORMANCE_VALUES_H

#include <jansson.h>
#include <stdbool.h>

#include "cadre/dataset.h"

/* A new reference. */
json_t *value_of_tensor(const cadre_tensor *tensor);

/* Integers give CADRE_I64, numbers of which one is a real give `reals` (CADRE_F32 or CADRE_F64),
 * strings CADRE_STRING, truth values CADRE_BOOL, nothing CADRE_I64. False, without a tensor: lists
 * of different lengths or kinds. */
bool value_to_tensor(const json_t *value, cadre_dtype reals, cadre_tensor **ret_tensor);

/* The same where integers are to be reals too: they stand among others that are. */
bool value_to_real_tensor(const json_t *value, cadre_dtype reals, cadre_tensor **ret_tensor);

/* How the components of an element are nested: a letter one of them, or a ragged or sparse value's,
 * which are several; "(" ... ")" a tuple. */
#define STRUCTURE_BYTES  256
#define STRUCTURE_PLAIN  'x'
#define STRUCTURE_RAGGED 'r'
#define STRUCTURE_SPARSE 's'

/* A new reference: one component's value, or a list of a tuple's parts. `tensors` are the
 * components in order. */
json_t *value_of_components(cadre_tensor *const tensors[], const char *structure);

#endif
