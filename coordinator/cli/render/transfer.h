/* SPDX-License-Identifier: Apache-2.0
 * The status line of an upload or a download: how much of it is done, how fast, how long it takes
 * still. On a terminal only; the command's output is not changed by it. */
#ifndef CADRE_CLI_RENDER_TRANSFER_H
#define CADRE_CLI_RENDER_TRANSFER_H

#include <stdint.h>

#include "coordinator/cli/render/screen.h"

struct transfer {
    struct screen screen;
    uint64_t begin_us;
    uint64_t drawn_us;
    bool drawn; /* once */
};

/* Begins at a time of the monotonic clock. */
void transfer_open(struct transfer *transfer, FILE *out, FILE *err, uint64_t now_us);

/* Shows "<doing>  12.0 MiB/64.0 MiB [===>    ]  31.5 MiB/s  0:02 left", at most ten times a second;
 * the rate is that since transfer_open(). Control characters of `doing` become "?". */
void transfer_show(struct transfer *transfer, const char *doing, uint64_t done_bytes,
    uint64_t whole_bytes, uint64_t now_us);

/* Erases the line until the next transfer_show(), so that something can be printed. */
void transfer_clear(struct transfer *transfer);

#endif
