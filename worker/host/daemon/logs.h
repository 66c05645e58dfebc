/* SPDX-License-Identifier: Apache-2.0
 * What tasks print: kept in a file first, then shipped by offset. */
#ifndef CADRE_WORKER_DAEMON_LOGS_H
#define CADRE_WORKER_DAEMON_LOGS_H

#include "common/base/error.h"

struct daemon;
struct task_files;

/* Of a task that was adopted: what its log holds already. */
cadre_status logs_reopen(struct task_files *task, struct cadre_error *error);
/* The task's pipes are not read any more until a thread has written it. */
void logs_write(struct task_files *task, const uint8_t *bytes, size_t size);
/* Of no task anything is read any more; true: all that was read is written. */
bool logs_pause_all(struct daemon *daemon);
void logs_linked(struct task_files *task); /* a new stream */
void logs_ship(struct task_files *task);
/* The answer to the oldest chunk under way: what lies before `offset` is stored or dropped. */
void logs_acked(struct task_files *task, uint64_t offset);

#endif
