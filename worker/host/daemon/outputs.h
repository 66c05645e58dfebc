/* SPDX-License-Identifier: Apache-2.0
 * Sends a task's outputs to the coordinator; then the task is collected. */
#ifndef CADRE_WORKER_DAEMON_OUTPUTS_H
#define CADRE_WORKER_DAEMON_OUTPUTS_H

#include "common/base/error.h"
#include "common/model/limits.h"
#include "common/rpc/file_work.h"

struct task_files;

/* Sends the files in the output folder, one after the other; then calls agent_task_collected. */
void outputs_start(struct task_files *task);
/* Continues after a new stream, or when the log or checkpoint that it waits for was sent. */
void outputs_resume(struct task_files *task);
/* Stops; what was begun ends without effect. */
void outputs_cancel(struct task_files *task);

/* The files that a task left in its output folder: regular ones, and no link is followed. */

struct output_list {
    struct task_files *task; /* NULL: cancelled, the end of the listing frees this */
    struct file_work work;   /* the listing */
    char *folder;
    char **names; /* beneath the output folder */
    size_t count;
    size_t capacity;
    size_t next;  /* to be sent */
    bool refused; /* the coordinator requires the bytes of the next one */
    uint64_t sent_bytes;
    cadre_status code; /* the first failure */
    char text[LIMIT_TEXT_BYTES];
};

/* A list for the output folder of a task; NULL: no memory. */
struct output_list *output_list_new(struct task_files *task, const char *folder);
/* Lists the files, in a thread because there may be many. */
void output_list_fill(struct output_list *list);
/* Keeps the first failure for the report to the coordinator. */
void output_list_note(struct output_list *list, cadre_status code, const char *text);
/* Frees the list; NULL is fine. */
void output_list_free(struct output_list *list);

#endif
