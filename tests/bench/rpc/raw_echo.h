/* SPDX-License-Identifier: Apache-2.0
 * The floor: an echo of MESSAGE_BYTES over TCP with nothing but epoll at both ends. */
#ifndef CADRE_BENCH_RAW_ECHO_H
#define CADRE_BENCH_RAW_ECHO_H

#include <stdint.h>

#define MESSAGE_BYTES   64
#define CONCURRENCY_MAX 256

/* Round trips and their times in one window. */
struct samples {
    uint64_t *took_us;
    uint32_t count, room;
};

void samples_add(struct samples *samples, uint64_t took_us);

/* Listens on a loopback port, tells it to ready(port), and echoes until the process ends. */
void raw_serve(void (*ready)(int port));

/* Keeps `concurrency` connections with one message each going until `end_us`. */
void raw_drive(int port, int concurrency, uint64_t end_us, struct samples *samples);

#endif
