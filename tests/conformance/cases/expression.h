/* SPDX-License-Identifier: Apache-2.0
 * The `fn` of cases: elementwise arithmetic over numbers and nested lists, tuples, lists and their
 * elements: "x + 1", "(x, 2.0 * y)", "[3.0, 2.0, 1.0][id]". As in Python: / gives a real, // and %
 * round down. */
#ifndef CADRE_TESTS_CONFORMANCE_EXPRESSION_H
#define CADRE_TESTS_CONFORMANCE_EXPRESSION_H

#include <jansson.h>
#include <stddef.h>

#define EXPRESSION_WHY_BYTES 160

/* The value of a variable, or NULL; borrowed. */
typedef json_t *(*expression_variable)(const char *name, size_t length, void *user);

/* A new reference; a tuple is {"tuple": [...]}, so that it differs from a list. NULL: `why` says
 * what cannot be evaluated, with the offset in the text. */
json_t *expression_evaluate(
    const char *text, expression_variable variable, void *user, char why[EXPRESSION_WHY_BYTES]);

/* The parts of a tuple, or NULL for any other value. */
json_t *expression_tuple(const json_t *value);

#endif
