/* SPDX-License-Identifier: Apache-2.0
 * The floor: an echo of MESSAGE_BYTES over a socket with nothing but epoll at both ends. */
#ifndef CADRE_BENCH_RAW_ECHO_H
#define CADRE_BENCH_RAW_ECHO_H

#include "rounds.h"

/* Listens on a loopback port, passes it to ready(port), and echoes until the process ends. */
void raw_serve(void (*ready)(int port));

/* Keeps `concurrency` connections with one message each under way until `end_us`, and until the
 * first came back: to the loopback port, or, where `path` is given, to that Unix socket. */
void raw_drive(
    int port, const char *path, int concurrency, uint64_t end_us, struct samples *samples);

#endif
