/* SPDX-License-Identifier: Apache-2.0
 * A Unix socket that others cannot open even for a moment. */
#ifndef CADRE_WORKER_KEEPER_PRIVATE_SOCKET_H
#define CADRE_WORKER_KEEPER_PRIVATE_SOCKET_H

/* A socket of `type` bound to `path`, open to its owner only: the mode is the descriptor's before
 * the file is there. The umask would do that too, but it is the whole process's, and threads make
 * folders meanwhile. Close-on-exec, and does not block. -1: errno; ENAMETOOLONG is a path that no
 * address can hold. */
int private_socket_bind(const char *path, int type);

#endif
