/* SPDX-License-Identifier: Apache-2.0
 * The files of published checkpoints in a task's output folder: the coordinator has their
 * content, so they are not sent again when the task is collected. */
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

/* Adds one; when memory is out its files are sent again. */
void published_add(struct published **list, const uint8_t manifest_sha256[LIMIT_SHA256_BYTES],
    const struct stat files[PUBLISHED_FILES]);
/* The hash of the manifest whose checkpoint `file` is of, if it was not changed since; or NULL. */
const uint8_t *published_find(const struct published *list, const struct stat *file);
/* Frees the list; accepts NULL. */
void published_free(struct published *list);

#endif
