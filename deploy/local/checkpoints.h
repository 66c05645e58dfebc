/* SPDX-License-Identifier: Apache-2.0
 * The checkpoints of `cadre run`: they lie on this machine, where their task left them; what a task
 * goes on from is found by the hash of its manifest. */
#ifndef CADRE_WORKER_LOCAL_CHECKPOINTS_H
#define CADRE_WORKER_LOCAL_CHECKPOINTS_H

#include "common/base/error.h"
#include "coordinator/engine/engine.h"

struct known_checkpoint;

struct local_checkpoints {
    char *folder; /* of all tasks, absolute; NULL: each leaves them in its output folder */
    struct known_checkpoint *known;
};

/* `folder` may be NULL; it is made if it is not there. */
cadre_status local_checkpoints_open(
    struct local_checkpoints *checkpoints, const char *folder, struct cadre_error *error);
void local_checkpoints_close(struct local_checkpoints *checkpoints);

/* The manifest with this hash lies at <folder>/<name>. */
cadre_status local_checkpoints_add(struct local_checkpoints *checkpoints,
    const uint8_t sha256[LIMIT_SHA256_BYTES], const char *folder, const char *name,
    struct cadre_error *error);

/* Where the manifest lies; the caller's to free. NOT_FOUND. */
cadre_status local_checkpoints_find(const struct local_checkpoints *checkpoints,
    const struct checkpoint_ref *checkpoint, char **ret_path, struct cadre_error *error);

/* The checkpoint whose manifest a user named; from here on it is known. NOT_FOUND,
 * INVALID_ARGUMENT. */
cadre_status local_checkpoints_read(struct local_checkpoints *checkpoints, const char *path,
    struct core_checkpoint *ret_checkpoint, struct cadre_error *error);

#endif
