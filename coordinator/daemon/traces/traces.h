/* SPDX-License-Identifier: Apache-2.0
 * Traces of jobs that run: each is a client's call, under which the tasks of a job record and send
 * spans. Nothing of it is kept, and nothing reaches the core. Called on the loop only. */
#ifndef CADRE_COORDINATOR_DAEMON_TRACES_TRACES_H
#define CADRE_COORDINATOR_DAEMON_TRACES_TRACES_H

#include "common/rpc/server.h"
#include "coordinator/engine/engine.h"

struct daemon;

/* Begins a trace, or refuses it. */
void traces_begin(
    struct daemon *daemon, struct rpc_call *call, const struct trace_request *request);
/* The call has ended, for whatever reason: its tasks stop to record. */
void traces_closed(struct daemon *daemon, struct rpc_call *call);

/* What a task recorded. One whose trace is over gets the order to stop. */
void traces_take(struct daemon *daemon, struct link_id link, struct task_ref task,
    const struct task_spans *spans);

/* A task has said hello. */
void traces_task_came(struct daemon *daemon, struct task_ref task);

#endif
