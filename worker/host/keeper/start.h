/* SPDX-License-Identifier: Apache-2.0
 * Starts a keeper, and connects to one that runs already. */
#ifndef CADRE_WORKER_KEEPER_START_H
#define CADRE_WORKER_KEEPER_START_H

#include "worker/host/keeper/packed_launch.h"

/* The path of the keeper: beside the running program, else in ../libexec/cadre from there, else in
 * the folder that CADRE_LIBEXEC names, else where packages put it. The caller frees it; NULL: no
 * memory. */
char *keeper_program(void);

/* The descriptors that a keeper is started with. */
#define KEEPER_START_SOCKET 3
#define KEEPER_START_LAUNCH 4
/* The number of a parameter server's memory, in the task too; closed when there is none. */
#define KEEPER_START_MEMORY 5

/* Starts `program` for a launch; its first message comes on *ret_socket, the caller's. `memory`:
 * -1, or a descriptor that the task gets as KEEPER_START_MEMORY. `mark`: the one variable of its
 * own environment, by which it is found when it does not answer. The keeper is a child of this
 * process. */
cadre_status keeper_start(const char *program, const struct keeper_launch *launch, int memory,
    const char *mark, int *ret_socket, pid_t *ret_pid, struct cadre_error *error);

/* Connects to the keeper that listens at `path`, which must be of this process's user; *ret_socket
 * is the caller's. NOT_FOUND: none is there. */
cadre_status keeper_connect(const char *path, int *ret_socket, struct cadre_error *error);

#endif
