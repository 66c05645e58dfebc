/* SPDX-License-Identifier: Apache-2.0
 * A Unix socket that other users cannot open even for a moment. */
#ifndef CADRE_WORKER_KEEPER_PRIVATE_SOCKET_H
#define CADRE_WORKER_KEEPER_PRIVATE_SOCKET_H

/* Binds a socket of `type` to `path`, open to its owner only: the descriptor has the mode before
 * the file exists. The umask would do that too, but it is the whole process's, and threads make
 * folders meanwhile. Close-on-exec, and does not block. -1: errno; ENAMETOOLONG is a path that
 * no address can hold. */
int private_socket_bind(const char *path, int type);

#endif
