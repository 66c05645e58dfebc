/* SPDX-License-Identifier: Apache-2.0
 * A connection to a task of the cluster, at the first task: bytes in both directions, and how it
 * ends. */
#ifndef CADRE_RUNTIME_CLUSTER_PEER_H
#define CADRE_RUNTIME_CLUSTER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/frame.h"

enum cluster_peer_state {
    PEER_ABSENT = 0,
    PEER_WAITING, /* greeted; receives the verdict when all are connected, sends nothing before */
    PEER_SERVED,  /* frames */
    PEER_CLOSING, /* the last message is queued: what is unsent is sent, then it has to close */
    PEER_BROKEN   /* to be closed at the next occasion */
};

struct cluster_peer {
    enum cluster_peer_state state;
    int fd;
    bool greeted;      /* sent hello to the coordinator */
    bool shut;         /* while leaving: nothing more will be sent */
    uint64_t until_us; /* while leaving */
    struct frame_reader reader;
    struct wire_buffer unsent;
    size_t sent_bytes; /* of `unsent` */
};

/* Sends what the socket takes now; a failure makes it BROKEN. */
void cluster_peer_flush(struct cluster_peer *peer);

/* Appends and sends. A peer that does not read becomes BROKEN. */
void cluster_peer_send(struct cluster_peer *peer, const void *bytes, size_t size);
/* Sends a message as a frame. */
void cluster_peer_send_message(struct cluster_peer *peer, const struct task_down *down);

/* Sends what is left and ends: REFUSED with code and text, unless the code is OK. */
void cluster_peer_finish(
    struct cluster_peer *peer, cadre_status code, const char *text, uint64_t now_us);

/* Reads what has arrived. False: the connection is over. */
bool cluster_peer_read(struct cluster_peer *peer);

/* Closes the socket; back to ABSENT. */
void cluster_peer_close(struct cluster_peer *peer);

#endif
