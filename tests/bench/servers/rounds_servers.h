/* SPDX-License-Identifier: Apache-2.0
 * The same rounds for each server of values: some client processes, sizes, operations; prints
 * us.OPERATION.BYTES, the median of one client, and rate.OPERATION.BYTES, bytes a second of all. */
#ifndef CADRE_BENCH_ROUNDS_SERVERS_H
#define CADRE_BENCH_ROUNDS_SERVERS_H

#include <stdbool.h>
#include <stddef.h>

#define SERVERS_LARGEST ((size_t)64 << 20)
#define SERVERS_SIZES   5
extern const size_t servers_sizes[SERVERS_SIZES];

/* Of 1,000 rows of 64 floats among 100,000: not of the sizes above. */
#define GATHER_ROWS       1000
#define GATHER_OF         100000
#define GATHER_ROW_FLOATS 64

struct servers_kind {
    /* In a client's process: the argument of the other functions. */
    void *(*open)(int client);
    /* One operation, number `operation` of `names`, to its end. False: it failed. */
    bool (*run)(void *opened, size_t operation, size_t size_index);
    const char *const *names; /* NULL ends them; "gather" has one size of its own */
};

/* `clients` and `part` are arguments of the program: so many processes, at least 1, and 10 for a
 * tenth of all rounds (NULL: 1 and all). Returns the exit status. */
int servers_rounds(const struct servers_kind *kind, const char *clients, const char *part);

/* Filled once with something. */
char *servers_bytes(void);

#endif
