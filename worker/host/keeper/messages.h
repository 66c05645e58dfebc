/* SPDX-License-Identifier: Apache-2.0
 * Messages between a keeper and a daemon: packets of one fixed shape on a sequenced Unix socket.
 * A keeper outlives the daemon that started it, and may be adopted by one of another version:
 * the shape stays, and the version shows whether the rest is understood.
 *
 *   keeper -> daemon   HELLO  first on each connection, once the task runs: its process, with the
 *                             descriptors of enum keeper_fd
 *                      FAILED it could not be started: errno, as of launch_process; the last one
 *                      ENDED  status as of waitpid; sent again on each connection
 *                      SWEPT  no process that it started is left
 *   daemon -> keeper   SIGNAL to its whole group
 *                      END    the task is not needed any more: what is left is killed, and the
 *                             keeper exits */
#ifndef CADRE_WORKER_KEEPER_MESSAGES_H
#define CADRE_WORKER_KEEPER_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#define KEEPER_VERSION 2

enum keeper_message_type {
    KEEPER_HELLO = 1,
    KEEPER_FAILED,
    KEEPER_ENDED,
    KEEPER_SWEPT,
    KEEPER_SIGNAL = 16,
    KEEPER_END
};

struct keeper_message {
    uint32_t version; /* KEEPER_VERSION */
    uint32_t type;
    int64_t value; /* of HELLO the pid (and whether it has ended), FAILED errno, ENDED the status,
                      SIGNAL its number */
    uint32_t ended;
    uint32_t spare[3];
};

/* That come with a HELLO, in this order; the last only of a parameter server. */
enum keeper_fd {
    KEEPER_FD_STDOUT, /* the read ends: output stays in the pipes until a daemon reads it */
    KEEPER_FD_STDERR,
    KEEPER_FD_LAUNCH, /* what the task was started with (packed_launch.h) */
    KEEPER_FD_MEMORY,
    KEEPER_FDS
};

/* Sends a message; the version is filled in. 0; EAGAIN: the socket is full now; or another
 * errno: the other end has closed. Never blocks, no SIGPIPE. */
int keeper_send(int socket, const struct keeper_message *message, const int *fds, size_t fd_count);

/* Receives a message. 0; EAGAIN: there is none now; EPIPE: the other end has closed; EPROTO: not
 * a message of a keeper, or of another version; EMFILE: its descriptors did not fit into this
 * process. Those that came are the caller's, close-on-exec; the others are -1. Never blocks. */
int keeper_receive(int socket, struct keeper_message *ret_message, int ret_fds[KEEPER_FDS]);

/* A Unix socket that other users cannot open even for a moment. */

/* Binds a socket of `type` to `path`, open to its owner only: the descriptor has the mode before
 * the file exists. The umask would do that too, but it is the whole process's, and threads make
 * folders meanwhile. Close-on-exec, and does not block. -1: errno; ENAMETOOLONG is a path that
 * no address can hold. */
int private_socket_bind(const char *path, int type);

#endif
