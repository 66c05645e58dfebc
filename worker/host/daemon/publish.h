/* SPDX-License-Identifier: Apache-2.0
 * Publishes the newest checkpoint of a task at the coordinator. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_H
#define CADRE_WORKER_DAEMON_PUBLISH_H

#include "common/model/task_message.h"

struct task_files;

/* Cancels an earlier one and publishes `part`; then calls agent_task_published once, unless this
 * one is cancelled. */
void publish_start(struct task_files *task, const struct task_part *part);
/* A new stream: queries and sends what is still missing. */
void publish_resume(struct task_files *task);
/* Stops without agent_task_published. */
void publish_cancel(struct task_files *task);

#endif
