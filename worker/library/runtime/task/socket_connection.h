/* SPDX-License-Identifier: Apache-2.0
 * A connection to the worker daemon's Unix socket, up to the point where both sides have checked
 * that they use the same version of the frames. */
#ifndef CADRE_RUNTIME_SOCKET_CONNECTION_H
#define CADRE_RUNTIME_SOCKET_CONNECTION_H

#include <stdint.h>

#include "common/base/error.h"

/* Connects and exchanges preambles, waiting until `deadline_us` (monotonic) at most, or until
 * `stop_fd` (-1: none) becomes readable, which is CANCELLED. *ret_fd is non-blocking,
 * close-on-exec and the caller's; -1 on error. UNAVAILABLE: no process listens, or the other side
 * closed. */
cadre_status socket_connection_open(
    const char *path, int stop_fd, uint64_t deadline_us, int *ret_fd, struct cadre_error *error);

#endif
