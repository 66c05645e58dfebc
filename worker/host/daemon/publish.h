/* SPDX-License-Identifier: Apache-2.0
 * The newest checkpoint of a task, to the coordinator. */
#ifndef CADRE_WORKER_DAEMON_PUBLISH_H
#define CADRE_WORKER_DAEMON_PUBLISH_H

#include "common/model/task_message.h"

struct task_files;

/* An earlier one is cancelled; then agent_task_published, once, unless this is. */
void publish_start(struct task_files *task, const struct task_part *part);
void publish_resume(struct task_files *task); /* a new stream */
void publish_cancel(struct task_files *task);

#endif
