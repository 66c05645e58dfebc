/* SPDX-License-Identifier: Apache-2.0
 * Which contents a worker may hear of and name, where a certificate says which worker it is: those
 * that jobs with tasks there need, and those that it had itself: that it brought, or was told of. A
 * hash alone is no proof of having a content. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_CONTENTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_WORKER_CONTENTS_H

#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"

struct worker_contents;

/* It has the content. Remembered for one to two hours, as long as an upload that nobody needs yet
 * stays; without memory it is not, and the worker brings the content once more. */
void worker_contents_note(struct daemon *daemon, const char *worker, const struct sha256 *hash);

/* ret_may[i]: of hashes[i] it may hear. On an error of none. */
cadre_status worker_contents_allowed(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, bool *ret_allowed, struct cadre_error *error);

/* Each of them may be named by a checkpoint of its task. What is needed by nobody and came before
 * this start of the coordinator may, too: who brought it is not known any more.
 * PERMISSION_DENIED. */
cadre_status worker_contents_check(struct daemon *daemon, const char *worker,
    const struct sha256 *hashes, size_t count, struct cadre_error *error);

void worker_contents_close(struct worker_contents *contents); /* NULL is fine */

#endif
