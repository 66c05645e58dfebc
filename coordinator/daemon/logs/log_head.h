/* SPDX-License-Identifier: Apache-2.0
 * The newest segments of a log, as one object beside them, which is read by its name: a store may
 * list an object long after it was put (Swift does when it has much to do), and the next leader is
 * to go on behind what was acknowledged. Nothing here reads or writes.
 *
 * It is put after each segment and before the acknowledgement, so it names all that was
 * acknowledged. Segments that are older than those which it names are listed. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_HEAD_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_HEAD_H

#include "coordinator/daemon/logs/log_segment.h"

#define LOG_HEAD_SEGMENTS  64
#define LOG_HEAD_BYTES_MAX ((size_t)16 * 1024)

struct log_head {
    uint64_t term; /* of the coordinator that put it */
    size_t count;
    struct log_segment segments[LOG_HEAD_SEGMENTS];
};

/* The last ones of arranged segments. */
void log_head_of(
    const struct log_segment *segments, size_t count, uint64_t term, struct log_head *ret_head);

/* The object; returns its size. */
size_t log_head_pack(const struct log_head *head, char ret_text[LOG_HEAD_BYTES_MAX]);
/* False: it is no such object. `text` ends with a zero byte. */
bool log_head_unpack(const char *text, struct log_head *ret_head);

/* Whether a segment that was listed counts beside those of the head: it is older than they are, or
 * came after the head was put. One between them was removed, or was not acknowledged. */
bool log_head_lets(const struct log_head *head, const struct log_segment *listed);

#endif
