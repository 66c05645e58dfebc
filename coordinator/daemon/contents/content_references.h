/* SPDX-License-Identifier: Apache-2.0
 * Which contents are referenced: of each job its program and files, of each checkpoint that is kept
 * or about to be published its manifest and blocks. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_H

#include "common/base/sha256.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/base/daemon.h"

/* Compares with the jobs and checkpoints of the engine: counts new ones, and removes at once the
 * contents that are not referenced any more and were not requested lately. The first call reads all
 * manifests and removes nothing. On an error nothing was removed: UNAVAILABLE while a manifest is
 * not read; a thread reads it, and then sets daemon->references_dropped. */
cadre_status content_references_refresh(struct daemon *daemon, struct cadre_error *error);

/* Whether the blocks of some checkpoint are not known yet, or cannot be read now. NULL: no. */
bool content_references_are_incomplete(const struct content_references *content_references);
/* Whether a thread is reading manifests. */
bool content_references_are_loading(const struct content_references *content_references);

/* The engine received this part of a job: it is referenced until it, or a newer one, is published.
 * `references`, which are taken over, are those of its manifest; NULL: the manifest is read. */
void content_references_add_part(struct daemon *daemon, struct job_id job,
    const struct task_part *part, struct artifact_references *references);

/* Whether the checkpoint of the job references the content, as far as its manifest is read: see
 * content_references_refresh(). */
bool content_references_checkpoint_has(struct content_references *content_references,
    struct job_id job, const struct core_checkpoint *checkpoint, const struct sha256 *hash);

/* The bytes of the files of a job's kept checkpoints at the coordinator. Only with --job-quota;
 * else 0. */
uint64_t content_references_checkpoint_bytes(struct daemon *daemon, struct job_id job);

/* Which of these contents are referenced by jobs with a task on the worker of this name: as
 * program, file, or for a checkpoint that they keep or go on from. On an error none. */
cadre_status content_references_of_worker(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_referenced, struct cadre_error *error);

/* Whether the content was referenced at the last refresh. */
bool content_references_has(
    const struct content_references *content_references, const struct sha256 *hash);
/* NULL is allowed. */
void content_references_close(struct content_references *content_references);

/* The number of comparisons of all lookups, in all refreshes: for tests. */
uint64_t content_references_compared(const struct content_references *content_references);

#endif
