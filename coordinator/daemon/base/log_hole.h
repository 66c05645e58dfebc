/* SPDX-License-Identifier: Apache-2.0
 * What of a task's log is not kept. A log is one file whose offsets never change: its beginning and
 * its newest end are kept, and what lies between is a hole that takes no room. "<slot>.gap" beside
 * it says where the hole is. */
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

struct log_hole log_hole_read(const char *log);

/* Whether the file system of the log, open for writing as `fd`, knows holes. */
bool log_hole_is_supported(int fd);

/* Keeps about `limit` bytes of the log, which is `size` bytes long and open for reading and writing
 * as `fd`: the first eighth and the newest rest, both at ends of lines where these are near.
 * *ret_freed: so many fewer are kept now. False: this file system cannot, or an error; then
 * nothing changed, and errno says why. */
bool log_hole_extend(const char *log, int fd, uint64_t size, uint64_t limit, uint64_t *ret_freed);

#endif
