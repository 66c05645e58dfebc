/* SPDX-License-Identifier: Apache-2.0 */
#include "floor_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void require(int done, const char *what)
{
    if (!done) {
        perror(what);
        exit(1);
    }
}

void peer_open(struct peer *peer, size_t count)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    require(bind(listener, (struct sockaddr *)&address, size) == 0, "bind");
    require(getsockname(listener, (struct sockaddr *)&address, &size) == 0, "getsockname");
    require(listen(listener, 1) == 0, "listen");
    peer->child = fork();
    require(peer->child >= 0, "fork");
    peer->rank = peer->child == 0;
    if (peer->rank == 1) {
        peer->fd = socket(AF_INET, SOCK_STREAM, 0);
        require(connect(peer->fd, (struct sockaddr *)&address, size) == 0, "connect");
    } else {
        peer->fd = accept(listener, NULL, NULL);
        require(peer->fd >= 0, "accept");
    }
    close(listener);
    require(setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0, "setsockopt");
    peer->received = malloc((count + 1) * sizeof *peer->received);
    require(peer->received != NULL, "malloc");
}

float *peer_vector(const char *memory, size_t count)
{
    (void)memory;
    float *vector = calloc(count, sizeof *vector);
    require(vector != NULL, "calloc");
    return vector;
}

/* Sends and receives at the same time. */
static void swap(int fd, const char *out, size_t out_bytes, char *in, size_t in_bytes)
{
    while (out_bytes > 0 || in_bytes > 0) {
        ssize_t got = in_bytes > 0 ? recv(fd, in, in_bytes, MSG_DONTWAIT) : -1;
        ssize_t put = out_bytes > 0 ? send(fd, out, out_bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;
        if (got == 0) {
            fprintf(stderr, "train_floor: the other process is gone\n");
            exit(1);
        }
        in += got > 0 ? got : 0;
        in_bytes -= got > 0 ? (size_t)got : 0;
        out += put > 0 ? put : 0;
        out_bytes -= put > 0 ? (size_t)put : 0;
        if (got <= 0 && put <= 0) {
            struct pollfd poller = {.fd = fd,
                .events = (short)((in_bytes > 0 ? POLLIN : 0) | (out_bytes > 0 ? POLLOUT : 0))};
            require(poll(&poller, 1, -1) >= 0 || errno == EINTR, "poll");
        }
    }
}

void peer_sum(struct peer *peer, float *vector, size_t count)
{
    const size_t half = count / 2;
    float *mine = peer->rank == 0 ? vector : vector + half;
    float *other = peer->rank == 0 ? vector + half : vector;
    const size_t mine_count = peer->rank == 0 ? half : count - half;
    const size_t other_count = count - mine_count;
    const float *restrict received = peer->received;
    swap(peer->fd, (const char *)other, other_count * sizeof *other, (char *)peer->received,
        mine_count * sizeof *mine);
    for (size_t i = 0; i < mine_count; i++) {
        mine[i] += received[i];
    }
    swap(peer->fd, (const char *)mine, mine_count * sizeof *mine, (char *)other,
        other_count * sizeof *other);
}

int peer_end(struct peer *peer)
{
    int status = 0;
    close(peer->fd);
    free(peer->received);
    if (peer->rank == 0) {
        require(waitpid(peer->child, &status, 0) == peer->child, "waitpid");
    }
    return status;
}
