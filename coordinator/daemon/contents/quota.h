/* SPDX-License-Identifier: Apache-2.0
 * How much the state directory holds, and the quotas: counted at the start, where --storage-quota,
 * --job-quota, --keep-for or --http needs it, and updated by each write and removal. The ledger is
 * not counted. At the quota the oldest jobs that ended are forgotten, with their logs and outputs;
 * jobs that have not ended never are. What still does not fit is refused. Logs are never refused:
 * each is bounded by --log-limit. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_QUOTA_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_QUOTA_H

#include "coordinator/daemon/base/daemon.h"

struct quota;

struct quota_sizes {
    uint64_t blobs_bytes; /* programs, files, checkpoints: by content */
    uint64_t logs_bytes;
    uint64_t outputs_bytes;
    uint64_t forgotten; /* jobs, to make room or because of --keep-for */
    uint64_t refused;   /* submissions, uploads, outputs and checkpoints */
};

/* After the engine and the contents were opened: walks the folders of jobs; in an object store a
 * thread lists them. */
cadre_status quota_open(struct daemon *daemon, struct cadre_error *error);
/* NULL is allowed. */
void quota_close(struct quota *quota);

/* The functions below report changes; contents are counted in contents.h. NULL quota: no option
 * needs the counts, and nothing is counted. */
/* Bytes that an upload in progress has announced; subtracted when it ends. */
void quota_add_incoming(struct quota *quota, int64_t change);
/* The logs of the job have `change` more bytes. */
void quota_log(struct quota *quota, struct job_id job, int64_t change);
/* The outputs of the job have `change` more bytes. */
void quota_output(struct quota *quota, struct job_id job, int64_t change);
/* The job was forgotten, with all its bytes. */
void quota_forget_job(struct quota *quota, struct job_id job);

/* All counts, those of contents.h included. */
struct quota_sizes quota_sizes(const struct daemon *daemon);
/* Its logs and outputs. */
uint64_t quota_job_bytes(const struct quota *quota, struct job_id job);

/* Makes room for `bytes` more (0: for something small), under --storage-quota. RESOURCE_EXHAUSTED
 * has a message for `what` with what to do. Not from inside the engine's sink. */
cadre_status quota_reserve(
    struct daemon *daemon, uint64_t bytes, const char *what, struct cadre_error *error);

/* The same under --job-quota, of a job's logs, outputs and checkpoints; `checkpoints` are the bytes
 * of its checkpoints that stay. */
cadre_status quota_reserve_job(struct daemon *daemon, struct job_id job, uint64_t bytes,
    uint64_t checkpoints, const char *what, struct cadre_error *error);

/* Forgets jobs that ended longer than --keep-for ago. */
void quota_expire_jobs(struct daemon *daemon);

#endif
