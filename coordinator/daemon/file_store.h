/* SPDX-License-Identifier: Apache-2.0
 * The files that travel: contents by hash, and what jobs left behind. */
#ifndef CADRE_COORDINATOR_DAEMON_FILE_STORE_H
#define CADRE_COORDINATOR_DAEMON_FILE_STORE_H

#include "coordinator/daemon/daemon.h"

/* OK when the content of `file` is here with the right size; else FAILED_PRECONDITION that names
 * the file. */
cadre_status file_store_check(
    struct daemon *daemon, const struct job_file *file, struct cadre_error *error);

/* Removes contents that no known job uses and nobody asked for in the last `age_us`, among them
 * uploads that were cut short. At start with 0: nobody uploads yet. */
cadre_status file_store_clean(struct daemon *daemon, uint64_t age_us, struct cadre_error *error);

/* The same while clients upload, after a job was forgotten; seldom, for it looks at every job. */
void file_store_clean_some_time(struct daemon *daemon);

#endif
