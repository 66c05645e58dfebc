/* SPDX-License-Identifier: Apache-2.0
 * Builds a sentence in a fixed buffer without libc: what does not fit is cut off before a whole
 * UTF-8 character, nothing is added after a cut, and the result is always terminated. For the
 * cores, which must not call snprintf. And what a hexadecimal digit stands for. */
#ifndef CADRE_PURE_TEXT_H
#define CADRE_PURE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct text {
    char *at;    /* where the next byte goes; it holds the terminator */
    size_t left; /* bytes left, without the terminator */
};

/* Empties `buffer`, which has room for `size` bytes with the terminator; size > 0. */
struct text text_begin(char *buffer, size_t size);

/* Appends a string, up to the end of the buffer. */
void text_add(struct text *text, const char *string);
/* Appends the number in decimal. */
void text_add_u64(struct text *text, uint64_t value);
/* The same, with a sign. */
void text_add_i64(struct text *text, int64_t value);

/* 0 to 15; -1: it is none. Small letters and capitals. */
int text_hex_digit(char c);

#endif
