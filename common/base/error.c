/* SPDX-License-Identifier: Apache-2.0
 * struct cadre_error: set, wrapped and translated from errno; the calling thread's last failure
 * and CADRE_CHECK, which the public libraries export. All modules but the pure cores call it. */
#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char last_message[CADRE_ERROR_TEXT_BYTES];

const char *cadre_status_name(cadre_status status)
{
    static const char *const names[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
        "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};
    if ((int)status < 0 || (size_t)status >= sizeof names / sizeof names[0]) {
        return "UNKNOWN";
    }
    return names[status];
}

/* Never cuts inside a UTF-8 character: a text that is not UTF-8 could not be sent. */
static void mark_cut(char *text, size_t size)
{
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
        end--;
    }
    memcpy(text + end, "...", 4);
}

static void write_text(struct cadre_error *error, const char *format, va_list arguments)
{
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    if (length < 0) {
        error->text[0] = '\0';
    } else if ((size_t)length >= sizeof error->text) {
        mark_cut(error->text, sizeof error->text);
    }
}

cadre_status cadre_error_set(struct cadre_error *error, cadre_status code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        write_text(error, format, arguments);
        va_end(arguments);
        error->code = code;
    }
    return code;
}

/* Appends ": <tail>" to what the text holds. */
static void error_append(struct cadre_error *error, const char *tail)
{
    size_t used = strlen(error->text);
    int length = snprintf(error->text + used, sizeof error->text - used, ": %s", tail);
    if (length < 0 || (size_t)length >= sizeof error->text - used) {
        mark_cut(error->text, sizeof error->text);
    }
}

cadre_status cadre_error_wrap(struct cadre_error *error, cadre_status code, const char *format, ...)
{
    if (error != NULL) {
        char inner[CADRE_ERROR_TEXT_BYTES];
        memcpy(inner, error->text, sizeof inner);
        va_list arguments;
        va_start(arguments, format);
        write_text(error, format, arguments);
        va_end(arguments);
        error_append(error, inner);
        error->code = code;
    }
    return code;
}

cadre_status cadre_status_from_errno(int errnum)
{
    switch (errnum) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
        return CADRE_NOT_FOUND;
    case EEXIST:
    case EADDRINUSE:
        return CADRE_ALREADY_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return CADRE_PERMISSION_DENIED;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case EFBIG:
        return CADRE_RESOURCE_EXHAUSTED;
    case EINVAL:
    case ENAMETOOLONG:
    case ENOEXEC:
    case EISDIR:
    case ELOOP:
        return CADRE_INVALID_ARGUMENT;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EAGAIN:
        return CADRE_UNAVAILABLE;
    case ETIMEDOUT:
        return CADRE_DEADLINE_EXCEEDED;
    case EIO:
        return CADRE_DATA_LOSS;
    case ENOSYS:
    case EOPNOTSUPP:
        return CADRE_UNIMPLEMENTED;
    case ECANCELED:
        return CADRE_CANCELLED;
    default:
        return CADRE_UNKNOWN;
    }
}

cadre_status cadre_error_errno(struct cadre_error *error, int errnum, const char *format, ...)
{
    cadre_status code = cadre_status_from_errno(errnum);
    if (error != NULL) {
        char reason[128];
        va_list arguments;
        va_start(arguments, format);
        write_text(error, format, arguments);
        va_end(arguments);
        error_append(
            error, strerror_r(errnum, reason, sizeof reason)); /* GNU's form: returns the text */
        error->code = code;
    }
    return code;
}

cadre_status cadre_error_publish(const struct cadre_error *error)
{
    memcpy(last_message, error->text, strlen(error->text) + 1); /* not half a kilobyte of it */
    return error->code;
}

const char *cadre_error_message(void)
{
    return last_message;
}

static cadre_status expected_status; /* CADRE_CHECK exits with expected_exit_code after it */
static int expected_exit_code;

void cadre_check_set_exit_code(cadre_status status, int exit_code)
{
    expected_status = status;
    expected_exit_code = exit_code;
}

void cadre_check(cadre_status status, const char *call, const char *file, int lineno)
{
    if (status == CADRE_OK) {
        return;
    }
    fprintf(stderr, "%s:%d: %s: %s: %s\n", file, lineno, call, cadre_status_name(status),
        last_message[0] != '\0' ? last_message : "no message");
    exit(status == expected_status ? expected_exit_code : 1);
}
