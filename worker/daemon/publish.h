/* SPDX-License-Identifier: Apache-2.0
 * Inside the publishing of a checkpoint: what is known of it before anything is sent. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_H
#define CADRE_WORKER_DAEMON_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/checkpoint/content.h"

/* A checkpoint in the output folder of a task. */
struct publish_source {
    char *folder; /* <task>/out */
    char *path;   /* of the manifest, below it */
    uint64_t manifest_bytes;
    uint8_t manifest_sha256[LIMIT_SHA256_BYTES];
    /* once it is loaded: */
    char *manifest;
    struct checkpoint_content content;
    int fd; /* of the file of tensors; -1: not open */
};

/* Reads and checks the manifest and opens its file; in a thread of the pool. */
cadre_status publish_load(struct publish_source *source, struct cadre_error *error);
void publish_source_free(struct publish_source *source);

#endif
