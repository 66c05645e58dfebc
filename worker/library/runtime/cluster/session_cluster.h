/* SPDX-License-Identifier: Apache-2.0
 * The session of a task of a cluster: programs that were started by hand on its addresses. The
 * first one has the coordinator's core inside and serves it on its address; all of them, including
 * that one, are connected there. A connection that is lost is not made again. */
#ifndef CADRE_RUNTIME_SESSION_CLUSTER_H
#define CADRE_RUNTIME_SESSION_CLUSTER_H

#include "worker/library/runtime/cluster/cluster_member.h"
#include "worker/library/runtime/task/session.h"

/* This task of that cluster: waits until all of its tasks are connected, as long as the cluster's
 * settings allow, DEADLINE_EXCEEDED then. `restored`: the position of the checkpoint from which the
 * program goes on; 0: from the beginning. The member is borrowed until the session is closed. */
cadre_status session_cluster_open(const struct cluster_member *member, uint64_t restored,
    struct session **ret_session, struct cadre_error *error);

/* The process ends with its session open: the last message of the first task of a cluster, such as
 * that its program failed, is still sent to the others. */
void session_cluster_exit(void);

/* --- cluster_server.c: the first task runs the coordinator, a thread that serves all tasks, its
 * own too, on the task's address of the cluster, and steps the job (cluster_lead.h).
 *
 * A connection is a *stranger* until it has greeted (cluster_greeting.h): strangers are bounded in
 * number and time. Then it is the *peer* of its member id, one at a time. A connection that ends is
 * a task that is lost. Frames of programs are checked, what they do not read is bounded, and
 * whatever a program sends, only its own connection ends. --- */

struct cluster_server;

/* Listens and starts the thread. The member is borrowed. `restored`: the position from which the
 * job goes on; 0: from the beginning. */
cadre_status cluster_server_open(const struct cluster_member *member, uint64_t restored,
    struct cluster_server **ret_server, struct cadre_error *error);

/* Sends the reason why this task leaves to those still connected, waits a moment for the last
 * messages to be read, and ends the thread. */
void cluster_server_stop(struct cluster_server *server);

/* The same, and frees it. Accepts NULL. */
void cluster_server_close(struct cluster_server *server);

#endif
