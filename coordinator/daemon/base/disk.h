/* SPDX-License-Identifier: Apache-2.0
 * The disk of the state directory as it fills up. With less free than --disk-reserve, what can
 * wait does and the rest is refused; the reserve is the ledger's, so that jobs go on. Without
 * any room the engine holds its turn (engine_held): jobs wait, and changes that clients request
 * are refused. Both end by themselves. */
#ifndef CADRE_COORDINATOR_DAEMON_BASE_DISK_H
#define CADRE_COORDINATOR_DAEMON_BASE_DISK_H

#include "coordinator/daemon/base/daemon.h"
#include "coordinator/engine/engine.h"

/* Starts probing: a thread of the pool probes the disk each second, and after a refusal. What was
 * granted since the probe is subtracted from what was free then. */
void disk_open(struct daemon *daemon);
/* Stops probing. */
void disk_close(struct daemon *daemon);

/* Whether so many bytes more may be kept, of a job, an upload, a log or an output: OK, and they
 * count as granted; or RESOURCE_EXHAUSTED with a message for the caller that is refused, also while
 * the object store of --contents is away. */
cadre_status disk_check(struct daemon *daemon, uint64_t bytes, struct cadre_error *error);

/* The same for a change that is written to the ledger only. */
cadre_status disk_check_ledger(struct daemon *daemon, struct cadre_error *error);

/* Whether a write failed with this errno because the disk is full. */
bool disk_is_full(int errnum);

/* At the end of a turn: true when the engine began to hold its turn since the last one, or goes on
 * (daemon->disk.held). It was logged, and the health was set. */
bool disk_flush(struct daemon *daemon);

/* ---- The paths in the state directory. Called in any thread, unless noted ---- */

struct daemon;

/* malloc'ed; NULL when memory is out. */
char *path_of_blob(const struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES]);
/* The same. */
char *path_of_log(const struct daemon *daemon, struct job_id job, uint32_t slot);
/* The same. */
char *path_of_series(const struct daemon *daemon, struct job_id job);
/* The same. */
char *path_of_outputs(const struct daemon *daemon, struct job_id job);
/* The same, of a file of the job that is an object: which bytes it has. */
char *path_of_settled(const struct daemon *daemon, struct job_id job, uint32_t file);
/* On the loop: a thread removes the files of a forgotten job. */
void paths_remove_job(struct daemon *daemon, struct job_id job);
/* On the loop, at the start: removes what a kill left of such files. */
void paths_resume_removal(struct daemon *daemon);

#endif
