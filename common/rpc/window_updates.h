/* SPDX-License-Identifier: Apache-2.0
 * The window updates of one HTTP/2 connection, kept back until something else is sent.
 * gRPC's C core answers each message with a window update in a write of its own, which wakes the
 * other end for nothing: its window is mostly open. So updates are kept here while they are few
 * bytes of window, and go in front of the next frames of another kind. No other end waits for
 * them: a window has 64 KiB at least, and what is kept back is at most
 * RPC_WINDOW_UPDATES_BYTES_MAX of it.
 * Pure: bytes in, bytes out. HTTP/2 without encryption only; of anything else nothing is kept
 * back. */
#ifndef CADRE_RPC_WINDOW_UPDATES_H
#define CADRE_RPC_WINDOW_UPDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* What the other end may be short of, for the connection and its calls together. */
#define RPC_WINDOW_UPDATES_BYTES_MAX 8192

/* Of how many calls, the connection counted as one. */
#define RPC_WINDOW_UPDATES_MAX 8

/* A frame: nine bytes of header, four of content (RFC 9113, section 6.9). */
#define RPC_WINDOW_UPDATE_BYTES 13

struct rpc_window_updates {
    /* the frames that are sent: of the present one */
    uint8_t header[9];
    uint8_t header_bytes;
    uint8_t preface_bytes; /* of the client's, still to come */
    bool begun, foreign;
    uint32_t left; /* of its content */

    /* what is kept back */
    struct {
        uint32_t stream, bytes;
    } kept[RPC_WINDOW_UPDATES_MAX];
    size_t count;
    uint32_t kept_bytes; /* of window */
};

/* What is to be sent next, whole frames: true when they are window updates only and all were taken
 * over. Otherwise they are to be sent, behind rpc_window_updates_take(). */
bool rpc_window_updates_keep(
    struct rpc_window_updates *updates, const struct iovec *buffers, size_t count);

/* The frames that were kept back, one for each call; keeps none any more. Returns their bytes. */
size_t rpc_window_updates_take(struct rpc_window_updates *updates,
    uint8_t out[RPC_WINDOW_UPDATES_MAX * RPC_WINDOW_UPDATE_BYTES]);

/* The first `sent` bytes of these buffers were sent. */
void rpc_window_updates_sent(
    struct rpc_window_updates *updates, const struct iovec *buffers, size_t count, size_t sent);

#endif
