/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/servers/rounds_servers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS_MAX 8
#define CLIENTS_MAX    8
#define REPEATS_MAX    2000

const size_t servers_sizes[SERVERS_SIZES] = {
    16, (size_t)64 << 10, (size_t)4 << 20, (size_t)16 << 20, SERVERS_LARGEST};
static size_t part = 1; /* the repeats are divided by it */
static const size_t repeats[SERVERS_SIZES] = {REPEATS_MAX, 1000, 80, 24, 8};

struct figures {
    double us;
    double rate;
};

struct board {
    pthread_barrier_t start;
    struct figures figures[CLIENTS_MAX][OPERATIONS_MAX][SERVERS_SIZES];
};

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

char *servers_bytes(void)
{
    static char *bytes;
    if (bytes == NULL) {
        bytes = aligned_alloc(4096, SERVERS_LARGEST);
        if (bytes == NULL) {
            _exit(3);
        }
        memset(bytes, 0, SERVERS_LARGEST);
    }
    return bytes;
}

static bool is_gather(const struct servers_kind *kind, size_t operation)
{
    return strcmp(kind->names[operation], "gather") == 0;
}

static void measure(const struct servers_kind *kind, void *opened, size_t operation, size_t size,
    struct figures *ret_figures)
{
    static double took_s[REPEATS_MAX];
    size_t all = is_gather(kind, operation) ? 500 : repeats[size];
    size_t count = all > part ? all / part : 1;
    size_t warm = part > 1 ? 0 : count / 10 + 2;
    double began_s = 0;
    for (size_t i = 0; i < warm + count; i++) {
        double from_s = now_s();
        began_s = i == warm ? from_s : began_s;
        if (!kind->run(opened, operation, size)) {
            fprintf(
                stderr, "%s of %zu bytes failed\n", kind->names[operation], servers_sizes[size]);
            _exit(4);
        }
        if (i >= warm) {
            took_s[i - warm] = now_s() - from_s;
        }
    }
    ret_figures->rate = (double)servers_sizes[size] * (double)count / (now_s() - began_s);
    qsort(took_s, count, sizeof took_s[0], by_value);
    ret_figures->us = took_s[count / 2] * 1e6;
}

static void be_client(const struct servers_kind *kind, struct board *board, int client)
{
    servers_bytes();
    void *opened = kind->open(client);
    if (opened == NULL) {
        fprintf(stderr, "client %d could not begin\n", client);
        _exit(5);
    }
    for (size_t operation = 0; kind->names[operation] != NULL; operation++) {
        size_t sizes = is_gather(kind, operation) ? 1 : SERVERS_SIZES;
        for (size_t size = 0; size < sizes; size++) {
            pthread_barrier_wait(&board->start);
            measure(kind, opened, operation, size, &board->figures[client][operation][size]);
        }
    }
    _exit(0);
}

static void print(const struct servers_kind *kind, const struct board *board, int clients)
{
    for (size_t operation = 0; kind->names[operation] != NULL; operation++) {
        const char *name = kind->names[operation];
        size_t sizes = is_gather(kind, operation) ? 1 : SERVERS_SIZES;
        for (size_t size = 0; size < sizes; size++) {
            double rate = 0;
            for (int client = 0; client < clients; client++) {
                rate += board->figures[client][operation][size].rate;
            }
            printf("us.%s.%zu=%.2f\n", name, servers_sizes[size],
                board->figures[0][operation][size].us);
            printf("rate.%s.%zu=%.0f\n", name, servers_sizes[size], rate);
        }
    }
}

int servers_rounds(const struct servers_kind *kind, const char *clients_text, const char *part_text)
{
    int clients = clients_text != NULL ? (int)strtol(clients_text, NULL, 10) : 1;
    size_t asked = part_text != NULL ? strtoul(part_text, NULL, 10) : 1;
    part = asked >= 1 ? asked : 1;
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    if (board == MAP_FAILED || clients < 1 || clients > CLIENTS_MAX ||
        pthread_barrier_init(&board->start, &shared, (unsigned)clients) != 0) {
        return 2;
    }
    pid_t children[CLIENTS_MAX];
    for (int client = 0; client < clients; client++) {
        children[client] = fork();
        if (children[client] == 0) {
            be_client(kind, board, client);
        }
    }
    int failed = 0;
    for (int client = 0; client < clients; client++) {
        int status = 0;
        waitpid(children[client], &status, 0);
        failed = failed || status != 0;
    }
    if (!failed) {
        print(kind, board, clients);
    }
    return failed;
}
