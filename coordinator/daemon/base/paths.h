/* SPDX-License-Identifier: Apache-2.0
 * The paths in the state directory. Called in any thread, unless noted. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_PATHS_H
#define CADRE_COORDINATOR_DAEMON_BASE_PATHS_H

#include "coordinator/engine/engine.h"

struct daemon;

/* malloc'ed; NULL when memory is out. */
char *path_of_blob(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* The same. */
char *path_of_log(const struct daemon *daemon, struct job_id job, uint32_t slot);
/* The same. */
char *path_of_outputs(const struct daemon *daemon, struct job_id job);
/* On the loop: a thread removes the files of a forgotten job. */
void paths_remove_job(struct daemon *daemon, struct job_id job);
/* On the loop, at the start: removes what a kill left of such files. */
void paths_resume_removal(struct daemon *daemon);

#endif
