/* SPDX-License-Identifier: Apache-2.0
 * How a task's messages reach the coordinator, and its answers the task. Three peers:
 *  - local:   the program is the whole job; the coordinator's core is in this process. Direct
 *             calls, no thread, no socket: what it answers is taken right after a send.
 *  - socket:  the worker daemon's Unix socket; a thread of its own reads and reconnects.
 *  - cluster: programs that were started by hand on the addresses of a cluster
 *             (cluster/session_cluster.h). */
#ifndef CADRE_RUNTIME_SESSION_H
#define CADRE_RUNTIME_SESSION_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

/* What a session tells its owner, from the session's own thread; never while the owner is in one of
 * the session's functions. */
struct session_events {
    void (*connected)(void *user);                             /* again: say hello */
    void (*disconnected)(void *user);                          /* it is being tried again */
    void (*down)(const struct task_down *down, void *user);    /* borrowed for the call */
    void (*lost)(const struct cadre_error *error, void *user); /* for good; nothing follows */
    void (*tick)(void *user); /* about each second while connected; NULL: not wanted */
    void *user;
};

struct session {
    const struct session_ops *ops;
    /* What the coordinator calls this task; from the daemon's socket it is not known: 0. */
    uint32_t slot;
    uint64_t incarnation;
};

struct session_ops {
    const char *name;
    /* Begins to deliver events. The first `connected` is the caller's to assume. */
    cadre_status (*start)(
        struct session *session, const struct session_events *events, struct cadre_error *error);
    /* Takes a copy and never waits. What is sent while disconnected is dropped. Calls are
     * serialized by the owner. */
    void (*send)(struct session *session, const struct task_up *up);
    /* The next answer to what was sent, if the session has it at hand; valid until the next call of
     * send or take. */
    bool (*take)(struct session *session, struct task_down *ret_down);
    /* Stops the thread; NULL is allowed. Not called from an event, nor under a lock that events
     * take. */
    void (*close)(struct session *session);
};

/* The coordinator inside this process. `restored`: the position of the checkpoint that the program
 * goes on from; 0: from the beginning. */
cadre_status session_local_open(
    uint64_t restored, struct session **ret_session, struct cadre_error *error);

/* Connects and exchanges preambles: waits a bounded time; for as long as for one that was there
 * before when the daemon `returns`, which it says by CADRE_DAEMON_RETURNS. FAILED_PRECONDITION when
 * the daemon speaks other frames, UNAVAILABLE when it is not there. */
cadre_status session_socket_open(
    const char *path, bool returns, struct session **ret_session, struct cadre_error *error);

/* Over a connection that exists, on which frames may follow at once; taken over, also on error. It
 * is not made again: when it ends, or the other side refuses this task, the session is lost. `who`
 * is what errors call the other side; copied. `secret`: what keys of the mesh are mixed with, so
 * that they need not be secret on their way; NULL: they are taken as they are. */
cadre_status session_socket_adopt(int fd, const char *who, const uint8_t *secret,
    struct session **ret_session, struct cadre_error *error);

#endif
