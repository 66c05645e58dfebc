/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a task's log that are not kept. A log is one file whose offsets never change: its
 * beginning and its newest end are kept, and between them is a hole that takes no room. The file
 * "<slot>.gap" beside it has the hole's offsets. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_LOG_HOLE_H
#define CADRE_COORDINATOR_DAEMON_BASE_LOG_HOLE_H

#include <stdbool.h>
#include <stdint.h>

struct log_hole {
    uint64_t from; /* the first byte that is not kept; from == to: all is */
    uint64_t to;   /* the first one after it */
};

static inline uint64_t log_hole_bytes(const struct log_hole *hole)
{
    return hole->to - hole->from;
}

/* Reads where the hole of this log is; all zero: there is none. */
struct log_hole log_hole_read(const char *log);

/* From now on this log's hole is there, for readers; no byte is removed. False: errno. */
bool log_hole_write(const char *log, const struct log_hole *hole);

/* Whether the file system of the log, open for writing as `fd`, supports holes. */
bool log_hole_is_supported(int fd);

/* Keeps about `limit` bytes of the log, which is `size` bytes long and open for reading and writing
 * as `fd`: the first eighth and the newest rest, both at ends of lines where these are near.
 * *ret_freed: so many fewer are kept now. False: the file system does not support it, or an error
 * (errno); then nothing changed. */
bool log_hole_extend(const char *log, int fd, uint64_t size, uint64_t limit, uint64_t *ret_freed);

#endif
