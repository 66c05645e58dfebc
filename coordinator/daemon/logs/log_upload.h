/* SPDX-License-Identifier: Apache-2.0
 * The files of a log as the segments that a coordinator would have put: for contents that are
 * copied from a folder into a store. In a thread; no coordinator is at work. */
#ifndef CADRE_COORDINATOR_DAEMON_LOGS_LOG_UPLOAD_H
#define CADRE_COORDINATOR_DAEMON_LOGS_LOG_UPLOAD_H

#include "common/model/ids.h"
#include "coordinator/daemon/objects/objects.h"

/* The log of a slot, whose file is at `path`, with its ".base", ".gap" and ".marks". Segments that
 * are there already stay, and others of this log, of an older state of the files, are removed. */
cadre_status log_upload(struct objects *objects, struct job_id job, uint32_t slot, const char *path,
    struct cadre_error *error);

#endif
