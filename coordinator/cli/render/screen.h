/* SPDX-License-Identifier: Apache-2.0
 * Standard output and error of one command: lines scroll, and on a terminal a status line is
 * redrawn below them. */
#ifndef CADRE_CLI_RENDER_SCREEN_H
#define CADRE_CLI_RENDER_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- The full screen of a terminal; its former contents are restored afterwards ---- */

/* Takes the terminal of standard input and output; false: they are none, or a dumb
 * one. Ended by full_screen_close(), also when a signal ends the process. One at a time. */
bool full_screen_open(void);
/* Restores the terminal; without full_screen_open() it does nothing. */
void full_screen_close(void);

/* Shows text, as many of its lines as fit, in place of what was shown. */
void full_screen_show(const char *text, size_t size);

/* Waits; returns the key that was pressed, or 0 when `wait_us` passed, the window got another size
 * (*ret_resized) or a signal came. */
int full_screen_key(uint64_t wait_us, bool *ret_resized);

#endif
