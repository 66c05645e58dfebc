/* SPDX-License-Identifier: Apache-2.0
 * How a task's messages reach the coordinator, and the coordinator's answers the task. Three peers:
 *  - local:   the program is the whole job; the coordinator's core is in this process. Direct
 *             calls, no thread, no socket: its answers are taken right after a send.
 *  - socket:  the worker daemon's Unix socket; a thread of its own reads and reconnects.
 *  - cluster: programs that were started by hand on the addresses of a cluster
 *             (cluster/session_cluster.h). */
#ifndef CADRE_RUNTIME_SESSION_H
#define CADRE_RUNTIME_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/model/task_message.h"

/* The callbacks to a session's owner, from the session's own thread; never while the owner is in
 * one of the session's functions. */
struct session_events {
    void (*connected)(void *user);                             /* again: send hello */
    void (*disconnected)(void *user);                          /* the session reconnects */
    void (*down)(const struct task_down *down, void *user);    /* borrowed for the call */
    void (*lost)(const struct cadre_error *error, void *user); /* for good; nothing follows */
    /* About each second while connected, and a tenth of one after a TASK_DOWN_TRACE or a call that
     * returned true; NULL: not called. */
    bool (*tick)(void *user);
    void *user;
};

struct session {
    const struct session_ops *ops;
    /* This task's numbers at the coordinator; 0 with a daemon's socket, over which none come. */
    uint32_t slot;
    uint64_t incarnation;
};

struct session_ops {
    const char *name;
    /* Begins to deliver events. The first `connected` is implied. */
    cadre_status (*start)(
        struct session *session, const struct session_events *events, struct cadre_error *error);
    /* Takes a copy and never waits. What is sent while disconnected is dropped. The owner
     * serializes the calls. */
    void (*send)(struct session *session, const struct task_up *up);
    /* The next answer to what was sent, if the session has it at hand; valid until the next call of
     * send or take. */
    bool (*take)(struct session *session, struct task_down *ret_down);
    /* Stops the thread; NULL is allowed. Not called from an event, nor under a lock that events
     * take. */
    void (*close)(struct session *session);
};

/* The coordinator inside this process. `restored`: the position of the checkpoint from which the
 * program goes on; 0: from the beginning. */
cadre_status session_local_open(
    uint64_t restored, struct session **ret_session, struct cadre_error *error);

/* Connects and exchanges preambles. Waits a bounded time; if the daemon `returns`
 * (CADRE_DAEMON_RETURNS), as long as for a lost connection. FAILED_PRECONDITION when the daemon
 * uses another version of the frames, UNAVAILABLE when it is absent. */
cadre_status session_socket_open(
    const char *path, bool returns, struct session **ret_session, struct cadre_error *error);

/* Over a connection that exists, on which frames may follow at once; `fd` is taken over, also on
 * error. There is no reconnection: when it ends, or the other side refuses this task, the session
 * is lost. `who` names the other side in errors; copied. `secret`: keys of the mesh are mixed with
 * it, so that they need not be secret on the wire; NULL: they are taken as they are. */
cadre_status session_socket_adopt(int fd, const char *who, const uint8_t *secret,
    struct session **ret_session, struct cadre_error *error);

/* --- session_key.c: keys of the mesh that are sent in the clear --- */

#define SESSION_KEY_BYTES 32

/* Mixes a generation's key with the secret, in place. */
void session_key_mix(const uint8_t secret[SESSION_KEY_BYTES], uint8_t key[SESSION_KEY_BYTES]);

/* --- socket_connection.c: for session_socket.c --- */

struct socket_mailbox;

/* Connects and exchanges preambles, waiting until `deadline_us` (monotonic) at most, or until
 * `stop_fd` (-1: none) becomes readable, which is CANCELLED. *ret_fd is non-blocking,
 * close-on-exec and the caller's; -1 on error. *ret_mailbox is the caller's as well
 * (socket_mailbox_close); on error it has no memory. UNAVAILABLE: no process listens, or the other
 * side closed. */
cadre_status socket_connection_open(const char *path, int stop_fd, uint64_t deadline_us,
    int *ret_fd, struct socket_mailbox *ret_mailbox, struct cadre_error *error);

#endif
