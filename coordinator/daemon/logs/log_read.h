/* SPDX-License-Identifier: Apache-2.0
 * A thread of the pool reads logs for followers, a part at a time. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_READ_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_READ_H

#include "coordinator/daemon/base/daemon.h"

#define LOG_READ_BYTES  ((size_t)128 * 1024)
#define LOG_READ_SLOTS  64
#define LOG_READ_PIECES 64
#define LOG_READ_MARKS  2048

/* A piece and its marks fit a message of an earlier version's client. */
#define LOG_READ_PIECE_BYTES ((size_t)32 * 1024)

/* The offset of a slot that is not read from its start, until the thread has found where. */
#define LOG_READ_BEGIN UINT64_MAX

struct log_piece {
    uint32_t slot;
    uint64_t offset;
    size_t at; /* in the bytes that were read */
    size_t size;
    const struct log_mark *marks;
    size_t mark_count;
    uint64_t skipped_bytes; /* before it: of the stream that was not asked for */
};

/* A thread's input and result. */
struct log_read {
    const struct daemon *daemon; /* for the path */
    struct job_id job;
    uint64_t *offsets; /* of all slots; what was read so far. The thread's while it reads */
    const struct logs_request *request; /* for those at LOG_READ_BEGIN, and its stream */
    uint32_t slots[LOG_READ_SLOTS];
    uint32_t slot_count;
    uint32_t slots_done;      /* the first of them were read to their ends */
    struct cadre_error error; /* UNAVAILABLE: the next one's log cannot be had now */
    struct log_piece pieces[LOG_READ_PIECES];
    uint32_t piece_count;
    struct log_mark marks[LOG_READ_MARKS];
    size_t mark_count;
    size_t size;
    uint8_t bytes[LOG_READ_BYTES];
};

/* In a thread. */
void log_read(struct log_read *read);

/* In a thread: the bytes of a slot's log, those in its hole included. UNAVAILABLE: the log cannot
 * be had now. */
cadre_status log_read_size(const struct daemon *daemon, struct job_id job, uint32_t slot,
    uint64_t *ret_bytes, struct cadre_error *error);

#endif
