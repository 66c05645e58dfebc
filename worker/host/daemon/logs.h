/* SPDX-License-Identifier: Apache-2.0
 * The output of tasks: kept in a file first, then sent by offset. */
#ifndef CADRE_WORKER_DAEMON_LOGS_H
#define CADRE_WORKER_DAEMON_LOGS_H

#include "common/base/error.h"
#include "common/pure/log_mark.h"

struct daemon;
struct task_files;

/* Continues the log of a task that was adopted, behind what it holds. */
cadre_status logs_reopen(struct task_files *task, struct cadre_error *error);
/* Writes output of the task, read just now from a stream; its pipes are not read until a thread has
 * written it. */
void logs_write(struct task_files *task, enum log_stream stream, const uint8_t *bytes, size_t size);
/* Stops reading the pipes of all tasks; true: all that was read is written. */
bool logs_pause_all(struct daemon *daemon);
/* A new stream: what was under way on the old one is sent again. */
void logs_linked(struct task_files *task);
/* Sends the next chunks, as far as the window allows. */
void logs_ship(struct task_files *task);
/* The same of all tasks. */
void logs_ship_all(struct daemon *daemon);
/* The same of a task that has ended: short pieces wait no longer (log_pause.h). */
void logs_ship_rest(struct task_files *task);
/* The answer to the oldest chunk under way: the bytes before `offset` are stored or dropped. */
void logs_acked(struct task_files *task, uint64_t offset);

#endif
