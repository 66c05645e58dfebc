/* SPDX-License-Identifier: Apache-2.0
 * The loop that moves bytes on all connections of the mesh. */
#include "worker/mesh/exchange.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/mesh/fault.h"

#define POLL_MS_MAX    UINT64_C(1000)
#define STALL_FIRST_US UINT64_C(1000000)
#define STALL_AGAIN_US UINT64_C(5000000)

void mesh_exchange_send(struct host_mesh *host, uint32_t rank, const void *data, size_t bytes)
{
    struct peer *peer = &host->peers[rank];
    if (bytes > 0) {
        CADRE_ASSERT(peer->out_count < host->local_tree.root_count + 2);
        peer->out[peer->out_count++] =
            (struct iovec){.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    }
}

void mesh_exchange_receive(struct host_mesh *host, uint32_t rank, void *data, size_t bytes)
{
    struct peer *peer = &host->peers[rank];
    if (bytes > 0) {
        CADRE_ASSERT(peer->in_count < CADRE_COUNT_OF(peer->in));
        peer->in[peer->in_count++] = (struct iovec){.iov_base = data, .iov_len = bytes};
    }
}

static bool sending(const struct peer *peer)
{
    return peer->out_at < peer->out_count;
}

static bool receiving(const struct peer *peer)
{
    return peer->in_at < peer->in_count;
}

/* Steps over `bytes` that were moved. */
static void advance(struct iovec *pieces, uint32_t *at, size_t bytes)
{
    while (bytes > 0) {
        struct iovec *piece = &pieces[*at];
        size_t step = bytes < piece->iov_len ? bytes : piece->iov_len;
        piece->iov_base = (uint8_t *)piece->iov_base + step;
        piece->iov_len -= step;
        bytes -= step;
        if (piece->iov_len == 0) {
            (*at)++;
        }
    }
}

static cadre_status closed(struct host_mesh *host, uint32_t rank)
{
    return mesh_fault_raise(host, CADRE_ABORTED,
        "the task of rank %" PRIu32 " closed its connection in collective %" PRIu64 " (%s)", rank,
        host->sequence, mesh_kind_name(host->shape.kind));
}

static bool is_gone(int errnum)
{
    return errnum == EPIPE || errnum == ECONNRESET || errnum == ENOTCONN;
}

static cadre_status broke(struct host_mesh *host, uint32_t rank, int errnum)
{
    const char *reason = strerrordesc_np(errnum);
    return mesh_fault_raise(host, CADRE_ABORTED,
        "the connection to the task of rank %" PRIu32 " failed in collective %" PRIu64 ": %s", rank,
        host->sequence, reason != NULL ? reason : "unknown error");
}

/* Sends what the connection takes. A connection that the other side closed is not an error yet: it
 * may have said why before, and that is read first. */
static cadre_status move_out(struct host_mesh *host, uint32_t rank, bool *ret_moved)
{
    struct peer *peer = &host->peers[rank];
    while (sending(peer)) {
        struct msghdr message = {
            .msg_iov = peer->out + peer->out_at, .msg_iovlen = peer->out_count - peer->out_at};
        ssize_t count = sendmsg(peer->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count > 0) {
            peer->between_frames = false;
            advance(peer->out, &peer->out_at, (size_t)count);
            *ret_moved = true;
        } else if (count < 0 && errno == EAGAIN) {
            break;
        } else if (count < 0 && is_gone(errno)) {
            peer->broken = true;
            peer->out_at = peer->out_count;
            *ret_moved = true;
        } else if (count < 0 && errno != EINTR) {
            return broke(host, rank, errno);
        }
    }
    return CADRE_OK;
}

static cadre_status move_in(struct host_mesh *host, uint32_t rank, bool *ret_moved)
{
    struct peer *peer = &host->peers[rank];
    while (receiving(peer)) {
        struct msghdr message = {
            .msg_iov = peer->in + peer->in_at, .msg_iovlen = peer->in_count - peer->in_at};
        ssize_t count = recvmsg(peer->fd, &message, MSG_DONTWAIT);
        if (count > 0) {
            advance(peer->in, &peer->in_at, (size_t)count);
            *ret_moved = true;
        } else if (count == 0 || is_gone(errno)) {
            return closed(host, rank);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            return broke(host, rank, errno);
        }
    }
    return CADRE_OK;
}

/* Checks a frame and queues its inline bytes, which follow on the same connection. */
static cadre_status read_frame(struct host_mesh *host, uint32_t rank)
{
    struct peer *peer = &host->peers[rank];
    struct frame *frame = &peer->frame;
    bool good = mesh_frame_decode(peer->frame_bytes, frame) &&
                frame->generation == host->generation && frame->nonce == host->nonce &&
                frame->rank == rank;
    size_t inline_max = frame->type == FRAME_CALL ? host->inline_max : FRAME_TEXT_BYTES - 1;
    if (!good || frame->inline_bytes > inline_max) {
        return mesh_fault_raise(host, CADRE_DATA_LOSS,
            "the task of rank %" PRIu32 " sent something that is no frame of this mesh where "
            "collective %" PRIu64 " was due",
            rank, host->sequence);
    }
    if (frame->type != FRAME_FAULT && frame->sequence != host->sequence) {
        return mesh_fault_raise(host, CADRE_INTERNAL,
            "the task of rank %" PRIu32 " is in collective %" PRIu64 ", this one in %" PRIu64, rank,
            frame->sequence, host->sequence);
    }
    mesh_exchange_receive(host, rank, peer->inlined, frame->inline_bytes);
    return CADRE_OK;
}

/* The other task's mesh is gone, and so is this one, for the same reason. */
static cadre_status catch_fault(struct host_mesh *host, uint32_t rank)
{
    const struct peer *peer = &host->peers[rank];
    cadre_status code = peer->frame.code == (uint32_t)CADRE_DEADLINE_EXCEEDED
                            ? CADRE_DEADLINE_EXCEEDED
                            : CADRE_ABORTED;
    return mesh_fault_raise(host, code, "the task of rank %" PRIu32 " ended the mesh: %.*s", rank,
        (int)peer->frame.inline_bytes, (const char *)peer->inlined);
}

/* One turn on one connection. `frames` tells that frames are being received. */
static cadre_status move(struct host_mesh *host, uint32_t rank, bool frames, bool *ret_moved)
{
    struct peer *peer = &host->peers[rank];
    CADRE_TRY(move_out(host, rank, ret_moved));
    bool was_receiving = receiving(peer);
    CADRE_TRY(move_in(host, rank, ret_moved));
    if (frames && was_receiving && peer->in_at == 1 && peer->in_count == 1) {
        CADRE_TRY(read_frame(host, rank));
        CADRE_TRY(move_in(host, rank, ret_moved));
    }
    if (frames && was_receiving && !receiving(peer) && peer->frame.type == FRAME_FAULT) {
        return catch_fault(host, rank);
    }
    if (peer->broken && !receiving(peer)) {
        return closed(host, rank);
    }
    return CADRE_OK;
}

static cadre_status overdue(struct host_mesh *host)
{
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        const struct peer *peer = &host->peers[rank];
        if (receiving(peer) || sending(peer)) {
            return mesh_fault_raise(host, CADRE_DEADLINE_EXCEEDED,
                "the task of rank %" PRIu32 " (replicas %" PRIu32 " to %" PRIu32
                ") did not come to collective %" PRIu64 " (%s) within %" PRIu64 " ms",
                rank, host->firsts[rank], host->firsts[rank + 1] - 1, host->sequence,
                mesh_kind_name(host->shape.kind), host->timeout_us / CADRE_US_PER_MS);
        }
    }
    return CADRE_OK;
}

/* Who does not say anything holds the others up more than who does not listen. */
static void tell_stall(struct host_mesh *host, uint64_t idle_us)
{
    uint32_t waited_for = UINT32_MAX;
    for (uint32_t rank = host->task_count; rank-- > 0;) {
        if (sending(&host->peers[rank]) && waited_for == UINT32_MAX) {
            waited_for = rank;
        }
    }
    for (uint32_t rank = host->task_count; rank-- > 0;) {
        if (receiving(&host->peers[rank])) {
            waited_for = rank;
        }
    }
    if (host->stalled != NULL && waited_for != UINT32_MAX) {
        host->stalled(host->stalled_user, waited_for, idle_us);
    }
}

/* Sleeps until a connection may get further, the mesh has a fault, or the time is over. */
static cadre_status wait_ready(struct host_mesh *host, uint64_t idle_us)
{
    uint64_t left_ms = POLL_MS_MAX;
    if (host->timeout_us > 0) {
        if (idle_us >= host->timeout_us) {
            return overdue(host);
        }
        left_ms = (host->timeout_us - idle_us + CADRE_US_PER_MS - 1) / CADRE_US_PER_MS;
    }
    nfds_t count = 0;
    host->polls[count++] = (struct pollfd){.fd = host->fault.event_fd, .events = POLLIN};
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        struct peer *peer = &host->peers[rank];
        peer->ready = false;
        if (sending(peer) || receiving(peer)) {
            int events = (sending(peer) ? POLLOUT : 0) | (receiving(peer) ? POLLIN : 0);
            host->polls[count++] = (struct pollfd){.fd = peer->fd, .events = (short)events};
        }
    }
    int timeout_ms = (int)(left_ms < POLL_MS_MAX ? left_ms : POLL_MS_MAX);
    if (poll(host->polls, count, timeout_ms) < 0 && errno != EINTR) {
        return mesh_fault_raise(host, CADRE_INTERNAL, "poll failed with errno %d", errno);
    }
    nfds_t at = 1;
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        struct peer *peer = &host->peers[rank];
        if (sending(peer) || receiving(peer)) {
            peer->ready = host->polls[at++].revents != 0;
        }
    }
    return CADRE_OK;
}

/* Spinning tries every connection; sleeping only those that poll named. */
static void try_all(struct host_mesh *host, bool all)
{
    for (uint32_t rank = 0; all && rank < host->task_count; rank++) {
        host->peers[rank].ready = true;
    }
}

static cadre_status run(struct host_mesh *host, bool frames)
{
    uint64_t idle_since_us = 0;
    uint64_t tell_us = 0; /* after so long without progress */
    while (true) {
        bool moved = false;
        bool pending = false;
        for (uint32_t rank = 0; rank < host->task_count; rank++) {
            struct peer *peer = &host->peers[rank];
            if (peer->ready && (sending(peer) || receiving(peer))) {
                CADRE_TRY(move(host, rank, frames, &moved));
            }
            pending = pending || sending(peer) || receiving(peer);
        }
        if (!pending) {
            return CADRE_OK;
        }
        if (mesh_fault_raised(host)) {
            return CADRE_ABORTED;
        }
        if (moved) {
            idle_since_us = 0;
            try_all(host, host->spin_us > 0);
            continue;
        }
        uint64_t now_us = clock_monotonic_us();
        if (idle_since_us == 0) {
            idle_since_us = now_us;
            tell_us = STALL_FIRST_US;
        }
        if (now_us - idle_since_us >= tell_us) {
            tell_us = now_us - idle_since_us + STALL_AGAIN_US;
            tell_stall(host, now_us - idle_since_us);
        }
        if (now_us - idle_since_us >= host->spin_us) {
            CADRE_TRY(wait_ready(host, now_us - idle_since_us));
        }
    }
}

/* Brackets a run: all connections are tried at first, and the queues are empty afterwards. */
static cadre_status run_all(struct host_mesh *host, bool frames, bool last)
{
    if (!mesh_fault_enter_streams(host)) {
        return CADRE_ABORTED;
    }
    try_all(host, true);
    cadre_status status = run(host, frames);
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        struct peer *peer = &host->peers[rank];
        if (last && !sending(peer)) {
            peer->between_frames = !peer->broken;
        }
        peer->out_at = peer->out_count = 0;
        peer->in_at = peer->in_count = 0;
    }
    mesh_fault_leave_streams(host);
    return status;
}

cadre_status mesh_exchange_run(struct host_mesh *host, bool last)
{
    return run_all(host, false, last);
}

cadre_status mesh_exchange_frames(struct host_mesh *host, const struct frame *frame, bool last)
{
    uint8_t bytes[FRAME_BYTES];
    mesh_frame_encode(frame, bytes);
    for (uint32_t rank = 0; rank < host->task_count; rank++) {
        if (rank != host->rank) {
            struct peer *peer = &host->peers[rank];
            mesh_exchange_send(host, rank, bytes, sizeof bytes);
            mesh_exchange_send(host, rank, host->inline_out, frame->inline_bytes);
            mesh_exchange_receive(host, rank, peer->frame_bytes, sizeof peer->frame_bytes);
        }
    }
    return run_all(host, true, last);
}
