/* SPDX-License-Identifier: Apache-2.0
 * The other tasks of one generation and the links to them, inside this folder. All calls are under
 * the client's lock, which neighbour_peers_take gives up while it waits or connects. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_PEERS_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_PEERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/neighbours/neighbour_client.h"
#include "worker/library/ps/link/link.h"

#define PEER_LINKS_MAX  8  /* to one task */
#define PEERS_LINKS_MAX 64 /* to all of them, and one to each where there are more of them */

struct neighbour_peer {
    char address[LIMIT_ADDRESS_BYTES];
    uint32_t slot;
    uint32_t links; /* open, or being opened */
    uint32_t idle_count;
    struct link *idle[PEER_LINKS_MAX];
    struct link *used[PEER_LINKS_MAX]; /* NULL: none */
    uint64_t passed_over_until_us;     /* it did not answer; 0: it did */
};

struct neighbour_peers {
    uint32_t references; /* of the client, while they are its, and of questions */
    bool former;         /* others have taken their place: no link is kept */
    uint64_t since_us;
    struct link_terms terms;
    uint32_t count;
    uint32_t own; /* the index of this task; UINT32_MAX: it is not among them */
    uint32_t links_each;
    uint64_t *ids;
    struct neighbour_peer *peers; /* [count] */
};

/* What the client and its peers have in common. */
struct neighbour_waiters {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a link is free, or a peer is passed over, or the client stops */
    atomic_bool stopping;
};

/* NULL: no memory. One reference. */
struct neighbour_peers *neighbour_peers_new(const struct link_terms *terms,
    const struct neighbour_member members[], uint32_t count, uint64_t own);
/* With the last one they are freed. */
void neighbour_peers_unreference(struct neighbour_peers *peers);
/* Others have taken their place: idle links are closed. */
void neighbour_peers_retire(struct neighbour_peers *peers);
/* Ends all links. */
void neighbour_peers_stop(struct neighbour_peers *peers);

/* A link to the peer, before the deadline; NULL: none, and it is passed over. *ret_fresh: it was
 * made for this question. */
struct link *neighbour_peers_take(struct neighbour_peers *peers, struct neighbour_peer *peer,
    struct neighbour_waiters *waiters, bool fresh, uint64_t deadline_us, bool *ret_fresh);
/* `good`: it can carry the next question. */
void neighbour_peers_give(struct neighbour_peers *peers, struct neighbour_peer *peer,
    struct neighbour_waiters *waiters, struct link *link, bool good);
/* It did not answer: for some seconds it is not asked. */
void neighbour_peers_pass_over(struct neighbour_peer *peer, struct neighbour_waiters *waiters);

#endif
