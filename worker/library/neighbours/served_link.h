/* SPDX-License-Identifier: Apache-2.0
 * One link of the server, inside this folder: what is being done with it, and one answer. */
#ifndef CADRE_WORKER_NEIGHBOURS_SERVED_LINK_H
#define CADRE_WORKER_NEIGHBOURS_SERVED_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/library/neighbours/neighbour_objects.h"
#include "worker/library/neighbours/neighbour_wire.h"

/* READING: bytes for the answer are read, and nothing is being sent. */
enum served_state { SERVED_IDLE, SERVED_QUEUED, SERVED_READING, SERVED_SENDING };

struct served_link {
    struct link *link;
    enum served_state state; /* under the server's lock */
    uint64_t since_us;       /* when it came to that state, or a WAIT was sent in it; likewise */
    struct served_link *next_queued;
    struct served_link *next;
};

/* What an answer needs of the server. */
struct served_terms {
    pthread_mutex_t *lock; /* the server's: it guards the state of links */
    struct neighbour_objects *objects;
    /* Whether this task answers that question of that peer. Any thread. */
    bool (*answers)(void *user, const struct link_peer *peer, const struct neighbour_ask *ask);
    void *user;
    uint8_t *piece; /* NEIGHBOUR_PIECE_BYTES, of the calling thread */
};

/* Reads the question that is on its way, and answers it, and those behind it that have come. False:
 * the link is of no more use. */
bool served_link_serve(struct served_link *served, const struct served_terms *terms);

/* Sends WAIT, without waiting; under the server's lock, of one that is QUEUED or READING. */
void served_link_send_wait(struct served_link *served);

#endif
