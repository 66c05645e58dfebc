/* SPDX-License-Identifier: Apache-2.0
 * The progress of a training as a line of text, for a program run by hand and for the command line:
 *
 *     train  epoch 3/20  step 17/23 [======>     ]  loss 0.213  9.1k samples/s  0:04 left
 *
 * and of other work that takes a while:
 *
 *     reading the ledger  8128/20000 epochs [=======>            ]
 *     uploading train.bin  12.0 MiB/64.0 MiB [===>                ]  31.5 MiB/s  0:02 left
 *
 * Text only: where it is written, how often, and whether the line is redrawn is the caller's. */
#ifndef CADRE_BASE_PROGRESS_BAR_H
#define CADRE_BASE_PROGRESS_BAR_H

#include <stddef.h>
#include <stdint.h>

#define PROGRESS_BAR_METRICS_MAX 16
#define PROGRESS_BAR_TEXT_BYTES  512

struct progress_bar_metric {
    const char *name;
    double value;
};

struct progress_bar {
    const char *stream;   /* the dataset's name; "" or NULL: not shown, nor is an epoch of none */
    uint64_t epoch;       /* from 0 */
    uint64_t epochs;      /* 0: unknown */
    uint64_t step;        /* done in this epoch */
    uint64_t steps;       /* of an epoch; 0: unknown */
    double samples_per_s; /* not above 0: not shown */
    double left_s;        /* negative: unknown */
    const struct progress_bar_metric *metrics;
    size_t metric_count; /* those after PROGRESS_BAR_METRICS_MAX are left out */
};

/* Writes the line, of at most `columns` columns (0: as long as it gets), and returns `text`: in
 * fewer the bar shrinks or goes, then the line is cut at its end. Names are shown byte by byte,
 * with '?' for control bytes. */
const char *progress_bar_render(
    const struct progress_bar *progress, unsigned columns, char text[PROGRESS_BAR_TEXT_BYTES]);

struct progress_work {
    const char *doing; /* "reading the ledger" */
    const char *units; /* "epochs" */
    uint64_t done;
    uint64_t whole; /* 0: unknown */
    /* "12.0 MiB/64.0 MiB" in place of the counts and units, or NULL. */
    const char *amount;
    const char *rate; /* "31.5 MiB/s"; NULL: neither it nor the time left is shown */
    double left_s;    /* negative: unknown */
};

/* The line for work other than a training, likewise. */
const char *progress_bar_render_work(
    const struct progress_work *part, unsigned columns, char text[PROGRESS_BAR_TEXT_BYTES]);

/* "31.5 MiB", in `text`, which it returns. */
#define PROGRESS_BYTES_TEXT 32
const char *progress_bar_bytes(uint64_t bytes, char text[PROGRESS_BYTES_TEXT]);

/* The line for an epoch that is over, where nothing can be redrawn: without bar and time left. */
const char *progress_bar_render_epoch(
    const struct progress_bar *progress, char text[PROGRESS_BAR_TEXT_BYTES]);

#endif
