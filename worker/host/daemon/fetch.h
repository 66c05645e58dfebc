/* SPDX-License-Identifier: Apache-2.0
 * The contents of a task's files, from the cache of this host or from the coordinator. */
#ifndef CADRE_WORKER_DAEMON_FETCH_H
#define CADRE_WORKER_DAEMON_FETCH_H

#include "common/base/error.h"
#include "common/model/job.h"

struct task_files;

/* Fetches the contents that a task needs and that the cache lacks, one after the other; then
 * calls done(task), on the loop and once: perhaps before this returns. It is not called when the
 * fetch is cancelled or put off (retry_start), or when the link breaks: then fetch_files() is
 * called again. */
void fetch_files(struct task_files *task, void (*done)(struct task_files *task));
/* Ends a fetch without done(); nothing when there is none. */
void fetch_cancel(struct task_files *task);
/* Fetches a content of a task that runs, for the cache alone. Nothing if another one is under
 * way. */
void fetch_renew(struct task_files *task, const struct job_file *file);

/* Fetches one object of a task's files. */

/* How it ended. */
enum object_end {
    OBJECT_FETCHED, /* its content is in the cache, and task->objects has its hash */
    OBJECT_FAILED,  /* as the error says */
    OBJECT_UNLINKED /* there was no coordinator to ask: again, with the next link */
};

/* Fetches the file, an object, from its store or from the cache, and has the coordinator settle its
 * bytes. Then calls ended(task, done, ...), on the loop and once: perhaps before this returns. It
 * is not called when this is cancelled. */
void object_fetch_start(struct task_files *task, size_t file, void (*done)(struct task_files *task),
    void (*ended)(struct task_files *task, void (*done)(struct task_files *task),
        enum object_end end, const struct cadre_error *error));
/* Stops it without ended(); nothing when there is none. */
void object_fetch_cancel(struct task_files *task);

/* Restores the checkpoint that a task goes on from. */

struct task_files;

/* Fetches or checks it, if there is one; then calls done(task), on the loop and once: perhaps
 * before this returns. It is not called when this is cancelled, put off (retry_start) or fails
 * (tasks_fail). */
void restore_start(struct task_files *task, void (*done)(struct task_files *task));
/* A new stream: fetches what is still missing. */
void restore_resume(struct task_files *task);
/* Stops without done(). */
void restore_cancel(struct task_files *task);

#endif
