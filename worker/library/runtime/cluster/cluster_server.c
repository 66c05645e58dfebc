/* SPDX-License-Identifier: Apache-2.0
 * The thread of the first task: polls the listener, the strangers (cluster_pending.h) and the
 * peers (cluster_lead.h). session_cluster.c opens and closes it. */
#include "worker/library/runtime/cluster/session_cluster.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/cluster/cluster_lead.h"

#define ROWS_FIXED 2

struct cluster_server {
    const struct cluster_member *member;
    int listen_fd;
    int wake_fd;
    atomic_bool stopping;
    pthread_t thread;
    bool started;
    /* What follows is used by the thread alone. */
    struct cluster_lead lead;
    struct cluster_pending pending;
    struct pollfd *polled; /* [ROWS_FIXED + tasks + CLUSTER_PENDING_MAX] */
};

static void cluster_server_sooner(uint64_t *until_us, uint64_t other_us)
{
    *until_us = other_us < *until_us ? other_us : *until_us;
}

/* Rows: the listener, the wake descriptor, a row for each member, then strangers. */
static size_t cluster_server_watch(struct cluster_server *server, uint64_t *ret_until_us)
{
    struct pollfd *polled = server->polled;
    bool takes = server->pending.pause_us <= server->lead.now_us;
    uint64_t pending_us;
    size_t count = 0;
    *ret_until_us = cluster_lead_wake_us(&server->lead);
    polled[count++] = (struct pollfd){.fd = takes ? server->listen_fd : -1, .events = POLLIN};
    polled[count++] = (struct pollfd){.fd = server->wake_fd, .events = POLLIN};
    for (uint32_t member_id = 0; member_id < server->member->tasks; member_id++) {
        const struct cluster_peer *peer = &server->lead.peers[member_id];
        bool open = peer->state != PEER_ABSENT && peer->state != PEER_BROKEN;
        bool waits = peer->unsent.size > 0;
        polled[count++] = (struct pollfd){
            .fd = open ? peer->fd : -1, .events = (short)(POLLIN | (waits ? POLLOUT : 0))};
    }
    count += cluster_pending_poll(&server->pending, polled + count, &pending_us);
    CADRE_ASSERT(count <= ROWS_FIXED + server->member->tasks + CLUSTER_PENDING_MAX);
    if (!takes) {
        cluster_server_sooner(ret_until_us, server->pending.pause_us);
    }
    cluster_server_sooner(ret_until_us, pending_us);
    return count;
}

static int timeout_ms(uint64_t until_us, uint64_t now_us)
{
    if (until_us == UINT64_MAX) {
        return -1;
    }
    uint64_t left_ms = until_us > now_us ? (until_us - now_us) / CADRE_US_PER_MS + 1 : 0;
    return left_ms > 60000 ? 60000 : (int)left_ms;
}

static void *cluster_server_run(void *argument)
{
    struct cluster_server *server = argument;
    crash_thread("cluster", 0);
    struct cluster_lead *lead = &server->lead;
    for (;;) {
        uint64_t until_us;
        uint64_t count;
        bool stopping = atomic_load(&server->stopping);
        cluster_lead_tick(lead, clock_monotonic_us(), stopping);
        if (stopping && !cluster_lead_has_others(lead)) {
            return NULL;
        }
        count = cluster_server_watch(server, &until_us);
        poll(server->polled, count, timeout_ms(until_us, clock_monotonic_us()));
        lead->now_us = clock_monotonic_us();
        if (server->polled[1].revents != 0) {
            ssize_t size = read(server->wake_fd, &count, sizeof count);
            (void)size; /* an empty counter is as good */
        }
        for (uint32_t member_id = 0; member_id < server->member->tasks; member_id++) {
            short seen = server->polled[ROWS_FIXED + member_id].revents;
            /* A connection that ended meanwhile, and was replaced, is read in the next round. */
            if (lead->peers[member_id].fd != server->polled[ROWS_FIXED + member_id].fd) {
                continue;
            }
            if ((seen & POLLOUT) != 0) {
                cluster_peer_flush(&lead->peers[member_id]);
            }
            if ((seen & (POLLIN | POLLHUP | POLLERR)) != 0 &&
                lead->peers[member_id].state != PEER_BROKEN) {
                cluster_lead_receive(lead, member_id);
            }
        }
        cluster_pending_serve(&server->pending, server->listen_fd, lead->now_us);
    }
}

/* --- lifetime --- */

void cluster_server_stop(struct cluster_server *server)
{
    if (server->started) {
        uint64_t one = 1;
        server->started = false;
        atomic_store(&server->stopping, true);
        ssize_t written = write(server->wake_fd, &one, sizeof one);
        (void)written; /* a full counter is readable already */
        pthread_join(server->thread, NULL);
    }
}

void cluster_server_close(struct cluster_server *server)
{
    if (server == NULL) {
        return;
    }
    cluster_server_stop(server);
    cluster_pending_clear(&server->pending);
    cluster_lead_close(&server->lead);
    if (server->listen_fd >= 0) {
        close(server->listen_fd);
    }
    if (server->wake_fd >= 0) {
        close(server->wake_fd);
    }
    free(server->polled);
    free(server);
}

static cadre_status start_thread(struct cluster_server *server, struct cadre_error *error)
{
    CADRE_ASSERT(!server->started);
    int errnum = thread_start(&server->thread, cluster_server_run, server);
    server->started = errnum == 0;
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum, "start the thread of the cluster");
}

static cadre_status open_members(
    struct cluster_server *server, uint64_t restored, struct cadre_error *error)
{
    const struct cluster_member *member = server->member;
    CADRE_ASSERT(member->member_id == 0);
    cluster_pending_init(&server->pending, member, restored);
    server->pending.authenticated = cluster_lead_authenticated;
    server->pending.user = &server->lead;
    CADRE_TRY(cluster_lead_open(&server->lead, member, restored, server->pending.refusal, error));
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    server->polled =
        calloc(ROWS_FIXED + CLUSTER_PENDING_MAX + member->tasks, sizeof *server->polled);
    if (server->wake_fd < 0 || server->polled == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no descriptor or memory for the cluster");
    }
    return cluster_address_listen(
        &member->own, cluster_member_address(member, 0), &server->listen_fd, error);
}

cadre_status cluster_server_open(const struct cluster_member *member, uint64_t restored,
    struct cluster_server **ret_server, struct cadre_error *error)
{
    struct cluster_server *server = calloc(1, sizeof *server);
    *ret_server = NULL;
    if (server == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the cluster");
    }
    server->member = member;
    server->listen_fd = -1;
    server->wake_fd = -1;
    cadre_status status = open_members(server, restored, error);
    if (status == CADRE_OK) {
        status = start_thread(server, error);
    }
    if (status != CADRE_OK) {
        cluster_server_close(server);
        return status;
    }
    *ret_server = server;
    return CADRE_OK;
}
