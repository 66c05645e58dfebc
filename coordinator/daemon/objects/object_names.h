/* SPDX-License-Identifier: Apache-2.0
 * The paths of the objects of --contents; each is made here alone. All are malloc'ed; NULL: no
 * memory. `name` NULL: the folder in which such objects lie. Beneath outputs and files the names
 * are those of the files that a coordinator with a folder has. */
#ifndef CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECT_NAMES_H
#define CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECT_NAMES_H

#include "common/base/sha256.h"
#include "common/model/ids.h"
#include "coordinator/daemon/objects/objects.h"

/* A content, by its hash. */
char *object_name_of_blob(const struct objects *objects, const uint8_t sha256[SHA256_BYTES]);
/* All that a job has. */
char *object_name_of_job(const struct objects *objects, struct job_id job);
/* "<slot>/<path>": what a task left. */
char *object_name_of_output(const struct objects *objects, struct job_id job, const char *name);
/* "<slot>/<path>": an output that is a checkpoint's file, the one of the path's last part. */
char *object_name_of_reference(const struct objects *objects, struct job_id job, const char *name);
/* Which bytes an object among the job's files has. */
char *object_name_of_settled(const struct objects *objects, struct job_id job, uint32_t file);
/* A segment of a task's log (log_segment.h). */
char *object_name_of_log(
    const struct objects *objects, struct job_id job, uint32_t slot, const char *name);
/* Which of those are the newest (log_head.h). */
char *object_name_of_log_head(const struct objects *objects, struct job_id job, uint32_t slot);
/* A piece of what the job's program reported (series_objects.h). */
char *object_name_of_series(const struct objects *objects, struct job_id job, const char *name);

#endif
