/* SPDX-License-Identifier: Apache-2.0
 * The speed of loopback TCP between two threads that never block: how long it takes to exchange 4
 * bytes, both ways at once, and how many bytes a second they exchange, both ways together, with one
 * half of a buffer of each size sent and the other one received into, as in an all-reduce in place.
 * Each is the best of several tries, the rate over some sizes of the send buffer and with the
 * system's congestion control and without pacing. `floor_loopback BYTES,BYTES,... BUDGET_MS` */
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

#define STEPS       500 /* of one try */
#define STEP_TRIES  40
#define PIECE       ((size_t)256 << 10) /* of one read or write */
#define SHARE_BYTES ((size_t)32 << 20)  /* exchanged each way at least */

struct end {
    struct board *board;
    int fd;
    int rank;
    size_t bytes; /* of its buffer; 0: steps of 4 bytes */
    double took_s;
};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* `control`: the congestion control; NULL: the system's. */
static void connect_ends(int fds[2], const char *control)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    fds[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (control != NULL) { /* before they connect: it does not end the pacing of a connection */
        setsockopt(listener, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control));
        setsockopt(fds[0], IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control));
    }
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        fail("floor_loopback: listen");
    }
    if (fds[0] < 0 || connect(fds[0], (struct sockaddr *)&address, size) != 0) {
        fail("floor_loopback: connect");
    }
    fds[1] = accept(listener, NULL, NULL);
    close(listener);
    for (int i = 0; i < 2; i++) {
        setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

static void take_steps(const struct end *end)
{
    char word[4] = {0};
    for (int i = 0; i < STEPS; i++) {
        ssize_t sent = 0;
        while (sent <= 0) {
            sent = send(end->fd, word, sizeof word, MSG_DONTWAIT);
        }
        for (size_t got = 0; got < sizeof word;) {
            ssize_t came = recv(end->fd, word + got, sizeof word - got, MSG_DONTWAIT);
            got += came > 0 ? (size_t)came : 0;
        }
    }
}

/* How much to move next at `done`, out of or into `half` bytes again and again. */
static size_t piece_of(size_t done, size_t half)
{
    size_t left = half - done % half;
    return left < PIECE ? left : PIECE;
}

static void exchange(const struct end *end, char *memory, size_t total)
{
    size_t half = end->bytes / 2;
    char *into = memory + half;
    size_t sent = 0;
    size_t got = 0;
    while (sent < total || got < total) {
        if (sent < total) {
            ssize_t moved = send(end->fd, memory + sent % half, piece_of(sent, half), MSG_DONTWAIT);
            sent += moved > 0 ? (size_t)moved : 0;
        }
        if (got < total) {
            ssize_t moved = recv(end->fd, into + got % half, piece_of(got, half), MSG_DONTWAIT);
            got += moved > 0 ? (size_t)moved : 0;
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
    char *memory = calloc(1, end->bytes + 1);
    if (memory == NULL) {
        fail("floor_loopback: memory");
    }
    memset(memory, 1, end->bytes);
    board_pin(end->rank);
    board_barrier(end->board, 2);
    end->board->seats[end->rank].began_s = board_now_s();
    if (end->bytes > 0) {
        exchange(end, memory, total_of(end->bytes));
    } else {
        take_steps(end);
    }
    end->board->seats[end->rank].ended_s = board_now_s();
    board_barrier(end->board, 2);
    end->took_s = board_took_s(end->board, 2);
    free(memory);
    return NULL;
}

/* The shortest of some tries. */
static double best_s(
    struct board *board, size_t bytes, int send_buffer, const char *control, int tries)
{
    double best_s = 0;
    for (int try = 0; try < tries; try++) {
        struct end ends[2];
        pthread_t threads[2];
        int fds[2];
        connect_ends(fds, control);
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
    static const char *const controls[] = {NULL, "reno"};
    struct bench_plan plan;
    struct board *board = board_open(NULL);
    char *arguments[] = {"2", "r", argc > 1 ? argv[1] : NULL, "1", NULL};
    if (!bench_parse(arguments, &plan) || board == NULL) {
        return 2;
    }
    printf("step_us=%.3f\n", best_s(board, 0, 0, "reno", STEP_TRIES) / STEPS * 1e6);
    for (int i = 0; i < plan.size_count; i++) {
        double rate = 0;
        for (size_t k = 0; k < sizeof send_buffers / sizeof *send_buffers * 2; k++) {
            double took_s = best_s(board, plan.sizes[i], send_buffers[k / 2], controls[k % 2], 3);
            double now = 2 * (double)total_of(plan.sizes[i]) / took_s;
            rate = now > rate ? now : rate;
        }
        printf("rate.%zu=%.0f\n", plan.sizes[i], rate);
        fflush(stdout);
    }
    return 0;
}
