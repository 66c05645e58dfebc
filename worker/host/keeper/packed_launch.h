/* SPDX-License-Identifier: Apache-2.0
 * What a task is started with, as one piece of memory (a memfd) that its keeper holds, and sends
 * to a daemon that connects: so the record of a task exists exactly as long as its keeper, and
 * no file on a disk is needed. */
#ifndef CADRE_WORKER_KEEPER_PACKED_LAUNCH_H
#define CADRE_WORKER_KEEPER_PACKED_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/host/keeper/launch.h"

struct keeper_launch {
    struct launch launch; /* the keeper sets its outputs */
    const char *listen;   /* the path where the next daemon connects; NULL: the task ends with
                           * its first connection */
    uint64_t orphan_ms;   /* without a connection for so long, the task is ended */
    uint64_t grace_ms;    /* then: SIGTERM to SIGKILL */
    const void *note;     /* bytes of the daemon's, for its next incarnation */
    size_t note_bytes;
};

/* Packs a launch. *ret_fd is the caller's, close-on-exec. RESOURCE_EXHAUSTED. */
cadre_status packed_launch_make(
    const struct keeper_launch *launch, int *ret_fd, struct cadre_error *error);

/* A launch whose pointers go into the memory that it was read from. */
struct packed_launch {
    struct keeper_launch launch;
    void *memory;
    size_t memory_bytes;
    char **texts; /* argv and environment, with room for one more variable */
};

/* Reads a packed launch. INVALID_ARGUMENT: it is none, or was made by another version. A daemon
 * of ours made it: its content is not checked, but its completeness is. `fd` stays the caller's. */
cadre_status packed_launch_read(
    int fd, struct packed_launch *ret_packed, struct cadre_error *error);
/* Frees and unmaps; accepts {0}. */
void packed_launch_free(struct packed_launch *packed);

#endif
