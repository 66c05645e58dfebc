/* SPDX-License-Identifier: Apache-2.0
 * Separates text that is fit for a terminal or a JSON file from bytes that must be escaped
 * first. */
#ifndef CADRE_BASE_UTF8_H
#define CADRE_BASE_UTF8_H

#include <stddef.h>

/* The length in bytes (1 to 4) of the printable character that `text`, of `size` > 0 bytes,
 * starts with; 0 when its first byte is a control character or does not start a well-formed
 * UTF-8 character. U+0080 to U+009F count as control characters, because terminals execute them;
 * and so do U+202A to U+202E and U+2066 to U+2069, which change the order in which what follows
 * is shown. */
size_t utf8_printable(const char *text, size_t size);

#endif
