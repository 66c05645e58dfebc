/* SPDX-License-Identifier: Apache-2.0
 * A connection to a task of the cluster, seen from the one that holds the job together: bytes in
 * both directions, and how it ends. */
#ifndef CADRE_RUNTIME_CLUSTER_PEER_H
#define CADRE_RUNTIME_CLUSTER_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/wire/frame.h"

enum cluster_peer_state {
    PEER_ABSENT = 0,
    PEER_WAITING, /* greeted; it hears the verdict when all are there, and says nothing before */
    PEER_SERVED,  /* frames */
    PEER_CLOSING, /* everything is said: what it has not read is still sent, then it has to close */
    PEER_BROKEN   /* to be closed at the next occasion */
};

struct cluster_peer {
    enum cluster_peer_state state;
    int fd;
    bool greeted;      /* said hello to the coordinator */
    bool shut;         /* while leaving: nothing more will be sent */
    uint64_t until_us; /* while leaving */
    struct frame_reader reader;
    struct wire_buffer unsent;
    size_t sent_bytes; /* of `unsent` */
};

/* Sends what the socket takes now; a failure makes it BROKEN. */
void cluster_peer_flush(struct cluster_peer *peer);

/* Appends and sends. One that does not read is BROKEN. */
void cluster_peer_send(struct cluster_peer *peer, const void *bytes, size_t size);
void cluster_peer_send_message(struct cluster_peer *peer, const struct task_down *down);

/* Says what is left and ends: REFUSED with code and text, unless the code is OK. */
void cluster_peer_finish(
    struct cluster_peer *peer, cadre_status code, const char *text, uint64_t now_us);

/* Reads what is there. False: the connection is over. */
bool cluster_peer_read(struct cluster_peer *peer);

/* Back to ABSENT. */
void cluster_peer_close(struct cluster_peer *peer);

#endif
