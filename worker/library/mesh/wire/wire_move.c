/* SPDX-License-Identifier: Apache-2.0
 * Sending and receiving bytes over the connections between hosts, waiting for them, and the faults
 * that their ends raise. wire_small.c and wire_direct.c call it for the leader, watch.c reads the
 * last frames. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/wire/wire_state.h"

#define YIELDS         30
#define POLL_MS_MAX    UINT64_C(1000)
#define STALL_FIRST_US UINT64_C(1000000)
#define STALL_AGAIN_US UINT64_C(5000000)

static cadre_status wire_move_closed(struct host_mesh *host, uint32_t from)
{
    return mesh_fault_raise(host, CADRE_ABORTED,
        "the task of rank %" PRIu32 " closed its connection in collective %" PRIu64 " (%s)",
        host_number(host, host->wire->peers[from].rank), host->wire->sequence,
        mesh_kind_name(host->wire->kind));
}

static cadre_status wire_move_departed(struct host_mesh *host, uint32_t from)
{
    return mesh_fault_raise(host, CADRE_ABORTED,
        "the task of rank %" PRIu32 " closed its mesh before collective %" PRIu64 " (%s)",
        host_number(host, host->wire->peers[from].leaver), host->wire->sequence,
        mesh_kind_name(host->wire->kind));
}

static void finish_members(struct wire_peer *peer, const struct wire_frame *frame)
{
    peer->left = true;
    peer->leaver = frame->rank;
}

cadre_status mesh_wire_check_peers(struct host_mesh *host)
{
    for (uint32_t i = 0; i < host->wire->host_count; i++) {
        if (host->wire->peers[i].left) {
            return wire_move_departed(host, i);
        }
    }
    return CADRE_OK;
}

static bool is_disconnect(int errnum)
{
    return errnum == EPIPE || errnum == ECONNRESET || errnum == ENOTCONN;
}

static cadre_status wire_move_broke(struct host_mesh *host, uint32_t from, int errnum)
{
    return mesh_fault_raise(host, CADRE_ABORTED,
        "the connection to the task of rank %" PRIu32 " failed in collective %" PRIu64 ": %s",
        host_number(host, host->wire->peers[from].rank), host->wire->sequence,
        strerrordesc_np(errnum));
}

cadre_status mesh_wire_send(struct host_mesh *host, uint32_t to, const struct iovec *pieces,
    size_t count, size_t *ret_bytes)
{
    struct wire_peer *peer = &host->wire->peers[to];
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = count};
    *ret_bytes = 0;
    ssize_t moved = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (moved > 0) {
        *ret_bytes = (size_t)moved;
    } else if (moved < 0 && is_disconnect(errno)) {
        /* Counted as sent: the reason of the end is in the bytes that can still be read. */
        peer->broken = true;
        for (size_t i = 0; i < count; i++) {
            *ret_bytes += pieces[i].iov_len;
        }
    } else if (moved < 0 && errno != EAGAIN && errno != EINTR) {
        return wire_move_broke(host, to, errno);
    }
    return CADRE_OK;
}

/* Bytes that were read too early come first. */
static size_t take_carry(struct wire_peer *peer, const struct iovec *pieces, size_t count)
{
    size_t taken = 0;
    for (size_t i = 0; i < count && peer->carry_at < peer->carry_end; i++) {
        size_t left = peer->carry_end - peer->carry_at;
        size_t bytes = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        memcpy(pieces[i].iov_base, peer->carry + peer->carry_at, bytes);
        peer->carry_at += bytes;
        taken += bytes;
    }
    if (peer->carry_at == peer->carry_end) {
        free(peer->carry);
        peer->carry = NULL;
    }
    return taken;
}

cadre_status mesh_wire_receive(struct host_mesh *host, uint32_t from, const struct iovec *pieces,
    size_t count, size_t *ret_bytes)
{
    struct wire_peer *peer = &host->wire->peers[from];
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = count};
    *ret_bytes = 0;
    if (peer->left) {
        return wire_move_departed(host, from);
    }
    if (peer->carry != NULL) {
        *ret_bytes = take_carry(peer, pieces, count);
        return CADRE_OK;
    }
    ssize_t moved = recvmsg(peer->fd, &message, MSG_DONTWAIT);
    if (moved > 0) {
        *ret_bytes = (size_t)moved;
    } else if (moved == 0 || is_disconnect(errno)) {
        return wire_move_closed(host, from);
    } else if (errno != EAGAIN && errno != EINTR) {
        return wire_move_broke(host, from, errno);
    }
    return CADRE_OK;
}

cadre_status mesh_wire_unread(
    struct host_mesh *host, uint32_t from, const uint8_t *data, size_t bytes)
{
    struct wire_peer *peer = &host->wire->peers[from];
    size_t left = peer->carry != NULL ? peer->carry_end - peer->carry_at : 0;
    uint8_t *carry = malloc(bytes + left);
    if (carry == NULL) {
        return mesh_fault_raise(host, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu bytes that came early from the task of rank %" PRIu32, bytes,
            host_number(host, peer->rank));
    }
    memcpy(carry, data, bytes);
    if (left > 0) {
        memcpy(carry + bytes, peer->carry + peer->carry_at, left);
    }
    free(peer->carry);
    peer->carry = carry;
    peer->carry_at = 0;
    peer->carry_end = bytes + left;
    return CADRE_OK;
}

/* Whether the sender is the lead task of the host, which also sends GOODBYE for the others of its
 * host. */
static bool is_of(const struct host_mesh *host, uint32_t from, const struct wire_frame *frame)
{
    bool known =
        frame->rank < host->task_count &&
        (frame->rank == host->wire->peers[from].rank ||
            (frame->type == WIRE_GOODBYE && host->topology.task_hosts[frame->rank] == from));
    return known && frame->generation == host->generation && frame->nonce == host->nonce;
}

cadre_status mesh_wire_check_frame(
    struct host_mesh *host, uint32_t from, const struct wire_frame *frame, const uint8_t *data)
{
    struct wire *wire = host->wire;
    uint32_t rank = wire->peers[from].rank;
    if (!is_of(host, from, frame)) {
        return mesh_fault_raise(host, CADRE_DATA_LOSS,
            "the task of rank %" PRIu32 " sent something that is no frame of this mesh where "
            "collective %" PRIu64 " was due",
            host_number(host, rank), wire->sequence);
    }
    if (frame->type == WIRE_FAULT) {
        return mesh_fault_catch(host, rank, frame, data);
    }
    if (frame->type == WIRE_GOODBYE) {
        finish_members(&wire->peers[from], frame);
        return wire_move_departed(host, from);
    }
    if (frame->sequence != wire->sequence) {
        return mesh_fault_raise(host, CADRE_INTERNAL,
            "the task of rank %" PRIu32 " is in collective %" PRIu64 ", this one in %" PRIu64,
            host_number(host, rank), frame->sequence, wire->sequence);
    }
    return CADRE_OK;
}

static cadre_status wire_move_overdue(struct host_mesh *host)
{
    const struct wire *wire = host->wire;
    for (uint32_t i = 0; i < wire->host_count; i++) {
        const struct wire_peer *peer = &wire->peers[i];
        const struct topology_host *other = &host->topology.hosts[i];
        if (peer->wants_in || peer->wants_out) {
            const uint32_t *replicas = mesh_topology_replicas(&host->topology, i);
            return mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
                "the task of rank %" PRIu32 " (replicas %" PRIu32 " to %" PRIu32
                ") did not come to collective %" PRIu64 " (%s) within %" PRIu64 " ms",
                host_number(host, peer->rank), replicas[0], replicas[other->slot_count - 1],
                wire->sequence, mesh_kind_name(wire->kind), wire->timeout_us / CADRE_US_PER_MS);
        }
    }
    return CADRE_OK;
}

/* A host that sends nothing is reported before one that does not receive. */
static void report_stall(struct host_mesh *host, uint64_t idle_us)
{
    const struct wire *wire = host->wire;
    uint32_t waited_for = WIRE_NO_HOST;
    for (uint32_t i = wire->host_count; i-- > 0;) {
        const struct wire_peer *peer = &wire->peers[i];
        if (peer->wants_out && waited_for == WIRE_NO_HOST) {
            waited_for = peer->rank;
        }
    }
    for (uint32_t i = wire->host_count; i-- > 0;) {
        if (wire->peers[i].wants_in) {
            waited_for = wire->peers[i].rank;
        }
    }
    if (host->stalled != NULL && waited_for != WIRE_NO_HOST) {
        host->stalled(host->stalled_user, waited_for, idle_us);
    }
}

/* A host from which nothing is due now sent bytes, or hung up. Bytes that are due later are left
 * unread; but that it has left, or why its mesh ended, is read now. */
static cadre_status look_ahead(struct host_mesh *host, uint32_t from, bool hung)
{
    struct wire_peer *peer = &host->wire->peers[from];
    uint8_t bytes[WIRE_FRAME_BYTES + WIRE_REASON_BYTES];
    struct wire_frame frame;
    peer->looked = true;
    peer->hung = peer->hung || hung;
    ssize_t came = recv(peer->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    if (peer->carry != NULL || (came < 0 && errno == EAGAIN)) {
        return CADRE_OK;
    }
    if (came <= 0) {
        return wire_move_closed(host, from);
    }
    if (came < WIRE_FRAME_BYTES || !mesh_wire_frame_decode(bytes, &frame) ||
        !is_of(host, from, &frame)) {
        return CADRE_OK;
    }
    if (frame.type == WIRE_GOODBYE) {
        finish_members(peer, &frame);
        return frame.sequence < host->wire->sequence ? wire_move_departed(host, from) : CADRE_OK;
    }
    size_t data_bytes = (size_t)came - WIRE_FRAME_BYTES;
    bool reported = frame.type == WIRE_FAULT && frame.data_bytes <= data_bytes;
    return reported ? mesh_wire_check_frame(host, from, &frame, bytes + WIRE_FRAME_BYTES)
                    : CADRE_OK;
}

/* The events to poll for on a host from which nothing is due. */
static short idle_events(const struct wire *wire, const struct wire_peer *peer)
{
    bool frames = !wire->raw && !peer->looked;
    return (short)((frames ? POLLIN : 0) | (peer->hung ? 0 : POLLRDHUP));
}

static cadre_status sleep_until_ready(struct host_mesh *host, uint64_t idle_us)
{
    struct wire *wire = host->wire;
    uint64_t left_ms = POLL_MS_MAX;
    if (wire->timeout_us > 0) {
        if (idle_us >= wire->timeout_us) {
            return wire_move_overdue(host);
        }
        uint64_t due_ms = (wire->timeout_us - idle_us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS;
        left_ms = due_ms < left_ms ? due_ms : left_ms;
    }
    nfds_t count = 0;
    wire->polls[count++] = (struct pollfd){.fd = host->fault.event_fd, .events = POLLIN};
    for (uint32_t i = 0; i < wire->host_count; i++) {
        const struct wire_peer *peer = &wire->peers[i];
        bool wants = peer->wants_in || peer->wants_out;
        int events = (peer->wants_in ? POLLIN : 0) | (peer->wants_out ? POLLOUT : 0);
        events = wants ? events : idle_events(wire, peer);
        if (peer->fd >= 0 && events != 0) {
            wire->polled[count] = i;
            wire->polls[count++] = (struct pollfd){.fd = peer->fd, .events = (short)events};
        }
    }
    if (poll(wire->polls, count, (int)left_ms) < 0 && errno != EINTR) {
        return mesh_fault_raise(host, CADRE_INTERNAL, "poll failed with errno %d", errno);
    }
    for (nfds_t i = 1; i < count; i++) {
        const struct wire_peer *peer = &wire->peers[wire->polled[i]];
        bool wants = peer->wants_in || peer->wants_out;
        int events = wire->polls[i].revents;
        if (!wants && events != 0) {
            CADRE_TRY(look_ahead(host, wire->polled[i], (events & ~POLLIN) != 0));
        }
    }
    return CADRE_OK;
}

/* When sending to a host failed and nothing is due from it, its last frame has the reason. */
static cadre_status check_broken(struct host_mesh *host)
{
    for (uint32_t i = 0; i < host->wire->host_count; i++) {
        if (host->wire->peers[i].broken && !host->wire->peers[i].wants_in) {
            CADRE_TRY(look_ahead(host, i, true));
            return wire_move_closed(host, i);
        }
    }
    return CADRE_OK;
}

cadre_status mesh_wire_wait(struct host_mesh *host, bool moved)
{
    struct wire *wire = host->wire;
    if (mesh_fault_raised(host)) {
        return CADRE_ABORTED;
    }
    if (moved) {
        wire->idle_since_us = 0;
        wire->yields = 0;
        return CADRE_OK;
    }
    if (wire->spin_us == 0 && wire->yields < YIELDS) {
        wire->yields++;
        sched_yield();
        return CADRE_OK;
    }
    uint64_t now_us = clock_monotonic_us();
    if (wire->idle_since_us == 0) {
        wire->idle_since_us = now_us;
        wire->report_at_us = STALL_FIRST_US;
        CADRE_TRY(check_broken(host));
    }
    uint64_t idle_us = now_us - wire->idle_since_us;
    if (idle_us >= wire->report_at_us) {
        wire->report_at_us = idle_us + STALL_AGAIN_US;
        report_stall(host, idle_us);
    }
    return idle_us >= wire->spin_us ? sleep_until_ready(host, idle_us) : CADRE_OK;
}

/* Reads up to `size` bytes of what is there; fewer only at the end. */
static size_t wire_move_drain(struct wire_peer *peer, uint8_t *bytes, size_t size)
{
    size_t got = 0;
    while (got < size) {
        struct iovec piece = {.iov_base = bytes + got, .iov_len = size - got};
        if (peer->carry != NULL) {
            got += take_carry(peer, &piece, 1);
            continue;
        }
        ssize_t came = recv(peer->fd, bytes + got, size - got, MSG_DONTWAIT);
        if (came < 0 && errno == EINTR) {
            continue;
        }
        if (came <= 0) {
            break;
        }
        got += (size_t)came;
    }
    return got;
}

bool mesh_wire_read_last_frame(struct wire *wire, uint32_t from, struct wire_frame *ret_frame,
    char ret_reason[WIRE_REASON_BYTES])
{
    struct wire_peer *peer = &wire->peers[from];
    uint8_t bytes[WIRE_FRAME_BYTES];
    peer->hung = true;
    while (wire_move_drain(peer, bytes, sizeof bytes) == sizeof bytes) {
        if (!mesh_wire_frame_decode(bytes, ret_frame) ||
            ret_frame->data_bytes > wire->small_bytes) {
            return false;
        }
        if (ret_frame->type == WIRE_GOODBYE) {
            finish_members(peer, ret_frame);
            return true;
        }
        /* A call that cannot be answered any more is skipped. */
        size_t rest = ret_frame->data_bytes;
        rest += ret_frame->agreement.differs ? WIRE_RECORD_BYTES : 0;
        size_t got = wire_move_drain(peer, wire->inbox, rest);
        if (ret_frame->type == WIRE_FAULT) {
            snprintf(ret_reason, WIRE_REASON_BYTES, "%.*s", (int)got, (const char *)wire->inbox);
            return true;
        }
    }
    return false;
}

void mesh_wire_announce_end(struct wire *wire, const uint8_t *frame, size_t bytes, bool ends)
{
    for (uint32_t i = 0; i < wire->host_count; i++) {
        struct wire_peer *peer = &wire->peers[i];
        if (peer->fd < 0) {
            continue;
        }
        if (peer->between && !wire->open) {
            (void)send(peer->fd, frame, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
        if (ends) {
            shutdown(peer->fd, SHUT_RDWR);
        }
    }
}
