/* SPDX-License-Identifier: Apache-2.0
 * Two processes that sum a vector over one loopback connection: each sums half of it, then they
 * swap the halves. */
#ifndef BENCH_FLOOR_PEER_H
#define BENCH_FLOOR_PEER_H

#include <stddef.h>
#include <sys/types.h>

struct peer {
    int fd;
    int rank;    /* 0 or 1 */
    pid_t child; /* of rank 0 */
    float *received;
};

/* Forks: both processes return. `count` is the length of the vectors. Ends the process when it
 * cannot. */
void peer_fork(struct peer *peer, size_t count);

/* Replaces both vectors by their sum. */
void peer_sum(struct peer *peer, float *vector, size_t count);

/* Rank 0 waits for the other and returns its status, else 0. */
int peer_end(struct peer *peer);

#endif
