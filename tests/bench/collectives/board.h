/* SPDX-License-Identifier: Apache-2.0
 * Where the ranks of a measurement synchronize outside of the measured code: a page of shared
 * memory. It is independent of the subject, so its time is the same beside all of them. */
#ifndef BENCH_COLLECTIVES_BOARD_H
#define BENCH_COLLECTIVES_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define BOARD_RANKS_MAX 16
#define BOARD_BYTES     4096

/* What one rank shares with the others; read after a synchronization. */
struct board_seat {
    double began_s;
    double ended_s;
    uint64_t word;
};

struct board {
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t turn;
    _Alignas(64) _Atomic uint32_t ping;
    _Alignas(64) _Atomic uint32_t pong;
    _Atomic bool failed;
    struct board_seat seats[BOARD_RANKS_MAX];
};

/* In a file of BOARD_BYTES zeros, for ranks that another program starts; NULL: without one, for
 * threads and children. NULL when there is no memory. */
struct board *board_open(const char *path);

/* Returns once all have come; false once a rank has failed. */
bool board_barrier(struct board *board, int ranks);

double board_now_s(void);

/* On the monotonic clock: from the first rank's beginning to the last one's end. */
double board_took_s(const struct board *board, int ranks);

/* The calling thread stays on CPU number rank modulo their count. */
void board_pin(int rank);

#endif
