/* SPDX-License-Identifier: Apache-2.0
 * The checkpoints of `cadre run`, which stay where their task left them; one to go on from is found
 * by the hash of its manifest. */
#ifndef CADRE_WORKER_LOCAL_CHECKPOINTS_H
#define CADRE_WORKER_LOCAL_CHECKPOINTS_H

#include "common/base/error.h"
#include "coordinator/engine/engine.h"

struct known_checkpoint;

struct local_checkpoints {
    /* Of all tasks, absolute, or "s3://bucket/key"; NULL: each task's output folder. */
    char *folder;
    struct known_checkpoint *known;
};

/* Begins an empty table; `folder` may be NULL, or "s3://bucket/key", and is made if it does not
 * exist. */
cadre_status local_checkpoints_open(
    struct local_checkpoints *checkpoints, const char *folder, struct cadre_error *error);
/* Frees the table; the files stay. */
void local_checkpoints_close(struct local_checkpoints *checkpoints);

/* Records the manifest with this hash at <folder>/<name>. */
cadre_status local_checkpoints_add(struct local_checkpoints *checkpoints,
    const uint8_t sha256[LIMIT_SHA256_BYTES], const char *folder, const char *name,
    struct cadre_error *error);

/* The path of the manifest; the caller frees it. NOT_FOUND. */
cadre_status local_checkpoints_find(const struct local_checkpoints *checkpoints,
    const struct checkpoint_ref *checkpoint, char **ret_path, struct cadre_error *error);

/* Reads and records the checkpoint whose manifest the user named: a file, or an object that this
 * process has the credentials for. NOT_FOUND, INVALID_ARGUMENT. */
cadre_status local_checkpoints_read(struct local_checkpoints *checkpoints, const char *path,
    struct core_checkpoint *ret_checkpoint, struct cadre_error *error);

#endif
