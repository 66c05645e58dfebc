/* SPDX-License-Identifier: Apache-2.0
 * Where the bytes of a task's log came from, and when. */
#ifndef CADRE_PURE_LOG_MARK_H
#define CADRE_PURE_LOG_MARK_H

#include <stdint.h>

enum log_stream {
    LOG_STREAM_ANY, /* in a mark: not recorded; in a request: both */
    LOG_STREAM_STDOUT,
    LOG_STREAM_STDERR
};

/* What is true of a log from an offset on, up to the next mark. */
struct log_mark {
    uint64_t offset;
    enum log_stream stream;
    uint64_t received_us; /* wall clock of the worker that read it from the task; 0: not recorded */
};

#endif
