/* SPDX-License-Identifier: Apache-2.0
 * A thread that serves some of the connections with epoll. Started by server.c and server_copy.c;
 * runs server_connection.c. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "worker/library/crash/crash.h"
#include "worker/library/ps/server/server_internal.h"

#define EVENTS_MAX 64

static void server_loop_unlist(struct connection *connection)
{
    *connection->back = connection->next;
    if (connection->next != NULL) {
        connection->next->back = connection->back;
    }
}

static void server_loop_list(struct server_loop *loop, struct connection *connection)
{
    connection->next = loop->connections;
    connection->back = &loop->connections;
    if (connection->next != NULL) {
        connection->next->back = &connection->next;
    }
    loop->connections = connection;
}

static bool is_parked(const struct connection *connection)
{
    return connection->state == CONNECTION_PARKED || connection->state == CONNECTION_UNCONFIRMED;
}

static void server_loop_drop(struct connection *connection)
{
    if (is_parked(connection)) {
        atomic_fetch_sub(&connection->loop->server->parked, 1);
    }
    server_loop_unlist(connection);
    connection_free(connection); /* close takes it out of epoll */
}

static void server_loop_watch(struct connection *connection, uint32_t events)
{
    if (connection->watched != events) {
        struct epoll_event event = {.events = events, .data.ptr = connection};
        int fd = link_fd(connection->link);
        (void)epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_MOD, fd, &event);
        connection->watched = events;
    }
}

static void server_loop_wake(struct server_loop *loop)
{
    (void)eventfd_write(loop->wake_fd, 1);
}

static void server_loop_adopt(struct server_loop *loop, struct connection *connection)
{
    pthread_mutex_lock(&loop->lock);
    connection->loop = loop;
    connection->next = loop->incoming;
    loop->incoming = connection;
    pthread_mutex_unlock(&loop->lock);
    server_loop_wake(loop);
}

static void server_loop_serve(struct connection *connection)
{
    enum next_step step;
    do {
        step = connection_advance(connection);
    } while (step == NEXT_CONTINUE);
    if (step == NEXT_CLOSE) {
        server_loop_drop(connection);
    } else if (step == NEXT_MOVE) {
        int fd = link_fd(connection->link);
        (void)epoll_ctl(connection->loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
        server_loop_unlist(connection);
        server_loop_adopt(&connection->loop->server->copy->loops[0], connection);
    } else {
        /* A parked connection is watched only for its end. */
        server_loop_watch(connection, step == NEXT_WRITE  ? EPOLLOUT
                                      : step == NEXT_PARK ? EPOLLRDHUP
                                                          : EPOLLIN);
    }
}

/* Runs parked connections again, whose condition may hold now. */
static void retry_parked(struct server_loop *loop)
{
    struct connection *next = NULL;
    for (struct connection *connection = loop->connections; connection != NULL; connection = next) {
        next = connection->next;
        if (is_parked(connection)) {
            server_loop_serve(connection);
        }
    }
}

static void take_incoming(struct server_loop *loop)
{
    pthread_mutex_lock(&loop->lock);
    struct connection *connection = loop->incoming;
    loop->incoming = NULL;
    pthread_mutex_unlock(&loop->lock);
    while (connection != NULL) {
        struct connection *next = connection->next;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        int fd = link_fd(connection->link);
        connection->watched = event.events;
        server_loop_list(loop, connection);
        if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
            server_loop_drop(connection);
        } else if (connection->state != CONNECTION_HEADER) {
            server_loop_serve(connection); /* it comes from another loop, with a request */
        }
        connection = next;
    }
}

static void *serve_loop(void *argument)
{
    struct server_loop *loop = argument;
    crash_thread("server", 0);
    struct epoll_event events[EVENTS_MAX];
    while (!atomic_load(&loop->server->stopping)) {
        int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, -1);
        bool woken = false;
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (connection == NULL) {
                woken = true;
            } else if (is_parked(connection)) {
                server_loop_drop(connection); /* it ended */
            } else {
                server_loop_serve(connection);
            }
        }
        /* After the events, because it may free connections that they name. */
        if (woken) {
            eventfd_t unused;
            (void)eventfd_read(loop->wake_fd, &unused);
            take_incoming(loop);
            retry_parked(loop);
        }
    }
    return NULL;
}

cadre_status server_loop_start(struct server_loop *loop, struct cadre_error *error)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    pthread_mutex_init(&loop->lock, NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->wake_fd < 0 ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->wake_fd, &event) != 0) {
        return cadre_error_errno(error, errno, "open a loop for connections");
    }
    int errnum = pthread_create(&loop->thread, NULL, serve_loop, loop);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "start a thread for connections");
    }
    loop->started = true;
    return CADRE_OK;
}

void server_wake_parked(struct server *server)
{
    /* A read-modify-write, so that it is ordered with that of wait_parked: a connection that is
     * counted after it sees the change. */
    if (atomic_fetch_add(&server->parked, 0) > 0) {
        for (uint32_t i = 0; i < server->loop_count; i++) {
            server_loop_wake(&server->loops[i]);
        }
    }
}

void server_loop_add(struct server_loop *loop, struct link *link)
{
    struct connection *connection = calloc(1, sizeof *connection);
    if (connection == NULL) {
        link_free(link);
        return;
    }
    connection->link = link;
    server_loop_adopt(loop, connection);
}

void server_loop_end_others(struct connection *connection)
{
    for (struct connection *each = connection->loop->connections; each != NULL; each = each->next) {
        if (each != connection) {
            push_abandon(each);
            each->dead = true;
            link_shutdown(each->link);
        }
    }
}

/* Only when the job is over: otherwise clients look for the server's replacement. */
static void send_end(struct connection *connection)
{
    if (connection->state == CONNECTION_PARKED && connection->loop->server->orderly) {
        struct cadre_error error = {0};
        (void)cadre_error_set(&error, CADRE_CANCELLED, "the parameter server is ending");
        connection->left = 0; /* unread bytes are dropped with the connection */
        atomic_fetch_sub(&connection->loop->server->parked, 1);
        connection_refuse(connection, &error);
        (void)connection_advance(connection);
    }
}

void server_loop_join(struct server_loop *loop)
{
    if (loop->started) {
        server_loop_wake(loop);
        pthread_join(loop->thread, NULL);
    }
}

void server_loop_end(struct server_loop *loop)
{
    take_incoming(loop);
    while (loop->connections != NULL) {
        send_end(loop->connections);
        server_loop_drop(loop->connections);
    }
    if (loop->epoll_fd >= 0) {
        close(loop->epoll_fd);
    }
    if (loop->wake_fd >= 0) {
        close(loop->wake_fd);
    }
    pthread_mutex_destroy(&loop->lock);
}
