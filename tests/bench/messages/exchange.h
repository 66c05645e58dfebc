/* SPDX-License-Identifier: Apache-2.0
 * Times messages between two ranks, the same way for each subject: there and back again, and both
 * ways at once. Each size is done as often as takes a while; rank 0 prints the time of one message,
 * the best and the median of several batches, as back_and_forth.BYTES.us and both_ways.BYTES.us.
 * What arrives is checked. */
#ifndef BENCH_MESSAGES_EXCHANGE_H
#define BENCH_MESSAGES_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>

#define EXCHANGE_BYTES_MAX ((size_t)4 << 20)

/* Functions of a subject; each returns whether it succeeded. `sent` and `received` have room for
 * EXCHANGE_BYTES_MAX bytes each, as the subject's programs would take it. */
struct exchange_subject {
    char *sent;
    char *received;
    bool (*send)(const char *from, size_t bytes);
    bool (*receive)(char *into, size_t bytes);
    bool (*both)(const char *from, char *into, size_t bytes);
};

/* By each of two ranks, which are processes; so many batches (NULL or no such number: all). Returns
 * the exit status. */
int exchange_run(const struct exchange_subject *subject, int rank, const char *batches);

#endif
