/* SPDX-License-Identifier: Apache-2.0
 * The target of a request, "/api/jobs/3?limit=20": its path and its arguments, percent-decoded and
 * checked. No I/O. */
#ifndef CADRE_HTTP_TARGET_H
#define CADRE_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define HTTP_TARGET_BYTES  2048 /* with the zero at its end */
#define HTTP_ARGUMENTS_MAX 8

struct http_argument {
    const char *name;
    const char *value; /* "" where there is none */
};

struct http_target {
    const char *path; /* begins with "/" */
    struct http_argument arguments[HTTP_ARGUMENTS_MAX];
    size_t argument_count;
    char text[HTTP_TARGET_BYTES]; /* what these point into */
};

/* Fills the target from what a request line has. INVALID_ARGUMENT: it is too long, has too many
 * arguments or one twice, an escape is none, or it decodes to what is no text (control characters,
 * bad UTF-8), in the path also to "/"; *ret_target has then no arguments, and of the path what is
 * before the fault. */
cadre_status http_target_parse(
    const char *raw, struct http_target *ret_target, struct cadre_error *error);

/* The value of the argument of this name; NULL: there is none. */
const char *http_target_argument(const struct http_target *target, const char *name);

/* INVALID_ARGUMENT: there is an argument that is not among these names; `names` ends with NULL. */
cadre_status http_target_check(
    const struct http_target *target, const char *const *names, struct cadre_error *error);

/* The argument as a whole number of at most `max`, else `otherwise` where there is none.
 * INVALID_ARGUMENT: it is no such number. */
cadre_status http_target_number(const struct http_target *target, const char *name,
    uint64_t otherwise, uint64_t max, uint64_t *ret_number, struct cadre_error *error);

/* Decimal digits alone, as a number of at most `max`; false: something else. */
bool http_number_parse(const char *text, uint64_t max, uint64_t *ret_number);

#endif
