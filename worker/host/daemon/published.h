/* SPDX-License-Identifier: Apache-2.0
 * The files of published checkpoints that lie in a task's output folder: their content is at the
 * coordinator, so they need not travel once more when the task is collected. */
#ifndef CADRE_WORKER_DAEMON_PUBLISHED_H
#define CADRE_WORKER_DAEMON_PUBLISHED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/model/limits.h"

/* Manifest and tensors. */
#define PUBLISHED_FILES 2

struct published {
    struct published *next;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
    struct stat files[PUBLISHED_FILES]; /* as they were when they were read */
};

/* Remembers one; when memory is out its files travel. */
void published_add(struct published **list, const uint8_t manifest_sha256[LIMIT_SHA256_BYTES],
    const struct stat files[PUBLISHED_FILES]);
/* The hash of the manifest whose checkpoint `file` is of, if it was not changed since; or NULL. */
const uint8_t *published_find(const struct published *list, const struct stat *file);
void published_free(struct published *list); /* accepts NULL */

#endif
