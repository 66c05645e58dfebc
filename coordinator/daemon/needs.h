/* SPDX-License-Identifier: Apache-2.0
 * Who needs which contents: each known job its program and files, each checkpoint that is kept, or
 * that is about to be published, its manifest and blocks. */
#ifndef CADRE_COORDINATOR_DAEMON_NEEDS_H
#define CADRE_COORDINATOR_DAEMON_NEEDS_H

#include "common/base/sha256.h"
#include "coordinator/daemon/daemon.h"

/* Compares with what the engine knows now: counts what came, and removes at once the contents that
 * nobody needs any more and nobody asked for lately. Built up by the first call, which removes
 * nothing. On an error nothing was removed. */
cadre_status needs_refresh(struct daemon *daemon, struct cadre_error *error);

/* The engine was given this part of a job: it is needed until it, or a later one, is published. */
void needs_note_part(struct daemon *daemon, struct job_id job, const struct task_part *part);

/* Which of these contents jobs need that have a task on the worker of this name: as program, as a
 * file, or for a checkpoint that they keep or go on from. On an error none counts as needed. */
cadre_status needs_of_worker(struct daemon *daemon, const char *worker, const struct sha256 *hashes,
    size_t count, bool *ret_needed, struct cadre_error *error);

/* As of the last refresh. */
bool needs_has(const struct needs *needs, const struct sha256 *hash);
void needs_close(struct needs *needs); /* accepts NULL */

/* How many were compared with one that was looked for, in all refreshes: for tests. */
uint64_t needs_compared(const struct needs *needs);

#endif
