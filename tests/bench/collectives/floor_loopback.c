/* SPDX-License-Identifier: Apache-2.0
 * The speed of loopback TCP between two threads that never block: the round trip of 4 bytes, and
 * how many bytes a second they exchange, both ways at once and together, out of and into a buffer
 * of each size; the best of some sizes of the send buffer. `floor_loopback BYTES,BYTES,...
 * BUDGET_MS` */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "board.h"
#include "harness.h"

#define ROUND_TRIPS 4000
#define REPEATS     3
#define PIECE       ((size_t)256 << 10) /* of one read or write */
#define SHARE_BYTES ((size_t)32 << 20)  /* exchanged each way at least */

struct end {
    struct board *board;
    int fd;
    int rank;
    size_t bytes; /* of its buffers; 0: round trips */
    double took_s;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void connect_ends(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        fail("floor_loopback: listen");
    }
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&address, size) != 0) {
        fail("floor_loopback: connect");
    }
    fds[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

static void move_all(int fd, char *bytes, size_t size, bool out)
{
    for (size_t moved = 0; moved < size;) {
        ssize_t step = out ? send(fd, bytes + moved, size - moved, MSG_DONTWAIT)
                           : recv(fd, bytes + moved, size - moved, MSG_DONTWAIT);
        moved += step > 0 ? (size_t)step : 0;
    }
}

static void play(const struct end *end)
{
    char word[4] = {0};
    for (int i = 0; i < ROUND_TRIPS; i++) {
        move_all(end->fd, word, sizeof word, end->rank == 0);
        move_all(end->fd, word, sizeof word, end->rank != 0);
    }
}

static size_t step_of(size_t done, const struct end *end)
{
    size_t left = end->bytes - done % end->bytes;
    return left < PIECE ? left : PIECE;
}

static void exchange(const struct end *end, char *from, char *into, size_t total)
{
    size_t sent = 0;
    size_t got = 0;
    while (sent < total || got < total) {
        if (sent < total) {
            ssize_t step =
                send(end->fd, from + sent % end->bytes, step_of(sent, end), MSG_DONTWAIT);
            sent += step > 0 ? (size_t)step : 0;
        }
        if (got < total) {
            ssize_t step = recv(end->fd, into + got % end->bytes, step_of(got, end), MSG_DONTWAIT);
            got += step > 0 ? (size_t)step : 0;
        }
    }
}

static size_t total_of(size_t bytes)
{
    return bytes < SHARE_BYTES ? SHARE_BYTES / bytes * bytes : bytes;
}

static void *run_end(void *argument)
{
    struct end *end = argument;
    char *from = calloc(1, end->bytes + 1);
    char *into = calloc(1, end->bytes + 1);
    if (from == NULL || into == NULL) {
        fail("floor_loopback: memory");
    }
    memset(from, 1, end->bytes);
    memset(into, 1, end->bytes);
    board_pin(end->rank);
    board_barrier(end->board, 2);
    end->board->seats[end->rank].began_s = board_now_s();
    if (end->bytes > 0) {
        exchange(end, from, into, total_of(end->bytes));
    } else {
        play(end);
    }
    end->board->seats[end->rank].ended_s = board_now_s();
    board_barrier(end->board, 2);
    end->took_s = board_took_s(end->board, 2);
    free(from);
    free(into);
    return NULL;
}

/* The shortest of some repeats. */
static double best_s(struct board *board, size_t bytes, int send_buffer)
{
    double best_s = 0;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        struct end ends[2];
        pthread_t threads[2];
        int fds[2];
        connect_ends(fds);
        for (int i = 0; i < 2; i++) {
            if (send_buffer > 0) {
                setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
            }
            ends[i] = (struct end){.board = board, .fd = fds[i], .rank = i, .bytes = bytes};
            if (pthread_create(&threads[i], NULL, run_end, &ends[i]) != 0) {
                fail("floor_loopback: thread");
            }
        }
        for (int i = 0; i < 2; i++) {
            pthread_join(threads[i], NULL);
            close(fds[i]);
        }
        best_s = best_s == 0 || ends[0].took_s < best_s ? ends[0].took_s : best_s;
    }
    return best_s;
}

int main(int argc, char **argv)
{
    static const int send_buffers[] = {0, 64 << 10, 128 << 10, 256 << 10};
    struct bench_plan plan;
    struct board *board = board_open(NULL);
    char *arguments[] = {"2", "r", argc > 1 ? argv[1] : NULL, "1", NULL};
    if (!bench_parse(arguments, &plan) || board == NULL) {
        return 2;
    }
    printf("round_trip_us=%.3f\n", best_s(board, 0, 0) / ROUND_TRIPS * 1e6);
    for (int i = 0; i < plan.size_count; i++) {
        double rate = 0;
        for (size_t k = 0; k < sizeof send_buffers / sizeof *send_buffers; k++) {
            double took_s = best_s(board, plan.sizes[i], send_buffers[k]);
            double now = 2 * (double)total_of(plan.sizes[i]) / took_s;
            rate = now > rate ? now : rate;
        }
        printf("rate.%zu=%.0f\n", plan.sizes[i], rate);
        fflush(stdout);
    }
    return 0;
}
