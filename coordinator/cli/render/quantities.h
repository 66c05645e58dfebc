/* SPDX-License-Identifier: Apache-2.0
 * Ages, durations and sizes as text. Pure. */
#ifndef CADRE_CLI_RENDER_QUANTITIES_H
#define CADRE_CLI_RENDER_QUANTITIES_H

#include <stdint.h>

#define RENDER_BYTES 64

/* An age: "42 s", "5 min", "3 h", "2 d". */
const char *render_age(uint64_t span_us, char text[RENDER_BYTES]);
/* A duration: "85 ms", "2.1 s", "3:25 min", "1:04:10 h". */
const char *render_duration(uint64_t span_us, char text[RENDER_BYTES]);
/* A size: "512 B", "12.5 KiB", "1.2 GiB". */
const char *render_bytes(uint64_t bytes, char text[RENDER_BYTES]);

#endif
