/* SPDX-License-Identifier: Apache-2.0
 * The watcher: one thread for each mesh of several tasks. Shared memory has no end of file, and the
 * leader reads a connection only while it is in a collective, so another thread has to notice that
 * a task has exited, or sent that its mesh has ended. It sleeps in poll until
 * - a link receives FAULT or GOODBYE, or ends without either: that process has exited;
 * - another host hangs up: the same, unless a collective is under way there. Then the leader
 *   notices it, and the watcher checks again when the collective is over;
 * - the mesh has a fault, or is closed.
 *
 * A lead task sends the other hosts that a task of its own closed its mesh: no collective of theirs
 * can succeed any more. */
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
    bool postponed; /* under the fault's lock: work is left for when the leader is not busy */
    struct pollfd *polls;
};

/* To be called when all connections are established. A mesh without any starts nothing. */
cadre_status mesh_watch_open(struct host_mesh *host, struct cadre_error *error);

/* Ends the thread; accepts a watch that was never opened. */
void mesh_watch_close(struct host_mesh *host);

/* The leader has left the wire; under the fault's lock. */
void mesh_watch_resume(struct host_mesh *host);

/* Sends all other tasks that this mesh has ended, or (`reason` NULL) that it is closed in order.
 * Under the fault's lock, or when no other thread uses the mesh. */
void mesh_watch_announce_end(struct host_mesh *host, cadre_status code, const char *reason);

#endif
