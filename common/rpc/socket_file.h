/* SPDX-License-Identifier: Apache-2.0
 * Inside common/rpc only: the file of a Unix socket that a server listens on, from the check
 * that no other server does to its removal. */
#ifndef CADRE_RPC_SOCKET_FILE_H
#define CADRE_RPC_SOCKET_FILE_H

#include "common/rpc/address.h"
#include "common/rpc/server.h"

#include <sys/stat.h>

struct rpc_socket_file {
    struct rpc_socket_file *next;
    char path[sizeof((struct sockaddr_un){0}.sun_path)];
    int folder_fd;    /* locked between begin and end: two servers that start at once do not remove
                         each other */
    mode_t old_umask; /* between begin and end: no client can connect before the mode is right */
    dev_t device;     /* which file is ours */
    ino_t inode;
};

/* Makes way for a socket at the address: locks its folder, and removes a socket that no server
 * listens on. ALREADY_EXISTS when one does, or when the path is something else. To be followed by
 * the bind and rpc_socket_file_end(). */
cadre_status rpc_socket_file_begin(struct rpc_socket_file *ret_socket_file,
    const struct rpc_address *address, struct cadre_error *error);

/* After the bind: sets who may connect and records which file it is. With `bound` false it only
 * releases the lock. */
cadre_status rpc_socket_file_end(struct rpc_socket_file *socket_file, bool bound,
    const struct rpc_socket_access *access, struct cadre_error *error);

/* Removes the file if it is still the one that was bound. */
void rpc_socket_file_remove(const struct rpc_socket_file *socket_file);

#endif
