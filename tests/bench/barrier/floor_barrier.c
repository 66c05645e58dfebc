/* SPDX-License-Identifier: Apache-2.0
 * The floor of a barrier over a coordinator: N processes send 16 bytes over TCP to one epoll loop,
 * which answers all when the last has come. No decision, no record, no encoding. floor_barrier N
 * ROUNDS FILE */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pthread.h>

#include "tests/bench/barrier/times.h"

#define MESSAGE_BYTES 16

static void transfer(int fd, char *bytes, int sending)
{
    size_t done = 0;
    while (done < MESSAGE_BYTES) {
        ssize_t moved = sending ? write(fd, bytes + done, MESSAGE_BYTES - done)
                                : read(fd, bytes + done, MESSAGE_BYTES - done);
        if (moved <= 0 && errno != EINTR) {
            _exit(4);
        }
        done += moved > 0 ? (size_t)moved : 0;
    }
}

static void no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void coordinate(int listener, int participants, uint32_t rounds)
{
    struct epoll_event ready[256];
    char message[MESSAGE_BYTES] = {0};
    int *fds = calloc((size_t)participants, sizeof *fds);
    int epoll = epoll_create1(0);
    for (int i = 0; i < participants; i++) {
        fds[i] = accept(listener, NULL, NULL);
        no_delay(fds[i]);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fds[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
    }
    int arrived = 0;
    for (uint32_t round = 0; round < rounds;) {
        int count = epoll_wait(epoll, ready, 256, -1);
        for (int i = 0; i < count; i++) {
            transfer(ready[i].data.fd, message, 0);
            arrived++;
        }
        if (arrived == participants) {
            arrived = 0;
            round++;
            for (int i = 0; i < participants; i++) {
                transfer(fds[i], message, 1);
            }
        }
    }
    _exit(0);
}

static void participate(
    const struct sockaddr_in *address, pthread_barrier_t *start, struct times times)
{
    char message[MESSAGE_BYTES] = {0};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        _exit(5);
    }
    no_delay(fd);
    pthread_barrier_wait(start);
    for (uint32_t round = 0; round < times.rounds; round++) {
        times.stamps[2 * round] = times_now();
        transfer(fd, message, 1);
        transfer(fd, message, 0);
        times.stamps[2 * round + 1] = times_now();
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: floor_barrier N ROUNDS FILE\n");
        return 2;
    }
    int participants = (int)strtol(argv[1], NULL, 10);
    uint32_t rounds = (uint32_t)strtoul(argv[2], NULL, 10);
    pthread_barrier_t *start =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(start, &shared, (unsigned)participants);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        perror("listen");
        return 1;
    }
    if (fork() == 0) {
        coordinate(listener, participants, rounds);
    }
    for (int i = 0; i < participants; i++) {
        if (fork() == 0) {
            participate(
                &address, start, times_open(argv[3], (uint32_t)participants, rounds, (uint32_t)i));
        }
    }
    int status;
    int failed = 0;
    while (wait(&status) > 0) {
        failed |= status != 0;
    }
    return failed;
}
