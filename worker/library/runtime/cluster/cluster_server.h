/* SPDX-License-Identifier: Apache-2.0
 * The first task of a cluster runs the coordinator: a thread that serves all tasks, its own too, on
 * the task's address of the cluster, and steps the job (cluster_lead.h).
 *
 * A connection is a *stranger* until it has greeted (cluster_greeting.h): strangers are bounded in
 * number and time. Then it is the *peer* of its member id, one at a time. A connection that ends is
 * a task that is lost. Frames of programs are checked, what they do not read is bounded, and
 * whatever a program sends, only its own connection ends. */
#ifndef CADRE_RUNTIME_CLUSTER_SERVER_H
#define CADRE_RUNTIME_CLUSTER_SERVER_H

#include "worker/library/runtime/cluster/cluster_member.h"

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
