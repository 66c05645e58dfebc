/* SPDX-License-Identifier: Apache-2.0
 * The files that a task left in its output folder: regular ones, and no link is followed. */
#ifndef CADRE_WORKER_DAEMON_OUTPUT_LIST_H
#define CADRE_WORKER_DAEMON_OUTPUT_LIST_H

#include "common/base/error.h"
#include "common/model/limits.h"
#include "common/rpc/file_work.h"

struct output_list {
    struct task_files *task; /* NULL: cancelled, the end of the listing frees this */
    struct file_work work;   /* the listing */
    char *folder;
    char **names; /* below it */
    size_t count;
    size_t capacity;
    size_t next;  /* to be sent */
    bool refused; /* the coordinator wants the bytes of the next one */
    uint64_t sent_bytes;
    cadre_status code; /* the first failure */
    char text[LIMIT_TEXT_BYTES];
};

/* Of a task whose folder this is; NULL: no memory. */
struct output_list *output_list_new(struct task_files *task, const char *folder);
/* In a thread: however many there are. */
void output_list_fill(struct output_list *list);
void output_list_note(struct output_list *list, cadre_status code, const char *text);
void output_list_free(struct output_list *list); /* NULL is fine */

#endif
