/* SPDX-License-Identifier: Apache-2.0
 * The file in which every participant writes when it entered and left each round: u64 nanoseconds
 * of CLOCK_MONOTONIC, [participants][rounds][2]. report.py reads it. */
#ifndef CADRE_BENCH_TIMES_H
#define CADRE_BENCH_TIMES_H

#include <stdint.h>

struct times {
    uint64_t *stamps; /* of this participant: [rounds][2] */
    uint32_t rounds;
    void *mapped;
    uint64_t mapped_bytes;
};

/* Maps the file, making it `participants` large; exits with a message when it cannot. */
struct times times_open(
    const char *path, uint32_t participants, uint32_t rounds, uint32_t participant);
uint64_t times_now(void);

#endif
