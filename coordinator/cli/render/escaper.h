/* SPDX-License-Identifier: Apache-2.0
 * Makes the output of tasks safe for a terminal: control characters and bytes that are no UTF-8
 * become visible, "\x1b" for escape, so that none acts on it. Newlines, tabs and carriage returns
 * stay. */
#ifndef CADRE_CLI_RENDER_ESCAPER_H
#define CADRE_CLI_RENDER_ESCAPER_H

#include <stdbool.h>
#include <stddef.h>

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
