/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_daemon.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "common/wire/frame.h"
#include "worker/library/runtime/task/session.h"

struct fake_daemon {
    enum fake_manner manner;
    int listen_fd;
    int stop_fd;
    pthread_t thread;
    atomic_uint connections;
    struct session *coordinator;
    struct wire_arena *arena;
};

/* False at the end of the test or the connection. */
static bool receive(const struct fake_daemon *daemon, int fd, void *bytes, size_t size)
{
    for (size_t got = 0; got < size;) {
        struct pollfd waited[2] = {
            {.fd = fd, .events = POLLIN}, {.fd = daemon->stop_fd, .events = POLLIN}};
        poll(waited, 2, -1);
        ssize_t n = waited[1].revents != 0 ? 0 : recv(fd, (uint8_t *)bytes + got, size - got, 0);
        if (n <= 0) {
            return false;
        }
        got += (size_t)n;
    }
    return true;
}

static void transmit(int fd, const void *bytes, size_t size)
{
    ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
    (void)sent; /* the test checks whether the program has exited */
}

static void answer(struct fake_daemon *daemon, int fd)
{
    struct task_down down;
    while (daemon->coordinator->ops->take(daemon->coordinator, &down)) {
        struct wire_buffer buffer = {0};
        struct cadre_error error;
        CADRE_ASSERT(frame_pack_task_down(&down, &buffer, &error) == CADRE_OK);
        transmit(fd, buffer.bytes, buffer.size);
        wire_buffer_free(&buffer);
    }
}

static void serve_frames(struct fake_daemon *daemon, int fd)
{
    uint8_t length[4];
    while (receive(daemon, fd, length, sizeof length)) {
        size_t size = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16;
        uint8_t *frame = malloc(size + 1);
        CADRE_ASSERT(frame != NULL && length[3] == 0);
        struct task_up up;
        struct cadre_error error;
        bool whole = receive(daemon, fd, frame, size);
        wire_arena_reset(daemon->arena);
        if (whole && wire_unpack_task_up(frame, size, daemon->arena, &up, &error) == CADRE_OK &&
            !(daemon->manner == FAKE_DROPS_ONCE && daemon->connections == 1)) {
            daemon->coordinator->ops->send(daemon->coordinator, &up);
            answer(daemon, fd);
        }
        free(frame);
        if (!whole || (daemon->manner == FAKE_DROPS_ONCE && daemon->connections == 1)) {
            return;
        }
    }
}

static void serve(struct fake_daemon *daemon, int fd)
{
    static const uint8_t garbage[] = {5, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t huge[] = {0xff, 0xff, 0xff, 0x7f, 0};
    uint8_t preamble[FRAME_PREAMBLE_BYTES];
    frame_preamble_write(preamble);
    if (daemon->manner == FAKE_CLOSES) {
        return;
    }
    if (daemon->manner == FAKE_OTHER_FRAME) {
        preamble[6] = 77;
    }
    if (daemon->manner == FAKE_UNREGISTERED) {
        memcpy(preamble, "SSH-2.0-", sizeof preamble);
    }
    transmit(fd, preamble, sizeof preamble);
    uint8_t theirs[FRAME_PREAMBLE_BYTES];
    if (!receive(daemon, fd, theirs, sizeof theirs)) {
        return;
    }
    if (daemon->manner == FAKE_GARBAGE) {
        transmit(fd, garbage, sizeof garbage);
    } else if (daemon->manner == FAKE_HUGE_FRAME) {
        transmit(fd, huge, sizeof huge);
    } else if (daemon->manner == FAKE_PROPER || daemon->manner == FAKE_DROPS_ONCE) {
        serve_frames(daemon, fd);
        return;
    }
    uint8_t ignored;
    while (receive(daemon, fd, &ignored, 1)) { /* until the program has exited */
    }
}

static void *run(void *argument)
{
    struct fake_daemon *daemon = argument;
    for (;;) {
        struct pollfd waited[2] = {
            {.fd = daemon->listen_fd, .events = POLLIN}, {.fd = daemon->stop_fd, .events = POLLIN}};
        poll(waited, 2, -1);
        if (waited[1].revents != 0) {
            return NULL;
        }
        int fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            atomic_fetch_add(&daemon->connections, 1);
            serve(daemon, fd);
            close(fd);
        }
    }
}

struct fake_daemon *fake_daemon_open(const char *path, enum fake_manner manner)
{
    struct fake_daemon *daemon = calloc(1, sizeof *daemon);
    CADRE_ASSERT(daemon != NULL);
    daemon->manner = manner;
    daemon->stop_fd = eventfd(0, EFD_CLOEXEC);
    daemon->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    CADRE_ASSERT(session_local_open(0, &daemon->coordinator, NULL) == CADRE_OK);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CADRE_ASSERT(strlen(path) < sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    daemon->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CADRE_ASSERT(bind(daemon->listen_fd, (struct sockaddr *)&address, sizeof address) == 0);
    CADRE_ASSERT(listen(daemon->listen_fd, 8) == 0);
    CADRE_ASSERT(pthread_create(&daemon->thread, NULL, run, daemon) == 0);
    return daemon;
}

unsigned fake_daemon_connections(const struct fake_daemon *daemon)
{
    return atomic_load(&daemon->connections);
}

uint64_t fake_daemon_incarnation(const struct fake_daemon *daemon)
{
    return daemon->coordinator->incarnation;
}

void fake_daemon_close(struct fake_daemon *daemon)
{
    uint64_t one = 1;
    CADRE_ASSERT(write(daemon->stop_fd, &one, sizeof one) == (ssize_t)sizeof one);
    pthread_join(daemon->thread, NULL);
    close(daemon->listen_fd);
    close(daemon->stop_fd);
    daemon->coordinator->ops->close(daemon->coordinator);
    wire_arena_free(daemon->arena);
    free(daemon);
}
