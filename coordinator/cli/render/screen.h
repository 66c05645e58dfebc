/* SPDX-License-Identifier: Apache-2.0
 * Standard output and error of one command: lines scroll, and on a terminal a status line is
 * redrawn below them. */
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

/* Begins; `err` gets the status line if it is a terminal. */
void screen_open(struct screen *screen, FILE *out, FILE *err);

/* Erases the status line for good. */
void screen_close(struct screen *screen);

/* Writes whole lines of a program to `out` (stream 1) or `err` (2). Write errors are ignored. */
void screen_write(struct screen *screen, int stream, const char *bytes, size_t size);

/* Prints a line of the command's own on `err`; the newline is added. */
void screen_note(struct screen *screen, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Draws the status line; "" erases it. Without a terminal nothing is shown. */
void screen_status(struct screen *screen, const char *text);

#endif
