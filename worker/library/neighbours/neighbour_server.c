/* SPDX-License-Identifier: Apache-2.0
 * See neighbour_server.h: the links, the thread that waits on them, those that answer. */
#include "worker/library/neighbours/neighbour_server.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/neighbours/neighbour_map.h"
#include "worker/library/neighbours/served_link.h"

#define LINKS_MAX   256 /* one that is not in use makes room for the next */
#define THREADS_MAX 16
#define EVENTS      64

/* So often a peer that waits for its answer receives that it is on its way. */
#define WAIT_US CADRE_US_PER_S

struct neighbour_server {
    int epoll_fd;
    int wake_fd;
    struct link_listener *listener;
    bool listening; /* the listener is started */
    bool polling;   /* there is the thread that waits */
    pthread_t poller;
    struct neighbour_objects objects;
    pthread_mutex_t lock;
    pthread_cond_t queued;
    /* Under the lock. */
    bool closing;
    uint32_t references; /* of the owner, of each thread that answers */
    uint32_t threads;
    uint32_t idle_threads;
    uint64_t generation;
    uint64_t own;
    uint64_t *ids;
    uint32_t id_count;
    struct served_link *links;
    uint32_t link_count;
    struct served_link *first_queued;
    struct served_link *last_queued;
    uint32_t queued_count;
};

/* --- its end --- */

static void free_server(struct neighbour_server *server)
{
    while (server->links != NULL) {
        struct served_link *served = server->links;
        server->links = served->next;
        link_free(served->link);
        free(served);
    }
    neighbour_objects_finish(&server->objects);
    if (server->epoll_fd >= 0) {
        close(server->epoll_fd);
    }
    if (server->wake_fd >= 0) {
        close(server->wake_fd);
    }
    pthread_mutex_destroy(&server->lock);
    pthread_cond_destroy(&server->queued);
    free(server->ids);
    free(server);
}

/* Under the lock, which is given up. */
static void unreference(struct neighbour_server *server)
{
    bool last = --server->references == 0;
    pthread_mutex_unlock(&server->lock);
    if (last) {
        free_server(server);
    }
}

/* --- links, under the lock --- */

static void forget_link(struct neighbour_server *server, struct served_link *served)
{
    struct served_link **link = &server->links;
    while (*link != served) {
        link = &(*link)->next;
    }
    *link = served->next;
    server->link_count--;
    link_free(served->link); /* leaves the epoll set by that */
    free(served);
}

static void set_idle(struct neighbour_server *server, struct served_link *served)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = served};
    served->state = SERVED_IDLE;
    served->since_us = clock_monotonic_us();
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_MOD, link_fd(served->link), &event) != 0) {
        forget_link(server, served);
    }
}

/* The link that was idle for longest ends, as its peer will notice. */
static void make_room(struct neighbour_server *server)
{
    struct served_link *oldest = NULL;
    for (struct served_link *served = server->links; served != NULL; served = served->next) {
        if (served->state == SERVED_IDLE &&
            (oldest == NULL || served->since_us < oldest->since_us)) {
            oldest = served;
        }
    }
    if (oldest != NULL) {
        link_shutdown(oldest->link);
    }
}

/* The listener's thread calls it. */
static void admit(void *user, struct link *link)
{
    struct neighbour_server *server = user;
    struct served_link *served = fault_point("neighbours.admit") ? NULL : calloc(1, sizeof *served);
    pthread_mutex_lock(&server->lock);
    bool room = server->link_count < 2 * LINKS_MAX; /* those that are ending count, too */
    if (server->link_count >= LINKS_MAX) {
        make_room(server);
    }
    if (served != NULL && room) {
        struct epoll_event event = {
            .events = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT, .data.ptr = served};
        *served = (struct served_link){.link = link, .since_us = clock_monotonic_us()};
        room = epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, link_fd(link), &event) == 0;
    }
    if (served == NULL || !room) {
        free(served);
        link_free(link);
    } else {
        served->next = server->links;
        server->links = served;
        server->link_count++;
    }
    pthread_mutex_unlock(&server->lock);
}

/* --- threads that answer --- */

static bool answers(void *user, const struct link_peer *peer, const struct neighbour_ask *ask)
{
    struct neighbour_server *server = user;
    uint64_t object = neighbour_object(ask->path);
    uint64_t segment = ask->offset / NEIGHBOUR_SEGMENT_BYTES;
    pthread_mutex_lock(&server->lock);
    bool own =
        !server->closing && server->id_count > 0 && peer->incarnation == server->generation &&
        server->ids[neighbour_owner(server->ids, server->id_count, object, segment)] == server->own;
    pthread_mutex_unlock(&server->lock);
    return own;
}

static struct served_link *take_queued(struct neighbour_server *server)
{
    struct served_link *served = server->first_queued;
    if (served != NULL) {
        server->first_queued = served->next_queued;
        server->last_queued = server->first_queued == NULL ? NULL : server->last_queued;
        server->queued_count--;
    }
    return served;
}

static void *answer_loop(void *argument)
{
    struct neighbour_server *server = argument;
    uint8_t *piece = malloc(NEIGHBOUR_PIECE_BYTES);
    const struct served_terms terms = {.lock = &server->lock,
        .objects = &server->objects,
        .answers = answers,
        .user = server,
        .piece = piece};
    crash_thread("neighbour", 0);
    pthread_mutex_lock(&server->lock);
    while (!server->closing) {
        struct served_link *served = take_queued(server);
        if (served == NULL) {
            server->idle_threads++;
            pthread_cond_wait(&server->queued, &server->lock);
            server->idle_threads--;
            continue;
        }
        pthread_mutex_unlock(&server->lock);
        bool goes_on = piece != NULL && served_link_serve(served, &terms);
        pthread_mutex_lock(&server->lock);
        if (goes_on && !server->closing) {
            set_idle(server, served);
        } else {
            forget_link(server, served);
        }
    }
    free(piece);
    unreference(server);
    return NULL;
}

/* One thread more where those that wait are fewer than what waits for them. Without any the link
 * ends: the peer asks the store. */
static void queue_link(struct neighbour_server *server, struct served_link *served)
{
    pthread_t thread;
    served->state = SERVED_QUEUED;
    served->since_us = clock_monotonic_us();
    served->next_queued = NULL;
    if (server->last_queued != NULL) {
        server->last_queued->next_queued = served;
    } else {
        server->first_queued = served;
    }
    server->last_queued = served;
    server->queued_count++;
    if (server->queued_count > server->idle_threads && server->threads < THREADS_MAX) {
        server->references++;
        if (!fault_point("neighbours.thread") && thread_start(&thread, answer_loop, server) == 0) {
            pthread_detach(thread);
            server->threads++;
        } else {
            server->references--;
        }
    }
    if (server->threads == 0) {
        take_queued(server);
        forget_link(server, served);
    }
    pthread_cond_signal(&server->queued);
}

/* --- the thread that waits --- */

/* To those who wait for an answer; returns whether there are some. */
static bool send_waits(struct neighbour_server *server)
{
    bool some = false;
    uint64_t now_us = clock_monotonic_us();
    for (struct served_link *served = server->links; served != NULL; served = served->next) {
        bool waits = served->state == SERVED_QUEUED || served->state == SERVED_READING;
        if (waits && now_us - served->since_us >= WAIT_US) {
            served->since_us = now_us;
            served_link_send_wait(served);
        }
        some = some || served->state != SERVED_IDLE;
    }
    return some;
}

static void *poll_loop(void *argument)
{
    struct neighbour_server *server = argument;
    struct epoll_event events[EVENTS];
    bool busy = false;
    crash_thread("neighbours", 0);
    for (;;) {
        int timeout_ms = busy ? (int)(WAIT_US / CADRE_US_PER_MS) : -1;
        int count = epoll_wait(server->epoll_fd, events, EVENTS, timeout_ms);
        pthread_mutex_lock(&server->lock);
        for (int i = 0; i < count && !server->closing; i++) {
            if (events[i].data.ptr != NULL) {
                queue_link(server, events[i].data.ptr);
            }
        }
        busy = send_waits(server);
        bool closing = server->closing;
        pthread_mutex_unlock(&server->lock);
        /* Behind send_waits: a link gives its object back before it is idle. */
        busy = neighbour_objects_tidy(&server->objects) || busy;
        if (closing) {
            return NULL;
        }
    }
}

/* --- from outside --- */

static cadre_status open_threads(struct neighbour_server *server, struct cadre_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->wake_fd < 0 ||
        epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, server->wake_fd, &event) != 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no descriptors to answer other tasks that ask for bytes of objects");
    }
    int errnum = thread_start(&server->poller, poll_loop, server);
    if (errnum != 0) {
        return cadre_error_errno(
            error, errnum, "start the thread that answers other tasks about objects");
    }
    server->polling = true;
    return CADRE_OK;
}

cadre_status neighbour_server_open(const char *host, const struct port_range *ports,
    struct neighbour_server **ret_server, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error)
{
    struct neighbour_server *server =
        fault_point("neighbours.open") ? NULL : calloc(1, sizeof *server);
    *ret_server = NULL;
    if (server == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to answer other tasks about objects");
    }
    server->epoll_fd = -1;
    server->wake_fd = -1;
    server->references = 1;
    neighbour_objects_init(&server->objects);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->queued, NULL);
    cadre_status status = link_listener_open(host, ports, &server->listener, ret_address, error);
    status = status == CADRE_OK ? open_threads(server, error) : status;
    if (status != CADRE_OK) {
        neighbour_server_close(server);
        return status;
    }
    *ret_server = server;
    return CADRE_OK;
}

cadre_status neighbour_server_set(struct neighbour_server *server, const struct link_terms *terms,
    const uint64_t ids[], uint32_t count, uint64_t own, struct cadre_error *error)
{
    const struct link_admission admission = {.admit = admit, .user = server};
    uint64_t *copy = calloc((size_t)count + 1, sizeof copy[0]);
    if (copy == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the tasks that ask for objects");
    }
    memcpy(copy, ids, count * sizeof copy[0]);
    pthread_mutex_lock(&server->lock);
    free(server->ids);
    server->ids = copy;
    server->id_count = count;
    server->own = own;
    server->generation = terms->incarnation;
    pthread_mutex_unlock(&server->lock);
    if (server->listening) {
        link_listener_set_terms(server->listener, terms);
        return CADRE_OK;
    }
    CADRE_TRY(link_listener_start(server->listener, terms, &admission, error));
    server->listening = true;
    return CADRE_OK;
}

void neighbour_server_close(struct neighbour_server *server)
{
    if (server == NULL) {
        return;
    }
    link_listener_close(server->listener); /* no link is admitted any more */
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    for (struct served_link *served = server->links; served != NULL; served = served->next) {
        link_shutdown(served->link);
    }
    pthread_cond_broadcast(&server->queued);
    pthread_mutex_unlock(&server->lock);
    if (server->polling) {
        (void)eventfd_write(server->wake_fd, 1);
        pthread_join(server->poller, NULL);
    }
    pthread_mutex_lock(&server->lock);
    unreference(server);
}
