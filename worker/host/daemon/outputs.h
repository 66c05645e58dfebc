/* SPDX-License-Identifier: Apache-2.0
 * Sends a task's outputs to the coordinator, or writes them to the job's object store; then the
 * task is collected. */
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

/* Writes what a task leaves to its job's object store, as <outputs_folder>/<job>/<slot>/<path>. */

/* Whether what the task leaves goes to an object store. */
bool object_put_is_wanted(const struct task_files *task);
/* Tries before the start of the task whether its job may write there; then ended(task, &error), on
 * the loop and once: perhaps before this returns. Not when this is cancelled. */
void object_put_check(struct task_files *task,
    void (*ended)(struct task_files *task, const struct cadre_error *error));
/* Writes the file `name` of its output folder, over one that is there; then ended(...) as above.
 * `is_file`: it is the file that is at fault, and not the store. */
void object_put_start(struct task_files *task, const char *name,
    void (*ended)(struct task_files *task, const struct cadre_error *error, bool is_file));
/* Ends both, without ended(); nothing when there is none. What was begun is not seen in the store.
 */
void object_put_cancel(struct task_files *task);
/* The files that a task left in its output folder: regular ones, and no link is followed. */

struct output_list {
    struct task_files *task; /* NULL: cancelled, the end of the listing frees this */
    struct file_work work;   /* the listing */
    char *folder;
    char **names; /* beneath the output folder */
    size_t count;
    size_t capacity;
    size_t next;    /* to be sent */
    bool refused;   /* the coordinator requires the bytes of the next one */
    bool to_store;  /* they go to the job's object store */
    bool writing;   /* the next one is on its way there */
    unsigned tries; /* the store did not answer for the next one, so often */
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
