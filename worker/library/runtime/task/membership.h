/* SPDX-License-Identifier: Apache-2.0
 * How this process becomes a member of its job: a listener for its peers and a task, then the mesh
 * of a generation. Strategies and plain programs use it. */
#ifndef CADRE_RUNTIME_MEMBERSHIP_H
#define CADRE_RUNTIME_MEMBERSHIP_H

#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/task/task.h"

/* Listens for the peers of a task that the daemon started. By hand there is no listener: NULL, and
 * the address is "". The caller closes it, after the task. */
cadre_status membership_listen(const struct environment *environment,
    struct mesh_listener **ret_listener, char ret_address[MESH_ADDRESS_BYTES],
    struct cadre_error *error);

/* Sends hello through the session, which is taken over, also on error. The slot and incarnation of
 * `identity` are the session's. */
cadre_status membership_open(struct session *session, struct task_identity identity,
    struct task **ret_task, struct cadre_error *error);

/* Called when a member has not come for so long, as mesh_config.stalled is. */
typedef void (*membership_stalled)(void *user, uint32_t rank, uint64_t waited_us);

/* What the mesh of a roster is formed with. */
struct membership {
    const struct environment *environment;
    struct mesh_listener *listener;
    struct device *const *devices; /* of the local replicas; NULL: all are on the host */
    membership_stalled stalled;    /* NULL: not called */
    void *user;
};

/* Begins to form the mesh of `roster`; the caller closes it, also when it does not form. */
cadre_status membership_post(const struct membership *membership, const struct task_roster *roster,
    struct mesh **ret_mesh, struct cadre_error *error);

/* Waits until the mesh is formed, or cannot be. */
cadre_status membership_wait(
    const struct membership *membership, struct mesh *mesh, struct cadre_error *error);

#endif
