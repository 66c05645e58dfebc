/* SPDX-License-Identifier: Apache-2.0
 * The file beside a log that has its marks, in the order of their offsets, 16 bytes each. Both
 * daemons keep one. A log of an earlier version has none, and a failure costs marks, never text:
 * without one the stream and the time of bytes are not recorded. In threads. */
#ifndef CADRE_BASE_LOG_MARKS_H
#define CADRE_BASE_LOG_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/pure/log_mark.h"

/* The path of the marks of the log at `path`; the caller frees it. NULL: no memory. */
char *log_marks_path(const char *path);

/* Appends the marks of bytes that are written next, at the end of a log of `log_bytes`. What is
 * there of bytes behind, which were never written, is removed; a mark that repeats the one before
 * it is left out. False: errno. */
bool log_marks_append(int fd, uint64_t log_bytes, const struct log_mark *marks, size_t count);

/* Reads the marks of the bytes from `from` to `to`; the first one is at `from`. Returns how many,
 * 1 to `max` (2 at least); *ret_to: the end of the bytes that they describe, at most `to`. `fd` may
 * be -1. */
size_t log_marks_read(
    int fd, uint64_t from, uint64_t to, struct log_mark *ret_marks, size_t max, uint64_t *ret_to);

/* The offset of the first bytes that were received at `since_us` or after; else `log_bytes`. */
uint64_t log_marks_since(int fd, uint64_t since_us, uint64_t log_bytes);

/* The bytes from `from` to `to` are not kept any more: their marks take no room either, where the
 * file system supports holes. */
void log_marks_punch(int fd, uint64_t from, uint64_t to);

#endif
