/* SPDX-License-Identifier: Apache-2.0
 * Colours and columns of a terminal, and text that is safe to print on it. */
#ifndef CADRE_CLI_RENDER_TERMINAL_H
#define CADRE_CLI_RENDER_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour { COLOUR_NONE, COLOUR_RED, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_BLUE, COLOUR_DIM };

/* How a text is drawn. */
struct text_style {
    bool colour;
    unsigned columns; /* lines are cut there; 0: they are not */
};

/* Colours on a terminal, unless NO_COLOR is set and not empty, or TERM is dumb. Columns of a
 * terminal; 0 for anything else. */
struct text_style terminal_style_of(FILE *out);

/* "\033[31m" and so on; "" without colours. */
const char *colour_start(const struct text_style *text_style, enum colour colour);
/* "\033[0m"; "" without colours or for COLOUR_NONE. */
const char *colour_end(const struct text_style *text_style, enum colour colour);

/* The number of characters of UTF-8 text. */
size_t text_columns(const char *text);

/* Writes at most `columns` characters (0: all) of a text of a job; control bytes and bytes that are
 * no UTF-8 become "?". Returns how many characters were written. */
size_t text_print(FILE *out, const char *text, size_t columns);

/* Writes a text that contains text of a job: on a terminal its control characters are escaped. */
void terminal_print(FILE *out, const char *text);

/* ---- escaper.c ----
 *
 * Makes the output of tasks safe for a terminal: control characters and bytes that are no UTF-8
 * become visible, "\x1b" for escape, so that none acts on it. Newlines, tabs and carriage returns
 * stay. */

/* A byte becomes so many at most. */
#define ESCAPER_GROWTH 4

/* One stream of bytes; zeroed at its beginning. A character may come in pieces. */
struct escaper {
    char held[4];
    size_t count;
};

/* Writes what `bytes` become to `out`, which has room for ESCAPER_GROWTH times `size` and 16 more;
 * returns how many these are. The beginning of a character is kept for the next call, unless this
 * is the `end`. */
size_t escaper_add(struct escaper *escaper, const char *bytes, size_t size, bool end, char *out);

#endif
