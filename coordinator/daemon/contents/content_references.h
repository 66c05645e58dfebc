/* SPDX-License-Identifier: Apache-2.0
 * Who needs which contents: each known job its program and files, each checkpoint that is kept, or
 * that is about to be published, its manifest and blocks. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFERENCES_H

#include "common/base/sha256.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/base/daemon.h"

/* Compares with what the engine knows now: counts what came, and removes at once the contents that
 * nobody needs any more and nobody asked for lately. Built up by the first call, which reads the
 * manifests and removes nothing. On an error nothing was removed: UNAVAILABLE while a manifest is
 * not known; a thread reads it, and daemon->references_dropped says when. */
cadre_status content_references_refresh(struct daemon *daemon, struct cadre_error *error);

/* A thread is reading manifests. */
bool content_references_are_loading(const struct content_references *content_references);

/* The engine was given this part of a job: it is needed until it, or a later one, is published.
 * `mentions`, which are taken over, are what its manifest mentions; NULL: it is read. */
void content_references_add_part(struct daemon *daemon, struct job_id job,
    const struct task_part *part, struct artifact_references *references);

/* The checkpoint of the job needs the content, as far as its manifest is known: see
 * content_references_refresh().
 */
bool content_references_checkpoint_has(struct content_references *content_references,
    struct job_id job, const struct core_checkpoint *checkpoint, const struct sha256 *hash);

/* What the kept checkpoints of a job hold in the coordinator: as many bytes as their files have.
 * Only with --job-quota; else 0. */
uint64_t content_references_checkpoint_bytes(struct daemon *daemon, struct job_id job);

/* Which of these contents jobs need that have a task on the worker of this name: as program, as a
 * file, or for a checkpoint that they keep or go on from. On an error none counts as needed. */
cadre_status content_references_of_worker(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_referenced, struct cadre_error *error);

/* As of the last refresh. */
bool content_references_has(
    const struct content_references *content_references, const struct sha256 *hash);
void content_references_close(struct content_references *content_references); /* accepts NULL */

/* How many were compared with one that was looked for, in all refreshes: for tests. */
uint64_t content_references_compared(const struct content_references *content_references);

#endif
