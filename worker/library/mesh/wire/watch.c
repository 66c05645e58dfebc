/* SPDX-License-Identifier: Apache-2.0
 * The thread that notices how other tasks end (protocol, rule 17: an orderly close is no fault).
 * host.c starts it when all connections are established, and ends it at closing. */
#include "worker/library/mesh/wire/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/thread.h"
#include "worker/library/crash/crash.h"
#include "worker/library/mesh/wire/fault.h"
#include "worker/library/mesh/wire/wire_state.h"

/* Indices in `polls`: the own descriptors, then the links, then the hosts. */
enum { AT_WAKE, AT_FAULT, AT_LINKS };

static uint32_t host_count(const struct host_mesh *host)
{
    return host->wire != NULL ? host->wire->host_count : 0;
}

/* The frame of a task's end; returns its bytes. */
static size_t mesh_watch_compose(const struct host_mesh *host, uint32_t rank, cadre_status code,
    const char *reason, uint8_t ret_bytes[WIRE_FRAME_BYTES + WIRE_REASON_BYTES])
{
    size_t length = reason != NULL ? strnlen(reason, WIRE_REASON_BYTES - 1) : 0;
    struct wire_frame frame = {
        .type = reason != NULL ? WIRE_FAULT : WIRE_GOODBYE,
        .generation = host->generation,
        .nonce = host->nonce,
        .sequence = host->wire != NULL ? host->wire->sequence : 0,
        .rank = rank,
        .code = (uint32_t)code,
        .data_bytes = (uint32_t)length,
    };
    mesh_wire_frame_encode(&frame, ret_bytes);
    if (length > 0) {
        memcpy(ret_bytes + WIRE_FRAME_BYTES, reason, length);
    }
    return WIRE_FRAME_BYTES + length;
}

static void mesh_watch_exited(struct host_mesh *host, uint32_t rank)
{
    mesh_fault_raise(host, CADRE_ABORTED,
        "the task of rank %" PRIu32 " closed its connection; its process has exited",
        host_number(host, rank));
}

/* True when no more messages come from this link. */
static bool look_at_link(struct host_mesh *host, struct link *link)
{
    uint8_t bytes[WIRE_FRAME_BYTES + WIRE_REASON_BYTES];
    struct wire_frame frame;
    ssize_t came = recv(link->fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    if (came <= 0) {
        if (!link->left) {
            mesh_watch_exited(host, link->rank);
        }
        return true;
    }
    /* A message is sent in one piece. */
    size_t length = (size_t)came > WIRE_FRAME_BYTES ? (size_t)came - WIRE_FRAME_BYTES : 0;
    bool good = came >= WIRE_FRAME_BYTES && mesh_wire_frame_decode(bytes, &frame) &&
                frame.generation == host->generation && frame.nonce == host->nonce &&
                frame.rank == link->rank && frame.type != WIRE_CALL && frame.data_bytes == length;
    if (!good) {
        mesh_fault_raise(host, CADRE_DATA_LOSS,
            "the task of rank %" PRIu32 " sent something that is no frame of this mesh",
            host_number(host, link->rank));
        return true;
    }
    if (frame.type == WIRE_FAULT) {
        mesh_fault_catch(host, link->rank, &frame, bytes + WIRE_FRAME_BYTES);
        return true;
    }
    link->left = true;
    return false;
}

/* The leader must not read between the frame and its effect: it would find only the end of the
 * connection. */
static void look_at_host(struct host_mesh *host, uint32_t other)
{
    struct wire_peer *peer = &host->wire->peers[other];
    struct wire_frame frame = {.type = WIRE_CALL};
    char reason[WIRE_REASON_BYTES];
    pthread_mutex_lock(&host->fault.lock);
    if (host->fault.streams_busy || host->wire->open) {
        host->watch.postponed = true;
    } else if (!peer->hung) {
        if (!mesh_wire_read_last_frame(host->wire, other, &frame, reason)) {
            mesh_watch_exited(host, peer->rank);
        } else if (frame.type == WIRE_FAULT) {
            frame.data_bytes = (uint32_t)strlen(reason);
            mesh_fault_catch(host, peer->rank, &frame, (const uint8_t *)reason);
        }
    }
    pthread_mutex_unlock(&host->fault.lock);
}

/* Sends the other hosts which tasks of this one have left. */
static void pass_on(struct host_mesh *host)
{
    uint8_t bytes[WIRE_FRAME_BYTES + WIRE_REASON_BYTES];
    for (uint32_t i = 0; host->wire != NULL && i < host->links.count; i++) {
        struct link *link = &host->links.items[i];
        if (!link->left || link->announced) {
            continue;
        }
        pthread_mutex_lock(&host->fault.lock);
        if (host->fault.streams_busy || host->wire->open) {
            host->watch.postponed = true;
        } else if (!mesh_fault_raised(host)) {
            size_t size = mesh_watch_compose(host, link->rank, CADRE_OK, NULL, bytes);
            mesh_wire_announce_end(host->wire, bytes, size, false);
            link->announced = true;
        }
        pthread_mutex_unlock(&host->fault.lock);
    }
}

/* Hosts that hung up while the leader was busy are watched again. */
static void watch_hosts(struct host_mesh *host)
{
    struct pollfd *polls = host->watch.polls + AT_LINKS + host->links.count;
    for (uint32_t i = 0; i < host_count(host); i++) {
        polls[i] = (struct pollfd){.fd = host->wire->peers[i].fd, .events = POLLRDHUP};
    }
}

static void check_polls(struct host_mesh *host)
{
    struct watch *watch = &host->watch;
    for (uint32_t i = 0; i < host->links.count; i++) {
        struct pollfd *poll = &watch->polls[AT_LINKS + i];
        if (poll->revents != 0 && look_at_link(host, &host->links.items[i])) {
            poll->fd = -1;
        }
    }
    pass_on(host);
    for (uint32_t i = 0; i < host_count(host); i++) {
        struct pollfd *poll = &watch->polls[AT_LINKS + host->links.count + i];
        if (poll->revents != 0) {
            poll->fd = -1; /* either way: it would be ready for ever */
            look_at_host(host, i);
        }
    }
}

static void *mesh_watch_run(void *argument)
{
    struct host_mesh *host = argument;
    crash_thread("mesh watch", 0);
    struct watch *watch = &host->watch;
    nfds_t count = AT_LINKS + host->links.count + host_count(host);
    while (!atomic_load(&watch->stop) && !mesh_fault_raised(host)) {
        if (poll(watch->polls, count, -1) < 0 && errno != EINTR) {
            mesh_fault_raise(host, CADRE_INTERNAL, "poll failed with errno %d", errno);
            break;
        }
        uint64_t wakes;
        if (watch->polls[AT_WAKE].revents != 0 &&
            read(watch->wake_fd, &wakes, sizeof wakes) == (ssize_t)sizeof wakes) {
            watch_hosts(host);
        }
        check_polls(host);
    }
    return NULL;
}

cadre_status mesh_watch_open(struct host_mesh *host, struct cadre_error *error)
{
    struct watch *watch = &host->watch;
    size_t count = AT_LINKS + host->links.count + host_count(host);
    if (count == AT_LINKS) {
        return CADRE_OK;
    }
    watch->polls = calloc(count, sizeof *watch->polls);
    if (watch->polls == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to watch a mesh");
    }
    watch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->wake_fd < 0) {
        int errnum = errno;
        free(watch->polls);
        watch->polls = NULL;
        return cadre_error_errno(error, errnum, "make an eventfd for the watcher of a mesh");
    }
    watch->polls[AT_WAKE] = (struct pollfd){.fd = watch->wake_fd, .events = POLLIN};
    watch->polls[AT_FAULT] = (struct pollfd){.fd = host->fault.event_fd, .events = POLLIN};
    for (uint32_t i = 0; i < host->links.count; i++) {
        watch->polls[AT_LINKS + i] =
            (struct pollfd){.fd = host->links.items[i].fd, .events = POLLIN};
    }
    watch_hosts(host);
    int errnum =
        fault_point("mesh.watch") ? EAGAIN : thread_start(&watch->thread, mesh_watch_run, host);
    watch->running = errnum == 0;
    if (!watch->running) {
        close(watch->wake_fd);
        free(watch->polls);
        watch->polls = NULL;
        return cadre_error_errno(error, errnum, "start the watcher of a mesh");
    }
    return CADRE_OK;
}

static void mesh_watch_wake(struct watch *watch)
{
    uint64_t one = 1;
    (void)!write(watch->wake_fd, &one, sizeof one);
}

void mesh_watch_close(struct host_mesh *host)
{
    struct watch *watch = &host->watch;
    if (!watch->running) {
        return;
    }
    atomic_store(&watch->stop, true);
    mesh_watch_wake(watch);
    pthread_join(watch->thread, NULL);
    watch->running = false;
    close(watch->wake_fd);
    free(watch->polls);
    watch->polls = NULL;
}

void mesh_watch_resume(struct host_mesh *host)
{
    if (host->watch.postponed) {
        host->watch.postponed = false;
        mesh_watch_wake(&host->watch);
    }
}

void mesh_watch_announce_end(struct host_mesh *host, cadre_status code, const char *reason)
{
    uint8_t bytes[WIRE_FRAME_BYTES + WIRE_REASON_BYTES];
    size_t size = mesh_watch_compose(host, host->rank, code, reason, bytes);
    for (uint32_t i = 0; i < host->links.count; i++) {
        int fd = host->links.items[i].fd;
        if (fd >= 0) {
            (void)send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
    if (host->wire != NULL) {
        mesh_wire_announce_end(host->wire, bytes, size, true);
    }
}
