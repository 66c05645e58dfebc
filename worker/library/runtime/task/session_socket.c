/* SPDX-License-Identifier: Apache-2.0
 * Frames over a socket: the worker daemon's Unix socket, or a connection of a cluster. One thread
 * reads, writes what did not fit at once, and connects to a daemon again when it disconnects,
 * because it may have been restarted. task.c is its owner. */
#include "common/pure/assert.h"
#include "worker/library/runtime/task/session.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/wire/frame.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/task/socket_mailbox.h"

#define GREETING_US    (10 * CADRE_US_PER_S)
#define RECONNECT_US   (3600 * CADRE_US_PER_S) /* then the session is lost */
#define RETRY_FIRST_MS 20
#define RETRY_MAX_MS   1000
#define TICK_US        CADRE_US_PER_S
#define TICK_SOON_US   (CADRE_US_PER_S / 10)
#define READ_BYTES     (64 * 1024)
#define UNSENT_BYTES_MAX                                                                           \
    ((size_t)8 * 1024 * 1024) /* a daemon that reads nothing counts as lost                        \
                               */

#define WHO_BYTES 400

struct session_socket {
    struct session base;
    char path[108];      /* of the daemon; "": the connection was given, and is not made again */
    char who[WHO_BYTES]; /* the other side, in errors */
    bool mixes;          /* keys of the mesh, with: */
    uint8_t secret[SESSION_KEY_BYTES];
    struct session_events events;
    pthread_t thread;
    bool started;
    int wake_fd; /* an eventfd: there is something to send, or to stop */

    pthread_mutex_t lock; /* over what follows; never held while events are delivered */
    int fd;               /* -1 while disconnected */
    bool stopping;
    bool broken; /* send gave up on this connection */
    struct wire_buffer unsent;
    size_t sent_bytes;             /* of `unsent` */
    struct socket_mailbox mailbox; /* what it handles is the thread's */

    struct frame_reader reader; /* the thread's */
    uint64_t tick_us;           /* when the next tick is due; the thread's */
    struct wire_arena *arena;
};

static struct session_socket *socket_of(struct session *session)
{
    return (struct session_socket *)session;
}

static void session_socket_wake(struct session_socket *self)
{
    uint64_t one = 1;
    ssize_t written = write(self->wake_fd, &one, sizeof one);
    (void)written; /* a full counter is readable already */
}

static void session_socket_quiet(struct session_socket *self)
{
    uint64_t count;
    ssize_t size = read(self->wake_fd, &count, sizeof count);
    (void)size; /* an empty counter is as good */
}

/* Writes as much as the socket takes now. Under the lock. */
static void session_socket_flush(struct session_socket *self)
{
    CADRE_ASSERT(self->sent_bytes <= self->unsent.size);
    while (self->fd >= 0 && !self->broken && self->sent_bytes < self->unsent.size) {
        ssize_t size = send(self->fd, self->unsent.bytes + self->sent_bytes,
            self->unsent.size - self->sent_bytes, MSG_NOSIGNAL);
        if (size >= 0) {
            self->sent_bytes += (size_t)size;
        } else if (errno == EAGAIN) {
            return;
        } else if (errno != EINTR) {
            self->broken = true;
        }
    }
    wire_buffer_clear(&self->unsent);
    self->sent_bytes = 0;
}

static void socket_send(struct session *session, const struct task_up *up)
{
    struct session_socket *self = socket_of(session);
    pthread_mutex_lock(&self->lock);
    if (self->fd >= 0 && !self->broken) {
        struct cadre_error error;
        size_t before = self->unsent.size;
        if (before - self->sent_bytes > UNSENT_BYTES_MAX ||
            socket_mailbox_send(&self->mailbox, up, &self->unsent, &error) != CADRE_OK) {
            /* The connection is given up; the next hello reports the state. */
            self->unsent.size = before;
            self->broken = true;
        }
        session_socket_flush(self);
        if (self->broken || self->unsent.size > 0) {
            session_socket_wake(self);
        }
    }
    pthread_mutex_unlock(&self->lock);
}

static bool socket_take(struct session *session, struct task_down *ret_down)
{
    (void)session;
    (void)ret_down;
    return false; /* answers come from the thread */
}

static bool is_stopping(struct session_socket *self)
{
    pthread_mutex_lock(&self->lock);
    bool stopping = self->stopping;
    pthread_mutex_unlock(&self->lock);
    return stopping;
}

static void drop_connection(struct session_socket *self)
{
    pthread_mutex_lock(&self->lock);
    if (self->fd >= 0) {
        close(self->fd);
    }
    self->fd = -1;
    self->broken = false;
    wire_buffer_clear(&self->unsent);
    self->sent_bytes = 0;
    socket_mailbox_close(&self->mailbox);
    pthread_mutex_unlock(&self->lock);
    frame_reader_free(&self->reader);
    self->reader = (struct frame_reader){0};
}

/* A peer that cannot start this program again sends the end of the task in another way, which is
 * final. */
static cadre_status session_socket_consider(
    struct session_socket *self, struct task_down *down, struct cadre_error *error)
{
    if (self->path[0] == '\0' && down->type == TASK_DOWN_REFUSED) {
        return cadre_error_set(error, down->refused.code, "%s", down->refused.text);
    }
    if (self->mixes && down->type == TASK_DOWN_PLAN) {
        session_key_mix(self->secret, down->plan.key);
    } else if (self->mixes && down->type == TASK_DOWN_MEMBERS) {
        session_key_mix(self->secret, down->members.key);
    }
    return CADRE_OK;
}

static void tick_within(struct session_socket *self, uint64_t time_us)
{
    uint64_t due_us = clock_monotonic_us() + time_us;
    self->tick_us = due_us < self->tick_us ? due_us : self->tick_us;
}

static cadre_status deliver_mailbox(struct session_socket *self, struct cadre_error *error)
{
    struct task_down down = {.type = TASK_DOWN_RELEASE};
    cadre_status status;
    while ((status = socket_mailbox_next(&self->mailbox, &down.release, error)) == CADRE_OK) {
        self->events.down(&down, self->events.user);
    }
    return status == CADRE_PENDING ? CADRE_OK
                                   : cadre_error_wrap(error, status, "message of %s", self->who);
}

/* Delivers what the mailbox holds and the whole frames that have arrived. An error means that the
 * other side breaks the protocol, or that it ends this task. */
static cadre_status session_socket_deliver(struct session_socket *self, struct cadre_error *error)
{
    for (;;) {
        const uint8_t *payload;
        size_t size;
        CADRE_TRY(deliver_mailbox(self, error));
        cadre_status status = frame_reader_next(&self->reader, &payload, &size, error);
        if (status == CADRE_PENDING) {
            return CADRE_OK;
        }
        struct task_down down;
        if (status == CADRE_OK) {
            wire_arena_reset(self->arena);
            status = wire_unpack_task_down(payload, size, self->arena, &down, error);
        }
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "message of %s", self->who);
        }
        CADRE_TRY(session_socket_consider(self, &down, error));
        self->events.down(&down, self->events.user);
        self->mailbox.frames_handled++;
        if (down.type == TASK_DOWN_TRACE) {
            tick_within(self, TICK_SOON_US);
        }
    }
}

/* Calls `tick` when it is due; returns how long to poll until the next one. */
static int session_socket_tick(struct session_socket *self)
{
    if (self->events.tick == NULL) {
        return -1;
    }
    uint64_t now_us = clock_monotonic_us();
    if (now_us >= self->tick_us) {
        bool soon = self->events.tick(self->events.user);
        self->tick_us = now_us + (soon ? TICK_SOON_US : TICK_US);
    }
    return (int)((self->tick_us - now_us) / CADRE_US_PER_MS) + 1;
}

enum source { OF_SOCKET, OF_WAKE, OF_RELEASES, SOURCES };

static bool watch_source(int set, int how, int fd, uint32_t events, enum source source)
{
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)source};
    return epoll_ctl(set, how, fd, &event) == 0;
}

/* What a connection is waited for in: edges reach each task's set, and no task takes one from
 * another. -1: no descriptor is left. */
static int open_set(const struct session_socket *self)
{
    int released_fd = self->mailbox.released_fd;
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (set >= 0 && watch_source(set, EPOLL_CTL_ADD, self->fd, EPOLLIN, OF_SOCKET) &&
        watch_source(set, EPOLL_CTL_ADD, self->wake_fd, EPOLLIN, OF_WAKE) &&
        (released_fd < 0 ||
            watch_source(set, EPOLL_CTL_ADD, released_fd, EPOLLIN | EPOLLET, OF_RELEASES))) {
        return set;
    }
    if (set >= 0) {
        close(set);
    }
    return -1;
}

static cadre_status read_frames(struct session_socket *self, int fd, struct cadre_error *error)
{
    uint8_t *room = frame_reader_room(&self->reader, READ_BYTES);
    if (room == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the messages of %s", self->who);
    }
    ssize_t size = recv(fd, room, READ_BYTES, 0);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "%s closed the connection", self->who);
    }
    frame_reader_commit(&self->reader, size > 0 ? (size_t)size : 0);
    return CADRE_OK;
}

/* Reads and writes until the connection ends; the reason is for the message of a session that is
 * lost. */
static cadre_status session_socket_serve(struct session_socket *self, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int set = open_set(self);
    if (set < 0) {
        return cadre_error_errno(error, errno, "wait for messages of %s", self->who);
    }
    bool waited_for_room = false;
    self->tick_us = clock_monotonic_us() + TICK_US;
    for (;;) {
        int wait_ms = session_socket_tick(self);
        pthread_mutex_lock(&self->lock);
        session_socket_flush(self);
        bool waits = self->unsent.size > 0;
        bool ended = self->broken || self->stopping;
        int fd = self->fd;
        pthread_mutex_unlock(&self->lock);
        if (ended) {
            return cadre_error_set(error, CADRE_UNAVAILABLE, "%s takes no messages", self->who);
        }
        if (waits != waited_for_room) {
            watch_source(set, EPOLL_CTL_MOD, fd, EPOLLIN | (waits ? EPOLLOUT : 0), OF_SOCKET);
            waited_for_room = waits;
        }
        struct epoll_event ready[SOURCES];
        int count = epoll_wait(set, ready, SOURCES, wait_ms);
        bool readable = false;
        for (int i = 0; i < count; i++) { /* else a tick, or interrupted */
            if (ready[i].data.u32 == OF_WAKE) {
                session_socket_quiet(self);
            }
            readable = readable || (ready[i].data.u32 == OF_SOCKET &&
                                       (ready[i].events & ~(uint32_t)EPOLLOUT) != 0);
        }
        if (readable) {
            CADRE_TRY(read_frames(self, fd, error));
        }
        CADRE_TRY(session_socket_deliver(self, error));
    }
}

/* True when the connection was made again. */
static bool session_socket_reconnect(struct session_socket *self, struct cadre_error *error)
{
    uint64_t end_us = clock_monotonic_us() + RECONNECT_US;
    int pause_ms = RETRY_FIRST_MS;
    while (!is_stopping(self)) {
        int fd = -1;
        struct socket_mailbox mailbox;
        cadre_status status = socket_connection_open(
            self->path, self->wake_fd, clock_monotonic_us() + GREETING_US, &fd, &mailbox, error);
        if (status == CADRE_OK) {
            pthread_mutex_lock(&self->lock);
            self->fd = fd;
            self->mailbox = mailbox;
            pthread_mutex_unlock(&self->lock);
            return true;
        }
        bool hopeless = status != CADRE_UNAVAILABLE && status != CADRE_DEADLINE_EXCEEDED &&
                        status != CADRE_CANCELLED;
        if (hopeless || clock_monotonic_us() >= end_us) {
            return false;
        }
        struct pollfd waited = {.fd = self->wake_fd, .events = POLLIN};
        if (poll(&waited, 1, pause_ms) > 0) {
            session_socket_quiet(self);
        }
        pause_ms = pause_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : pause_ms * 2;
    }
    return false;
}

static void *session_socket_run(void *argument)
{
    struct session_socket *self = argument;
    crash_thread("session", 0);
    for (;;) {
        struct cadre_error why = {0};
        cadre_status status = session_socket_serve(self, &why);
        drop_connection(self);
        if (is_stopping(self)) {
            return NULL;
        }
        self->events.disconnected(self->events.user);
        struct cadre_error error = {0};
        /* A daemon that breaks the protocol is not connected to again. */
        bool again = status == CADRE_UNAVAILABLE && self->path[0] != '\0' &&
                     session_socket_reconnect(self, &error);
        if (is_stopping(self)) {
            return NULL;
        }
        if (!again) {
            self->events.lost(error.text[0] != '\0' ? &error : &why, self->events.user);
            return NULL;
        }
        self->events.connected(self->events.user);
    }
}

static cadre_status socket_start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    struct session_socket *self = socket_of(session);
    CADRE_ASSERT(!self->started);
    self->events = *events;
    int errnum = thread_start(&self->thread, session_socket_run, self);
    if (errnum != 0) {
        return cadre_error_errno(error, errnum, "start the thread that reads from %s", self->who);
    }
    self->started = true;
    return CADRE_OK;
}

/* What was sent last, the report of the end, gets a moment to be written. */
static void socket_close(struct session *session)
{
    if (session == NULL) {
        return;
    }
    struct session_socket *self = socket_of(session);
    pthread_mutex_lock(&self->lock);
    session_socket_flush(self);
    self->stopping = true;
    pthread_mutex_unlock(&self->lock);
    session_socket_wake(self);
    if (self->started) {
        pthread_join(self->thread, NULL);
    }
    drop_connection(self);
    wire_buffer_free(&self->unsent);
    wire_arena_free(self->arena);
    if (self->wake_fd >= 0) {
        close(self->wake_fd);
    }
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static const struct session_ops socket_ops = {
    .name = "socket",
    .start = socket_start,
    .send = socket_send,
    .take = socket_take,
    .close = socket_close,
};

/* Without a connection yet; NULL when there is no memory or descriptor for it. */
static struct session_socket *socket_new(const char *who)
{
    struct session_socket *self = calloc(1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->base.ops = &socket_ops;
    self->fd = -1;
    self->mailbox = (struct socket_mailbox){.arrived_fd = -1, .released_fd = -1};
    pthread_mutex_init(&self->lock, NULL);
    snprintf(self->who, sizeof self->who, "%s", who);
    self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (self->wake_fd < 0 || self->arena == NULL) {
        socket_close(&self->base);
        return NULL;
    }
    return self;
}

static cadre_status no_room(const char *who, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no descriptor or memory for the session with %s", who);
}

cadre_status session_socket_open(
    const char *path, bool returns, struct session **ret_session, struct cadre_error *error)
{
    char who[WHO_BYTES];
    *ret_session = NULL;
    snprintf(who, sizeof who, "the worker daemon at %s", path);
    struct session_socket *self = socket_new(who);
    if (self == NULL || strlen(path) >= sizeof self->path) {
        socket_close(self == NULL ? NULL : &self->base);
        return no_room(who, error);
    }
    memcpy(self->path, path, strlen(path) + 1);
    cadre_status status = socket_connection_open(
        path, -1, clock_monotonic_us() + GREETING_US, &self->fd, &self->mailbox, error);
    if (status == CADRE_UNAVAILABLE && returns && session_socket_reconnect(self, error)) {
        status = CADRE_OK; /* it was being restarted */
    }
    if (status != CADRE_OK) {
        socket_close(&self->base);
        return status;
    }
    *ret_session = &self->base;
    return CADRE_OK;
}

cadre_status session_socket_adopt(int fd, const char *who, const uint8_t *secret,
    struct session **ret_session, struct cadre_error *error)
{
    CADRE_ASSERT(fd >= 0);
    *ret_session = NULL;
    struct session_socket *self = socket_new(who);
    if (self == NULL) {
        close(fd);
        return no_room(who, error);
    }
    self->fd = fd;
    self->mixes = secret != NULL;
    if (secret != NULL) {
        memcpy(self->secret, secret, sizeof self->secret);
    }
    *ret_session = &self->base;
    return CADRE_OK;
}
