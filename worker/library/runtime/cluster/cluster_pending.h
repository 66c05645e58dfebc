/* SPDX-License-Identifier: Apache-2.0
 * Connections that are not authenticated yet. They are bounded in number and in time and cost a row
 * of a table each; silent ones are dropped first. */
#ifndef CADRE_RUNTIME_CLUSTER_PENDING_H
#define CADRE_RUNTIME_CLUSTER_PENDING_H

#include <poll.h>

#include "worker/library/runtime/cluster/cluster_member.h"

#define CLUSTER_PENDING_MAX        64
#define CLUSTER_PENDING_TIMEOUT_US (5 * CADRE_US_PER_S)
#define CLUSTER_PENDING_TEXT_BYTES 256

struct pending_connection {
    int fd; /* -1: the row is free */
    bool challenged;
    uint64_t since_us;
    size_t got;
    uint8_t hello_bytes[GREETING_HELLO_BYTES];
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
    uint8_t mac[GREETING_MAC_BYTES];
    struct greeting_hello hello;
};

/* A connection that is authenticated, and what its verdict is written with. */
struct authenticated_peer {
    int fd; /* the receiver's */
    uint32_t member_id;
    uint8_t hello_bytes[GREETING_HELLO_BYTES];
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
};

struct cluster_pending {
    const struct cluster_member *member;
    uint64_t restored;
    struct pending_connection rows[CLUSTER_PENDING_MAX];
    uint64_t pause_us; /* until then no connection is accepted: there was no descriptor */
    char refusal[CLUSTER_PENDING_TEXT_BYTES]; /* the last that was refused, and why; "": none */
    void (*authenticated)(const struct authenticated_peer *authenticated, void *user);
    void *user;
};

/* Borrows the member; the caller sets the callback. */
void cluster_pending_init(
    struct cluster_pending *pending, const struct cluster_member *member, uint64_t restored);
/* Closes all of them. */
void cluster_pending_clear(struct cluster_pending *pending);

/* Accepts those that wait at `listen_fd`, and serves each as far as its bytes go. */
void cluster_pending_serve(struct cluster_pending *pending, int listen_fd, uint64_t now_us);

/* Fills in their descriptors, at most CLUSTER_PENDING_MAX, returns the count; and until when to
 * wait. */
size_t cluster_pending_poll(
    const struct cluster_pending *pending, struct pollfd *polled, uint64_t *ret_until_us);

#endif
