/* SPDX-License-Identifier: Apache-2.0
 * Which contents a worker with a certificate may see and name: those that jobs with tasks there
 * reference, and those that it had itself, because it uploaded them or MissingBlobs listed them as
 * here. A hash alone is no proof of having a content. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_CONTENTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_CONTENTS_H

#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"

struct worker_contents;

/* Records that it has the content, for one to two hours, as long as an unreferenced upload stays;
 * without memory it is not recorded, and the worker uploads the content once more. */
void worker_contents_note(struct daemon *daemon, const char *worker, const struct sha256 *hash);

/* ret_allowed[i]: the worker may see hashes[i]. On an error none. */
cadre_status worker_contents_allowed(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_allowed, struct cadre_error *error);

/* Whether a checkpoint of its task may name each of them, else PERMISSION_DENIED. Unreferenced
 * contents of before this start are allowed, too, because the worker that uploaded them is not
 * recorded. */
cadre_status worker_contents_check(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, struct cadre_error *error);

/* NULL is allowed. */
void worker_contents_close(struct worker_contents *contents);

#endif
