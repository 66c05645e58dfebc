/* SPDX-License-Identifier: Apache-2.0
 * What a task is started with, as one piece of memory (a memfd) that its keeper gets, keeps, and
 * gives to a daemon that comes later: so what is known of a task lives exactly as long as its
 * keeper, and nothing of it has to be on a disk. */
#ifndef CADRE_WORKER_KEEPER_PACKED_LAUNCH_H
#define CADRE_WORKER_KEEPER_PACKED_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/host/keeper/launch.h"

struct keeper_launch {
    struct launch launch; /* its outputs are the keeper's own affair */
    const char *listen;   /* where it may be found by the next daemon; NULL: the task ends with its
                             first connection */
    uint64_t orphan_ms;   /* without a connection for so long, the task is ended */
    uint64_t grace_ms;    /* then: SIGTERM to SIGKILL */
    const void *note;     /* whatever the daemon wants to find again */
    size_t note_bytes;
};

/* *ret_fd is the caller's, close-on-exec. RESOURCE_EXHAUSTED. */
cadre_status packed_launch_make(
    const struct keeper_launch *launch, int *ret_fd, struct cadre_error *error);

/* What points into the memory that a launch was read from. */
struct packed_launch {
    struct keeper_launch launch;
    void *memory;
    size_t memory_bytes;
    char **texts; /* argv and environment, with room for one more variable */
};

/* INVALID_ARGUMENT: it is none, or was made by another version. It was made by one of us: its
 * content is believed, but not that it is whole. `fd` stays the caller's. */
cadre_status packed_launch_read(
    int fd, struct packed_launch *ret_packed, struct cadre_error *error);
void packed_launch_free(struct packed_launch *packed); /* also of {0} */

#endif
