/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/cluster/cluster_peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"

#define READ_BYTES ((size_t)64 * 1024)

/* How many bytes may wait for a program that does not read; the rest is not buffered. */
#define UNREAD_BYTES_MAX ((size_t)2 * LIMIT_FRAME_BYTES)

#define CLOSING_US (5 * CADRE_US_PER_S)

static bool is_open(const struct cluster_peer *peer)
{
    return peer->state != PEER_ABSENT && peer->state != PEER_BROKEN;
}

void cluster_peer_flush(struct cluster_peer *peer)
{
    CADRE_ASSERT(peer->sent_bytes <= peer->unsent.size);
    while (is_open(peer) && peer->sent_bytes < peer->unsent.size) {
        ssize_t size = send(peer->fd, peer->unsent.bytes + peer->sent_bytes,
            peer->unsent.size - peer->sent_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (size >= 0) {
            peer->sent_bytes += (size_t)size;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            peer->state = PEER_BROKEN;
        }
    }
    wire_buffer_clear(&peer->unsent);
    peer->sent_bytes = 0;
    if (peer->state == PEER_CLOSING && !peer->shut) {
        /* Received bytes that were not read would make close() discard what is not sent yet. */
        peer->shut = true;
        shutdown(peer->fd, SHUT_WR);
    }
}

static void sent_more(struct cluster_peer *peer)
{
    if (peer->unsent.size - peer->sent_bytes > UNREAD_BYTES_MAX) {
        peer->state = PEER_BROKEN;
    }
    cluster_peer_flush(peer);
}

void cluster_peer_send(struct cluster_peer *peer, const void *bytes, size_t size)
{
    CADRE_ASSERT(is_open(peer));
    if (!wire_buffer_reserve(&peer->unsent, size)) {
        peer->state = PEER_BROKEN;
        return;
    }
    memcpy(peer->unsent.bytes + peer->unsent.size, bytes, size);
    peer->unsent.size += size;
    sent_more(peer);
}

void cluster_peer_send_message(struct cluster_peer *peer, const struct task_down *down)
{
    struct cadre_error error;
    if (peer->state != PEER_SERVED) {
        return;
    }
    if (frame_pack_task_down(down, &peer->unsent, &error) != CADRE_OK) {
        peer->state = PEER_BROKEN; /* it may be half a frame */
        return;
    }
    sent_more(peer);
}

void cluster_peer_finish(
    struct cluster_peer *peer, cadre_status code, const char *text, uint64_t now_us)
{
    if (code != CADRE_OK) {
        cluster_peer_send_message(peer, &(struct task_down){.type = TASK_DOWN_REFUSED,
                                            .refused = {.code = code, .text = text}});
    }
    if (is_open(peer) && peer->state != PEER_CLOSING) {
        peer->state = PEER_CLOSING;
        peer->until_us = now_us + CLOSING_US;
        cluster_peer_flush(peer);
    }
}

bool cluster_peer_read(struct cluster_peer *peer)
{
    CADRE_ASSERT(is_open(peer));
    uint8_t *room = frame_reader_room(&peer->reader, READ_BYTES);
    if (room == NULL) {
        return false;
    }
    ssize_t size = recv(peer->fd, room, READ_BYTES, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        return false;
    }
    if (size > 0 && peer->state == PEER_SERVED) {
        frame_reader_commit(&peer->reader, (size_t)size);
    }
    return size <= 0 || peer->state != PEER_WAITING;
}

void cluster_peer_close(struct cluster_peer *peer)
{
    CADRE_ASSERT(peer->state == PEER_ABSENT || peer->fd >= 0);
    if (peer->state != PEER_ABSENT) {
        close(peer->fd);
    }
    frame_reader_free(&peer->reader);
    wire_buffer_free(&peer->unsent);
    *peer = (struct cluster_peer){.state = PEER_ABSENT, .fd = -1};
}
