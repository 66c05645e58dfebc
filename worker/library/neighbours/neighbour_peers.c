/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_peers.h. */
#include "worker/library/neighbours/neighbour_peers.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"

#define PASSED_OVER_US (5 * CADRE_US_PER_S)
#define CONNECT_US     (3 * CADRE_US_PER_S)

/* Tasks come into a generation one after the other: one that refuses as it is still in the former
 * one is asked again, so long after this one came into it. */
#define ARRIVING_US (5 * CADRE_US_PER_S)
#define AGAIN_US    (20 * CADRE_US_PER_MS)

struct neighbour_peers *neighbour_peers_new(const struct link_terms *terms,
    const struct neighbour_member members[], uint32_t count, uint64_t own)
{
    struct neighbour_peers *peers =
        fault_point("neighbours.peers") ? NULL : calloc(1, sizeof *peers);
    if (peers == NULL) {
        return NULL;
    }
    *peers = (struct neighbour_peers){.references = 1,
        .since_us = clock_monotonic_us(),
        .terms = *terms,
        .count = count,
        .own = UINT32_MAX,
        .links_each = 1,
        .ids = calloc((size_t)count + 1, sizeof peers->ids[0]),
        .peers = calloc((size_t)count + 1, sizeof peers->peers[0])};
    if (peers->ids == NULL || peers->peers == NULL) {
        neighbour_peers_unreference(peers);
        return NULL;
    }
    uint32_t each = PEERS_LINKS_MAX / (count > 0 ? count : 1);
    peers->links_each = each < 1 ? 1 : each < PEER_LINKS_MAX ? each : PEER_LINKS_MAX;
    for (uint32_t i = 0; i < count; i++) {
        peers->ids[i] = members[i].id;
        peers->own = members[i].id == own ? i : peers->own;
        peers->peers[i].slot = (uint32_t)members[i].id;
        snprintf(peers->peers[i].address, sizeof peers->peers[i].address, "%s", members[i].address);
    }
    return peers;
}

static void close_idle(struct neighbour_peer *peer)
{
    while (peer->idle_count > 0) {
        link_free(peer->idle[--peer->idle_count]);
        peer->links--;
    }
}

void neighbour_peers_unreference(struct neighbour_peers *peers)
{
    CADRE_ASSERT(peers->references > 0);
    if (--peers->references > 0) {
        return;
    }
    for (uint32_t i = 0; peers->peers != NULL && i < peers->count; i++) {
        close_idle(&peers->peers[i]);
    }
    free(peers->peers);
    free(peers->ids);
    free(peers);
}

void neighbour_peers_retire(struct neighbour_peers *peers)
{
    peers->former = true;
    for (uint32_t i = 0; i < peers->count; i++) {
        close_idle(&peers->peers[i]);
    }
}

void neighbour_peers_stop(struct neighbour_peers *peers)
{
    for (uint32_t i = 0; i < peers->count; i++) {
        struct neighbour_peer *peer = &peers->peers[i];
        for (size_t j = 0; j < PEER_LINKS_MAX; j++) {
            if (peer->used[j] != NULL) {
                link_shutdown(peer->used[j]);
            }
        }
    }
}

static void use(struct neighbour_peer *peer, struct link *link, bool used)
{
    size_t i = 0;
    while (peer->used[i] != (used ? NULL : link)) {
        i++;
        CADRE_ASSERT(i < PEER_LINKS_MAX);
    }
    peer->used[i] = used ? link : NULL;
}

static struct link *dial(const struct neighbour_peers *peers, const struct neighbour_peer *peer,
    struct neighbour_waiters *waiters)
{
    struct cadre_error unsaid = {0};
    char who[32];
    struct link *link = NULL;
    snprintf(who, sizeof who, "task %u", peer->slot);
    for (;;) {
        pthread_mutex_unlock(&waiters->lock);
        cadre_status status =
            link_connect(&peers->terms, who, peer->address, peer->slot, CONNECT_US, &link, &unsaid);
        pthread_mutex_lock(&waiters->lock);
        bool arriving = status == CADRE_PERMISSION_DENIED &&
                        clock_monotonic_us() - peers->since_us < ARRIVING_US &&
                        !atomic_load(&waiters->stopping);
        if (!arriving) {
            return link;
        }
        (void)thread_wait_until(&waiters->changed, &waiters->lock, clock_monotonic_us() + AGAIN_US);
    }
}

/* Whether to ask it at all, now. */
static bool can_be_asked(
    const struct neighbour_peer *peer, struct neighbour_waiters *waiters, uint64_t deadline_us)
{
    uint64_t now_us = clock_monotonic_us();
    return !atomic_load(&waiters->stopping) && now_us >= peer->passed_over_until_us &&
           now_us < deadline_us;
}

struct link *neighbour_peers_take(struct neighbour_peers *peers, struct neighbour_peer *peer,
    struct neighbour_waiters *waiters, bool fresh, uint64_t deadline_us, bool *ret_fresh)
{
    while (can_be_asked(peer, waiters, deadline_us)) {
        if (fresh) {
            close_idle(peer);
        }
        *ret_fresh = peer->idle_count == 0;
        if (peer->idle_count > 0) {
            struct link *link = peer->idle[--peer->idle_count];
            use(peer, link, true);
            return link;
        }
        if (peer->links == peers->links_each) {
            (void)thread_wait_until(&waiters->changed, &waiters->lock, deadline_us);
            continue;
        }
        peer->links++;
        struct link *link = dial(peers, peer, waiters);
        if (link == NULL) {
            peer->links--;
            neighbour_peers_pass_over(peer, waiters);
            return NULL;
        }
        use(peer, link, true);
        if (atomic_load(&waiters->stopping)) {
            link_shutdown(link);
        }
        return link;
    }
    return NULL;
}

void neighbour_peers_give(struct neighbour_peers *peers, struct neighbour_peer *peer,
    struct neighbour_waiters *waiters, struct link *link, bool good)
{
    use(peer, link, false);
    if (good && !peers->former) {
        peer->idle[peer->idle_count++] = link;
    } else {
        link_free(link);
        peer->links--;
    }
    pthread_cond_broadcast(&waiters->changed);
}

void neighbour_peers_pass_over(struct neighbour_peer *peer, struct neighbour_waiters *waiters)
{
    peer->passed_over_until_us = clock_monotonic_us() + PASSED_OVER_US;
    close_idle(peer);
    pthread_cond_broadcast(&waiters->changed);
}
