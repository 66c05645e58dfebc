/* SPDX-License-Identifier: Apache-2.0
 * The floor of a release: an epoll server with N TCP connections from one client process. In a
 * round N - 1 of them arrive and are acknowledged; then the last one arrives, and the server writes
 * 16 bytes to all. Prints how long after the last arrival the first and the last one had it.
 * floor_release N ROUNDS */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_BYTES 16
#define EVENTS_MAX    256

struct ends {
    int *fds;
    int count;
    int epoll;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void transfer(int fd, int sending)
{
    char message[MESSAGE_BYTES] = {0};
    ssize_t moved = sending ? send(fd, message, sizeof message, MSG_NOSIGNAL)
                            : recv(fd, message, sizeof message, MSG_WAITALL);
    if (moved != MESSAGE_BYTES) {
        fail("floor_release");
    }
}

static struct ends ends_open(int count)
{
    struct ends ends = {
        .fds = calloc((size_t)count, sizeof(int)), .epoll = epoll_create1(EPOLL_CLOEXEC)};
    if (ends.fds == NULL || ends.epoll < 0) {
        fail("epoll");
    }
    return ends;
}

static void add(struct ends *ends, int fd)
{
    int one = 1;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (fd < 0 || epoll_ctl(ends->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
        fail("connection");
    }
    ends->fds[ends->count++] = fd;
}

/* Reads one message from each of `wanted` connections; returns when the first one came. */
static uint64_t receive(struct ends *ends, int wanted, int acknowledge)
{
    struct epoll_event ready[EVENTS_MAX];
    uint64_t first_ns = 0;
    while (wanted > 0) {
        int count = epoll_wait(ends->epoll, ready, EVENTS_MAX, -1);
        if (count < 0 && errno != EINTR) {
            fail("epoll_wait");
        }
        for (int i = 0; i < count; i++, wanted--) {
            transfer(ready[i].data.fd, 0);
            first_ns = first_ns == 0 ? now_ns() : first_ns;
            if (acknowledge && wanted > 1) {
                transfer(ready[i].data.fd, 1);
            }
        }
    }
    return first_ns;
}

static void serve(int listener, int count, int rounds)
{
    struct ends ends = ends_open(count);
    for (int i = 0; i < count; i++) {
        add(&ends, accept(listener, NULL, NULL));
    }
    for (int round = 0; round < rounds; round++) {
        receive(&ends, count, 1); /* the last one to come is not acknowledged but released */
        for (int i = 0; i < count; i++) {
            transfer(ends.fds[i], 1);
        }
    }
    char end;
    _exit(recv(ends.fds[0], &end, 1, 0) != 0); /* the client closes first */
}

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static void print_median(const char *name, uint64_t *times_ns, int count)
{
    qsort(times_ns, (size_t)count, sizeof *times_ns, compare);
    printf("%s=%.1f\n", name, (double)times_ns[count / 2] / 1000);
}

static void run_rounds(struct ends *ends, int rounds)
{
    uint64_t *first_ns = calloc((size_t)rounds, sizeof *first_ns);
    uint64_t *last_ns = calloc((size_t)rounds, sizeof *last_ns);
    if (first_ns == NULL || last_ns == NULL) {
        fail("memory");
    }
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < ends->count - 1; i++) {
            transfer(ends->fds[i], 1);
        }
        receive(ends, ends->count - 1, 0);
        uint64_t arrived_ns = now_ns();
        transfer(ends->fds[ends->count - 1], 1);
        first_ns[round] = receive(ends, ends->count, 0) - arrived_ns;
        last_ns[round] = now_ns() - arrived_ns;
    }
    print_median("first_us", first_ns, rounds);
    print_median("last_us", last_ns, rounds);
    free(first_ns);
    free(last_ns);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: floor_release N ROUNDS\n");
        return 2;
    }
    int count = (int)strtol(argv[1], NULL, 10);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        fail("listen");
    }
    int rounds = (int)strtol(argv[2], NULL, 10);
    if (fork() == 0) {
        serve(listener, count, rounds);
    }
    struct ends ends = ends_open(count);
    for (int i = 0; i < count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
            fail("connect");
        }
        add(&ends, fd);
    }
    run_rounds(&ends, rounds);
    close(ends.fds[0]);
    free(ends.fds);
    int status;
    wait(&status);
    return status != 0;
}
