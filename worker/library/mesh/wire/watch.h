/* SPDX-License-Identifier: Apache-2.0
 * The watcher: one thread for each mesh of several tasks. Shared memory has no end of file, and the
 * speaker looks at a connection only while it is in a collective, so somebody else has to notice
 * that a task is gone, or says that the mesh is. It sleeps in poll until
 *  - a link says FAULT or GOODBYE, or ends without either: that process is gone;
 *  - another host hangs up: the same, unless a collective is under way there. The speaker notices
 *    by itself then, and the watcher looks again when it is over;
 *  - the mesh has a fault, or is closed.
 * A lead task passes on to the other hosts that a task of its own closed its mesh: no collective
 * of theirs can succeed any more. */
#ifndef CADRE_WORKER_MESH_WIRE_WATCH_H
#define CADRE_WORKER_MESH_WIRE_WATCH_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/error.h"

struct host_mesh;

struct watch {
    bool running;
    pthread_t thread;
    int wake_fd; /* an eventfd */
    atomic_bool stop;
    bool postponed; /* under the fault's lock: something is to be done once the speaker is not busy
                     */
    struct pollfd *polls;
};

/* All connections stand. Nothing is started in a mesh without any. */
cadre_status mesh_watch_open(struct host_mesh *host, struct cadre_error *error);

/* Ends the thread; accepts a watch that was never opened. */
void mesh_watch_close(struct host_mesh *host);

/* The speaker has left the wire, under the fault's lock. */
void mesh_watch_resume(struct host_mesh *host);

/* Tells all other tasks that this mesh is gone, or (`reason` NULL) that it is closed in order.
 * Under the fault's lock, or when no other thread uses the mesh. */
void mesh_watch_announce_end(struct host_mesh *host, cadre_status code, const char *reason);

#endif
