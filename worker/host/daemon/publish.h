/* SPDX-License-Identifier: Apache-2.0
 * Publishes the newest checkpoint of a task at the coordinator. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_H
#define CADRE_WORKER_DAEMON_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/model/limits.h"
#include "common/model/task_message.h"

struct task_files;

/* Cancels an earlier one and publishes `part`; then calls agent_task_published once, unless this
 * one is cancelled. */
void publish_start(struct task_files *task, const struct task_part *part);
/* A new stream: queries and sends what is still missing. */
void publish_resume(struct task_files *task);
/* Stops without agent_task_published. */
void publish_cancel(struct task_files *task);

/* The files of published checkpoints in a task's output folder: the coordinator has their
 * content, so they are not sent again when the task is collected. */

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
