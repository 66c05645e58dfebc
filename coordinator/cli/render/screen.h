/* SPDX-License-Identifier: Apache-2.0
 * Standard output and error together: lines scroll, and below them, on a terminal, one line is
 * redrawn in place. */
#ifndef CADRE_CLI_RENDER_SCREEN_H
#define CADRE_CLI_RENDER_SCREEN_H

#include "coordinator/cli/render/terminal.h"

#define SCREEN_STATUS_BYTES 1024
#define SCREEN_NOTE_BYTES   4096 /* what is longer is cut */

struct screen {
    FILE *out;
    FILE *err;
    struct text_style out_style;
    struct text_style err_style;
    bool live; /* `err` is a terminal: there is a status line */
    bool drawn;
    char status[SCREEN_STATUS_BYTES];
};

void screen_open(struct screen *screen, FILE *out, FILE *err);

/* Erases the status line for good. */
void screen_close(struct screen *screen);

/* Writes what a program printed, whole lines, to `out` (stream 1) or `err` (2). A reader that went
 * away is no reason to stop. */
void screen_write(struct screen *screen, int stream, const char *bytes, size_t size);

/* A line of our own on `err`; the newline is added. */
void screen_note(struct screen *screen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Draws the status line; "" erases it. Without a terminal nothing is shown. */
void screen_status(struct screen *screen, const char *text);

#endif
