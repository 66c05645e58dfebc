/* SPDX-License-Identifier: Apache-2.0
 * One error type: set where the failure happens, wrapped on the way up, shown once. Libraries
 * fill it and return the code; they never print or exit. A message is one sentence that names
 * the thing, the value and the next step. */
#ifndef CADRE_BASE_ERROR_H
#define CADRE_BASE_ERROR_H

#include "cadre/status.h"

#define CADRE_ERROR_TEXT_BYTES 512

struct cadre_error {
    cadre_status code;
    char text[CADRE_ERROR_TEXT_BYTES]; /* always terminated; longer ones end with "..." */
};

/* Internal only: an operation that was posted and is not complete yet. No public function
 * returns it. */
#define CADRE_PENDING ((cadre_status)-1)

/* All three return `code`, so that a failing function is `return cadre_error_set(error, ...);`.
 * `error` may be NULL when the caller does not need the text. Thread-safe; the object belongs to
 * one thread at a time. */
cadre_status cadre_error_set(struct cadre_error *error, cadre_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Prepends what the caller was doing: "<new text>: <old text>". */
cadre_status cadre_error_wrap(struct cadre_error *error, cadre_status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Translates an errno value: appends ": <strerror>" and chooses the code (ENOENT is NOT_FOUND, and
 * so on). */
cadre_status cadre_error_errno(struct cadre_error *error, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The code of an errno value; UNKNOWN for one that has no better translation. */
cadre_status cadre_status_from_errno(int errnum);

/* Stores `error` as the calling thread's last failure, for cadre_error_message(); returns its
 * code. Only the public functions of libcadre and libcadre-client call it. Exported, so that a
 * program with both libraries has one last failure, not two. */
CADRE_API cadre_status cadre_error_publish(const struct cadre_error *error);

/* From now on CADRE_CHECK exits with `exit_code` instead of 1 on `status`. */
void cadre_check_set_exit_code(cadre_status status, int exit_code);

#endif
