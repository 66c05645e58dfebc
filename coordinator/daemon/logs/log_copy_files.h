/* SPDX-License-Identifier: Apache-2.0
 * The files of a log that lies in an object store, made of its segments; log_copies.c alone calls
 * it, in threads. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_COPY_FILES_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_COPY_FILES_H

#include "coordinator/daemon/logs/log_segment.h"

/* An object is at most a turn's bytes, or what is joined, with their marks. */
#define LOG_SEGMENT_OBJECT_BYTES_MAX ((size_t)256 * 1024 * 1024)

/* Arranged. */
struct log_segments {
    struct log_segment *items;
    size_t count;
    size_t capacity;
    bool short_of_memory;
};

/* False: no memory, which is noted. */
bool log_segments_add(struct log_segments *segments, const struct log_segment *segment);
/* None has bytes at `from` or behind. */
void log_segments_cut(struct log_segments *segments, uint64_t from);
/* Of the log. */
uint64_t log_segments_size(const struct log_segments *segments);

void log_copy_files_remove(const char *path);
/* The log's file has its size and no bytes; "<slot>.base" and ".gap" are right. */
cadre_status log_copy_files_begin(
    const char *path, const struct log_segments *segments, struct cadre_error *error);

/* New files, which take the place of those. */
struct log_copy_filling {
    const char *path;
    char *file;
    char *marks;
    int fd;
    int marks_fd;
};
/* On an error too log_copy_files_close() follows. */
cadre_status log_copy_files_open(
    const char *path, struct log_copy_filling *ret_filling, struct cadre_error *error);
/* In the order of the segments. */
cadre_status log_copy_files_add(struct log_copy_filling *filling, const struct log_segment *segment,
    const uint8_t *bytes, struct log_mark *marks, size_t mark_count, struct cadre_error *error);
/* Takes the place of the older ones if `status` is OK; the log has `size` bytes. Returns the
 * status, or why it could not. */
cadre_status log_copy_files_close(struct log_copy_filling *filling, uint64_t size,
    cadre_status status, struct cadre_error *error);

/* What the files have from `begin` to `end`; the caller frees both, also on an error. */
cadre_status log_copy_files_read(const char *path, uint64_t begin, uint64_t end,
    uint8_t **ret_bytes, struct log_mark **ret_marks, size_t *ret_count, struct cadre_error *error);

#endif
