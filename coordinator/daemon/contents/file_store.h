/* SPDX-License-Identifier: Apache-2.0
 * The check of contents at Submit, and the collection of unused contents. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_FILE_STORE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_FILE_STORE_H

#include "common/base/sha256.h"
#include "coordinator/daemon/base/daemon.h"

/* OK when the content of `file` is here with the right size; else FAILED_PRECONDITION that names
 * the file. */
cadre_status file_store_check(
    const struct daemon *daemon, const struct job_file *file, struct cadre_error *error);

/* Removes contents that are not referenced and were not requested in a while; seldom, because it
 * looks at every content. */
void file_store_collect_garbage(struct daemon *daemon);

/* ---- Damaged contents at the coordinator ---- */

/* The file of this hash has other bytes, or cannot be read: removes it; jobs whose checkpoints
 * reference it go on from older ones. `why` is logged. */
void damage_handle(
    struct daemon *daemon, const uint8_t sha256[LIMIT_SHA256_BYTES], const char *why);

#endif
