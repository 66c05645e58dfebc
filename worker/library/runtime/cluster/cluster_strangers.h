/* SPDX-License-Identifier: Apache-2.0
 * Connections that have not proved yet that they belong to the cluster. They are bounded in number
 * and in time and cost a row of a table each; silent ones give way first. */
#ifndef CADRE_RUNTIME_CLUSTER_STRANGERS_H
#define CADRE_RUNTIME_CLUSTER_STRANGERS_H

#include <poll.h>

#include "worker/library/runtime/cluster/cluster_member.h"

#define STRANGERS_MAX          64
#define STRANGER_PATIENCE_US   (5 * CADRE_US_PER_S)
#define STRANGER_TROUBLE_BYTES 256

struct stranger {
    int fd; /* -1: the row is free */
    bool challenged;
    uint64_t since_us;
    size_t got;
    uint8_t hello_bytes[GREETING_HELLO_BYTES];
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
    uint8_t proof[GREETING_MAC_BYTES];
    struct greeting_hello hello;
};

/* What the verdict on one that has proved itself is written with. */
struct stranger_proved {
    int fd; /* the receiver's */
    uint32_t place;
    uint8_t hello_bytes[GREETING_HELLO_BYTES];
    uint8_t challenge[GREETING_CHALLENGE_BYTES];
};

struct cluster_strangers {
    const struct cluster_member *member;
    uint64_t restored;
    struct stranger rows[STRANGERS_MAX];
    uint64_t pause_us; /* until then nobody is taken in: there was no descriptor */
    char trouble[STRANGER_TROUBLE_BYTES]; /* the last that was refused, and why; "": none */
    void (*proved)(const struct stranger_proved *proved, void *user);
    void *user;
};

void cluster_strangers_init(
    struct cluster_strangers *strangers, const struct cluster_member *member, uint64_t restored);
void cluster_strangers_clear(struct cluster_strangers *strangers);

/* Takes in those that wait at `listen_fd`, and each as far as it goes now. */
void cluster_strangers_serve(struct cluster_strangers *strangers, int listen_fd, uint64_t now_us);

/* What to wait for: their descriptors, at most STRANGERS_MAX; how many. And until when. */
size_t cluster_strangers_poll(
    const struct cluster_strangers *strangers, struct pollfd *polled, uint64_t *ret_until_us);

#endif
