/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_client.h: whom to ask, one question and its answer. */
#include "worker/library/neighbours/neighbour_client.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/neighbours/neighbour_map.h"
#include "worker/library/neighbours/neighbour_peers.h"

/* As long as one request to the store may take. */
#define READ_US (60 * CADRE_US_PER_S)

/* A task that answers says each second that it is about to. */
#define SILENT_US (10 * CADRE_US_PER_S)

struct neighbour_client {
    struct neighbour_waiters waiters;
    struct neighbour_peers *peers; /* under the lock; NULL: none yet */
    _Atomic uint64_t last_id;
};

struct neighbour_client *neighbour_client_open(void)
{
    struct neighbour_client *client =
        fault_point("neighbours.client") ? NULL : calloc(1, sizeof *client);
    if (client != NULL) {
        pthread_mutex_init(&client->waiters.lock, NULL);
        pthread_cond_init(&client->waiters.changed, NULL);
    }
    return client;
}

cadre_status neighbour_client_set(struct neighbour_client *client, const struct link_terms *terms,
    const struct neighbour_member members[], uint32_t count, uint64_t own,
    struct cadre_error *error)
{
    struct neighbour_peers *peers = neighbour_peers_new(terms, members, count, own);
    if (peers == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the tasks that are asked for objects");
    }
    pthread_mutex_lock(&client->waiters.lock);
    struct neighbour_peers *former = client->peers;
    client->peers = peers;
    if (former != NULL) {
        neighbour_peers_retire(former);
        neighbour_peers_unreference(former);
    }
    pthread_cond_broadcast(&client->waiters.changed);
    pthread_mutex_unlock(&client->waiters.lock);
    return CADRE_OK;
}

/* --- one answer --- */

struct patience {
    struct neighbour_client *client;
    uint64_t deadline_us;
};

static bool is_patient(void *user, uint64_t silent_us)
{
    const struct patience *patience = user;
    return silent_us < SILENT_US && clock_monotonic_us() < patience->deadline_us &&
           !atomic_load(&patience->client->waiters.stopping);
}

/* SILENT: nothing came, not even a part of the answer. BROKEN: what came is wrong or incomplete.
 */
enum outcome { OUTCOME_DONE, OUTCOME_REFUSED, OUTCOME_SILENT, OUTCOME_BROKEN };

static enum outcome receive_piece(
    struct link *link, const struct frame *frame, void *to, const struct link_wait *wait)
{
    struct cadre_error unsaid = {0};
    size_t bytes = (size_t)frame->bytes;
    return link_receive_bytes_while(link, to, bytes, wait, &unsaid) == CADRE_OK &&
                   crc32c(0, to, bytes) == frame->args[1]
               ? OUTCOME_DONE
               : OUTCOME_BROKEN;
}

static enum outcome exchange(struct link *link, const struct neighbour_ask *ask, uint64_t id,
    void *const places[], const struct link_wait *wait)
{
    struct cadre_error unsaid = {0};
    uint8_t name[NEIGHBOUR_NAME_BYTES];
    struct frame frame;
    neighbour_ask_write(ask, id, &frame, name);
    struct iovec piece = {.iov_base = name, .iov_len = (size_t)frame.bytes};
    if (link_send_while(link, &frame, &piece, 1, wait, &unsaid) != CADRE_OK) {
        return OUTCOME_SILENT;
    }
    bool came = false;
    for (uint64_t at = ask->offset; at < ask->offset + ask->count;) {
        if (link_receive_while(link, wait, &frame, &unsaid) != CADRE_OK) {
            return came ? OUTCOME_BROKEN : OUTCOME_SILENT;
        }
        came = true;
        enum neighbour_answer answer = neighbour_answer_read(&frame, ask, id, at);
        if (answer == ANSWER_WAIT && is_patient(wait->user, 0)) {
            continue;
        }
        if (answer != ANSWER_PIECE) {
            return answer == ANSWER_REFUSED ? OUTCOME_REFUSED : OUTCOME_BROKEN;
        }
        if (receive_piece(link, &frame, places[(at - ask->offset) / NEIGHBOUR_PIECE_BYTES], wait) !=
            OUTCOME_DONE) {
            return OUTCOME_BROKEN;
        }
        at += frame.bytes;
    }
    return OUTCOME_DONE;
}

/* --- one question --- */

/* A link that was idle may have been ended by its peer, to make room: then another one is made.
 * Under the lock. */
static bool ask_peer(struct neighbour_client *client, struct neighbour_peers *peers,
    struct neighbour_peer *peer, const struct neighbour_ask *ask, void *const places[])
{
    struct patience patience = {.client = client, .deadline_us = clock_monotonic_us() + READ_US};
    const struct link_wait wait = {.goes_on = is_patient, .user = &patience};
    enum outcome outcome = OUTCOME_SILENT;
    bool fresh = false;
    for (bool again = false; outcome == OUTCOME_SILENT && !fresh; again = true) {
        struct link *link = neighbour_peers_take(
            peers, peer, &client->waiters, again, patience.deadline_us, &fresh);
        if (link == NULL) {
            return false;
        }
        pthread_mutex_unlock(&client->waiters.lock);
        outcome = exchange(link, ask, atomic_fetch_add(&client->last_id, 1) + 1, places, &wait);
        bool ended = outcome == OUTCOME_SILENT && link_is_ended(link);
        pthread_mutex_lock(&client->waiters.lock);
        neighbour_peers_give(peers, peer, &client->waiters, link,
            outcome == OUTCOME_DONE || outcome == OUTCOME_REFUSED);
        if (!ended) {
            break;
        }
    }
    if (outcome == OUTCOME_SILENT || outcome == OUTCOME_BROKEN) {
        neighbour_peers_pass_over(peer, &client->waiters);
    }
    return outcome == OUTCOME_DONE;
}

bool neighbour_client_read(
    struct neighbour_client *client, const struct neighbour_ask *ask, void *const places[])
{
    uint64_t object = neighbour_object(ask->path);
    bool there = false;
    pthread_mutex_lock(&client->waiters.lock);
    struct neighbour_peers *peers = client->peers;
    if (peers != NULL && peers->count > 0 && !atomic_load(&client->waiters.stopping)) {
        uint32_t owner = neighbour_owner(
            peers->ids, peers->count, object, ask->offset / NEIGHBOUR_SEGMENT_BYTES);
        if (owner != peers->own) {
            peers->references++;
            there = ask_peer(client, peers, &peers->peers[owner], ask, places);
            neighbour_peers_unreference(peers);
        }
    }
    pthread_mutex_unlock(&client->waiters.lock);
    return there;
}

/* --- its end --- */

void neighbour_client_stop(struct neighbour_client *client)
{
    pthread_mutex_lock(&client->waiters.lock);
    atomic_store(&client->waiters.stopping, true);
    if (client->peers != NULL) {
        neighbour_peers_stop(client->peers);
    }
    pthread_cond_broadcast(&client->waiters.changed);
    pthread_mutex_unlock(&client->waiters.lock);
}

void neighbour_client_close(struct neighbour_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->peers != NULL) {
        neighbour_peers_retire(client->peers);
        neighbour_peers_unreference(client->peers);
    }
    pthread_mutex_destroy(&client->waiters.lock);
    pthread_cond_destroy(&client->waiters.changed);
    free(client);
}
