/* SPDX-License-Identifier: Apache-2.0
 * Batches of messages, timed; both ranks do the same number of them, so nothing is agreed on. */
#include "exchange.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCHES_MAX 11

static const size_t sizes[] = {8, 4096, 65536, 1 << 20, EXCHANGE_BYTES_MAX};

/* About 10 ms of the fastest that there is. */
static int times_of(size_t bytes)
{
    return bytes <= 4096 ? 4000 : bytes <= 65536 ? 1000 : bytes <= 1 << 20 ? 60 : 15;
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static bool back_and_forth(const struct exchange_subject *subject, int rank, size_t bytes)
{
    return rank == 0
               ? subject->send(subject->sent, bytes) && subject->receive(subject->received, bytes)
               : subject->receive(subject->received, bytes) && subject->send(subject->sent, bytes);
}

static bool both_ways(const struct exchange_subject *subject, int rank, size_t bytes)
{
    (void)rank;
    return subject->both(subject->sent, subject->received, bytes);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left;
    double b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool right(const struct exchange_subject *subject, int rank, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (subject->received[i] != (char)(i * 7 + (rank == 0 ? 1 : 0))) {
            fprintf(stderr, "byte %zu of %zu is wrong\n", i, bytes);
            return false;
        }
    }
    memset(subject->received, 99, bytes);
    return true;
}

/* `messages`: that follow each other in one turn. */
static bool measure(const struct exchange_subject *subject, int rank, size_t bytes,
    const char *name, int messages, bool (*turn)(const struct exchange_subject *, int, size_t),
    int batches)
{
    double took_us[BATCHES_MAX];
    int times = times_of(bytes);
    for (int batch = 0; batch < batches; batch++) {
        double began_us = now_us();
        for (int i = 0; i < times; i++) {
            if (!turn(subject, rank, bytes)) {
                return false;
            }
        }
        took_us[batch] = (now_us() - began_us) / times / messages;
        if (!right(subject, rank, bytes)) {
            return false;
        }
    }
    qsort(took_us, (size_t)batches, sizeof took_us[0], compare);
    if (rank == 0) {
        printf("%s.%zu.us=%.3f\n%s.%zu.best_us=%.3f\n", name, bytes, took_us[batches / 2], name,
            bytes, took_us[0]);
    }
    return true;
}

int exchange_run(const struct exchange_subject *subject, int rank, const char *batches)
{
    long asked = batches != NULL ? strtol(batches, NULL, 10) : BATCHES_MAX;
    int count = asked >= 1 && asked < BATCHES_MAX ? (int)asked : BATCHES_MAX;
    for (size_t i = 0; i < EXCHANGE_BYTES_MAX; i++) {
        subject->sent[i] = (char)(i * 7 + (size_t)rank);
        subject->received[i] = 99;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (!measure(subject, rank, sizes[i], "back_and_forth", 2, back_and_forth, count) ||
            !measure(subject, rank, sizes[i], "both_ways", 1, both_ways, count)) {
            return 1;
        }
    }
    return 0;
}
