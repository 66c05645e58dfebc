/* SPDX-License-Identifier: Apache-2.0
 * What the programs of jobs reported, by step: kept in a file of each job by threads, so that the
 * loop never waits. Called on the loop only. */
#ifndef CADRE_COORDINATOR_DAEMON_SERIES_SERIES_JOBS_H
#define CADRE_COORDINATOR_DAEMON_SERIES_SERIES_JOBS_H

#include "coordinator/daemon/series/series_files.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* The values of a task: when they are in the job's file the task gets TASK_DOWN_VALUES_KEPT. Until
 * then it sends them again, so those for which there is no room are dropped here. */
void series_append(struct daemon *daemon, struct link_id link, struct task_ref task,
    const struct task_values *values);

/* Asks for the job's values: answer(reader, ...) is called once, after this returned, unless it is
 * cancelled before. NULL: the error, and nothing is called. NOT_FOUND: there is no such job;
 * RESOURCE_EXHAUSTED: no memory, or too many ask. */
struct series_item *series_query(struct daemon *daemon, const struct metrics_request *request,
    series_answer_fn *answer, void *reader, struct cadre_error *error);
/* The reader is gone. */
void series_query_cancel(struct series_item *item);

/* The files of the job are being removed. */
void series_forget(struct daemon *daemon, struct job_id job);

/* Drops what no thread works on yet; called before the threads are waited for. */
void series_close(struct daemon *daemon);
/* Frees all, after that. */
void series_free(struct daemon *daemon);

#endif
