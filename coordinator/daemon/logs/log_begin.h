/* SPDX-License-Identifier: Apache-2.0
 * Where in a log a reader begins. In a thread. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_BEGIN_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_BEGIN_H

#include "common/wire/wire.h"
#include "coordinator/daemon/base/log_hole.h"

/* A log and its marks, open; -1: there is none. */
struct log_source {
    int fd;
    int marks_fd;
    struct log_hole hole;
};

/* Whether the request includes bytes with the mark: those of no recorded stream count as stdout. */
bool log_begin_wants(const struct logs_request *request, const struct log_mark *mark);

/* The offset at which the request begins: of its tail and its time the one furthest in the log. */
uint64_t log_begin(const struct log_source *source, const struct logs_request *request);

#endif
