/* SPDX-License-Identifier: Apache-2.0
 * The floor of a launch: start two processes that connect to their launcher over TCP, receive each
 * other's address and exchange one number. floor_launch; with arguments it is one of the two. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void transfer(int fd, void *bytes, size_t size, int sending)
{
    ssize_t moved =
        sending ? send(fd, bytes, size, MSG_NOSIGNAL) : recv(fd, bytes, size, MSG_WAITALL);
    if (moved != (ssize_t)size) {
        perror("floor_launch");
        exit(1);
    }
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int listen_anywhere(uint16_t *ret_port)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (struct sockaddr *)&address, length) != 0 || listen(fd, 4) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
        perror("floor_launch: listen");
        exit(1);
    }
    *ret_port = address.sin_port;
    return fd;
}

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        perror("floor_launch: connect");
        exit(1);
    }
    return fd;
}

/* What the launcher sends to a worker. */
struct roster {
    uint16_t rank;
    uint16_t port_of_0;
};

static int work(uint16_t launcher_port)
{
    uint16_t port;
    int listener = listen_anywhere(&port);
    int launcher = connect_to(launcher_port);
    struct roster roster;
    transfer(launcher, &port, sizeof port, 1);
    transfer(launcher, &roster, sizeof roster, 0);
    int peer = roster.rank == 0 ? accept(listener, NULL, NULL) : connect_to(roster.port_of_0);
    float mine = 1;
    float theirs = 0;
    transfer(peer, &mine, sizeof mine, 1);
    transfer(peer, &theirs, sizeof theirs, 0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (mine + theirs != 2.0F) {
        return 1;
    }
    printf("first_all_reduce_ns=%" PRIu64 "\n",
        (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2) {
        return work((uint16_t)strtoul(argv[1], NULL, 10));
    }
    uint16_t port;
    char text[8];
    int listener = listen_anywhere(&port);
    snprintf(text, sizeof text, "%u", port);
    for (int i = 0; i < 2; i++) {
        if (fork() == 0) {
            execl("/proc/self/exe", argv[0], text, (char *)NULL);
            _exit(127);
        }
    }
    int workers[2];
    struct roster roster = {0};
    for (int i = 0; i < 2; i++) {
        uint16_t theirs;
        workers[i] = accept(listener, NULL, NULL);
        transfer(workers[i], &theirs, sizeof theirs, 0);
        roster.port_of_0 = i == 0 ? theirs : roster.port_of_0;
    }
    for (uint16_t i = 0; i < 2; i++) {
        roster.rank = i;
        transfer(workers[i], &roster, sizeof roster, 1);
    }
    int status;
    int failed = 0;
    while (wait(&status) > 0) {
        failed |= status != 0;
    }
    return failed;
}
