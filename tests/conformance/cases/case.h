/* SPDX-License-Identifier: Apache-2.0
 * One conformance case: what became of it, and memory that lives as long as it does. */
#ifndef CADRE_TESTS_CONFORMANCE_CASE_H
#define CADRE_TESTS_CONFORMANCE_CASE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cadre/status.h"

#define WHY_BYTES 2048

enum verdict { VERDICT_PASSED = 0, VERDICT_FAILED, VERDICT_SKIPPED };

struct case_item;

struct conformance_case {
    const json_t *given;
    const json_t *expect;
    enum verdict verdict;
    char why[WHY_BYTES];
    struct case_item *items;
    char *folder;    /* of its files; NULL: none yet */
    bool wants_gpus; /* replicas are to be on GPUs; of logical devices only */
};

/* Both return false, so that what cannot go on is `return case_fail(...)`. The first reason stays.
 * Failed: the library does something else than is expected. Skipped: it cannot be run here. */
bool case_fail(struct conformance_case *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool case_skip(struct conformance_case *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The call must have worked: else failed with `what` and the calling thread's message. */
bool case_ok(struct conformance_case *self, cadre_status status, const char *what);

/* Keeps `pointer` until the end of the case; NULL is ignored. Returns it. Ends the program when
 * there is no memory. */
void *case_keep(struct conformance_case *self, void *pointer, void (*release)(void *));

/* Zeroed memory until the end of the case. */
void *case_alloc(struct conformance_case *self, size_t count, size_t bytes);

/* A folder for files, made when first asked for; NULL when it cannot be, and the case has failed.
 */
const char *case_folder(struct conformance_case *self);

/* Releases all, the newest first, and removes the folder. */
void case_end(struct conformance_case *self);

/* Every key of `object` is one of `known` (NULL-ended) or "note": else skipped. */
bool case_knows(struct conformance_case *self, const json_t *object, const char *const known[]);

/* A number of the given part: `otherwise` when it is not there; skipped when it is something else
 * or out of [least, most]. */
bool case_number(struct conformance_case *self, const json_t *object, const char *key,
    json_int_t least, json_int_t most, json_int_t otherwise, json_int_t *ret_number);

/* What came out is what is expected: floats to 1e-5, an empty list for a structure of empty
 * tensors. Else failed, with both in the reason. */
bool case_equal(
    struct conformance_case *self, const char *what, const json_t *wanted, const json_t *got);

/* The error that is expected ({"error": ..} or {"raises": ..}), or NULL. */
const json_t *case_wanted_error(const json_t *expect);

/* A failure was met: passed if it is the one that `error` wants. `early`: at construction, before
 * any element. */
bool case_check_error(
    struct conformance_case *self, const json_t *error, cadre_status status, bool early);

#endif
