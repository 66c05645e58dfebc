/* SPDX-License-Identifier: Apache-2.0
 * Two processes that sum a vector. floor_peer.c: over one loopback connection, each sums half of
 * it, then they swap the halves. plain_peer.c: as a plain program of Cadre's under `cadre run`. */
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

/* Both processes return: floor_peer.c forks. `count` is the length of the vectors. Ends the process
 * when it cannot. */
void peer_open(struct peer *peer, size_t count);

/* Memory for a vector of zeros, until the process ends. `memory`: what the program was given; of
 * plain_peer.c's "arena" is cadre_plain_alloc's memory, all else is what malloc gives. Ends the
 * process when there is none. */
float *peer_vector(const char *memory, size_t count);

/* Replaces both vectors by their sum. */
void peer_sum(struct peer *peer, float *vector, size_t count);

/* Rank 0 waits for the other and returns its status, else 0. */
int peer_end(struct peer *peer);

#endif
