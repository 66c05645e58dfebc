/* SPDX-License-Identifier: Apache-2.0
 * What the programs of jobs reported, by step: kept in a file of each job by threads, so that the
 * loop never waits. Called on the loop only. */
#ifndef CADRE_COORDINATOR_DAEMON_SERIES_SERIES_JOBS_H
#define CADRE_COORDINATOR_DAEMON_SERIES_SERIES_JOBS_H

#include "common/rpc/server.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* The values of a task: when they are in the job's file the task gets TASK_DOWN_VALUES_KEPT. Until
 * then it sends them again, so those for which there is no room are dropped here. */
void series_append(struct daemon *daemon, struct link_id link, struct task_ref task,
    const struct task_values *values);

/* Answers the call with what of the job's values it asks for. */
void series_query(
    struct daemon *daemon, struct rpc_call *call, const struct metrics_request *request);
/* The client cancelled it. */
void series_query_closed(struct rpc_call *call);

/* The files of the job are being removed. */
void series_forget(struct daemon *daemon, struct job_id job);

/* Drops what no thread works on yet; called before the threads are waited for. */
void series_close(struct daemon *daemon);
/* Frees all, after that. */
void series_free(struct daemon *daemon);

#endif
