/* SPDX-License-Identifier: Apache-2.0 */
#include "raw_echo.h"

#include "common/base/clock.h"
#include "common/pure/assert.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define EVENTS_MAX 64

static void watch(int poller, int fd, uint64_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = number};
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int failed = epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    CADRE_ASSERT(failed == 0);
}

void raw_serve(void (*ready)(int port))
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    int failed = bind(listener, (struct sockaddr *)&address, sizeof address);
    CADRE_ASSERT(failed == 0);
    listen(listener, CONCURRENCY_MAX);
    getsockname(listener, (struct sockaddr *)&address, &length);
    int poller = epoll_create1(0);
    watch(poller, listener, (uint64_t)listener);
    ready(ntohs(address.sin_port));
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(poller, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = (int)events[i].data.u64;
            if (fd == listener) {
                int accepted = accept(listener, NULL, NULL);
                watch(poller, accepted, (uint64_t)accepted);
                continue;
            }
            char data[MESSAGE_BYTES];
            ssize_t got = recv(fd, data, sizeof data, MSG_DONTWAIT);
            if (got <= 0 || send(fd, data, (size_t)got, MSG_NOSIGNAL) != got) {
                close(fd);
            }
        }
    }
}

static int connect_to(int port, const char *path)
{
    struct sockaddr_in inet = {.sin_family = AF_INET,
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        .sin_port = htons((in_port_t)port)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    int fd = socket(path != NULL ? AF_UNIX : AF_INET, SOCK_STREAM, 0);
    int failed;
    if (path != NULL) {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", path);
        failed = connect(fd, (struct sockaddr *)&local, sizeof local);
    } else {
        failed = connect(fd, (struct sockaddr *)&inet, sizeof inet);
    }
    CADRE_ASSERT(failed == 0);
    return fd;
}

void raw_drive(
    int port, const char *path, int concurrency, uint64_t end_us, struct samples *samples)
{
    static int fds[CONCURRENCY_MAX];
    static uint64_t sent_us[CONCURRENCY_MAX];
    static size_t got_bytes[CONCURRENCY_MAX];
    static const char message[MESSAGE_BYTES];
    int poller = epoll_create1(0);
    for (int i = 0; i < concurrency; i++) {
        fds[i] = connect_to(port, path);
        watch(poller, fds[i], (uint64_t)i);
        got_bytes[i] = 0;
        sent_us[i] = clock_monotonic_us();
        ssize_t sent = send(fds[i], message, sizeof message, 0);
        CADRE_ASSERT(sent == MESSAGE_BYTES);
    }
    uint64_t now_us = clock_monotonic_us();
    while (now_us < end_us || samples->count == 0) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(poller, events, EVENTS_MAX, 100);
        for (int i = 0; i < count; i++) {
            uint64_t at = events[i].data.u64;
            char data[MESSAGE_BYTES];
            ssize_t got = recv(fds[at], data, sizeof data - got_bytes[at], MSG_DONTWAIT);
            CADRE_ASSERT(got > 0);
            got_bytes[at] += (size_t)got;
            if (got_bytes[at] < MESSAGE_BYTES) {
                continue;
            }
            now_us = clock_monotonic_us();
            samples_add(samples, now_us - sent_us[at]);
            got_bytes[at] = 0;
            sent_us[at] = now_us;
            ssize_t sent = send(fds[at], message, sizeof message, 0);
            CADRE_ASSERT(sent == MESSAGE_BYTES);
        }
        now_us = clock_monotonic_us();
    }
    for (int i = 0; i < concurrency; i++) {
        close(fds[i]);
    }
    close(poller);
}
