/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/terminal.h"

#include <string.h>

#include "common/base/utf8.h"

/* "\x1b" */
static size_t escaper_escape(char byte, char *out)
{
    static const char digits[] = "0123456789abcdef";
    unsigned value = (unsigned char)byte;
    memcpy(out, "\\x", 2);
    out[2] = digits[value >> 4];
    out[3] = digits[value & 15];
    return 4;
}

static size_t flush_partial(struct escaper *escaper, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < escaper->count; i++) {
        used += escaper_escape(escaper->held[i], out + used);
    }
    escaper->count = 0;
    return used;
}

/* The bytes of the character that begins with this byte; 1 for an invalid one. */
static size_t whole_length(char first)
{
    unsigned value = (unsigned char)first;
    if (value < 0xc2 || value > 0xf4) {
        return 1;
    }
    return value >= 0xf0 ? 4 : value >= 0xe0 ? 3 : 2;
}

static size_t escape_byte(struct escaper *escaper, char byte, char *out)
{
    size_t used = 0;
    if (escaper->count > 0 && ((unsigned char)byte & 0xc0) != 0x80) {
        used = flush_partial(escaper, out);
    }
    if (escaper->count == 0 && whole_length(byte) == 1) {
        if (byte == '\n' || byte == '\t' || byte == '\r' || utf8_printable(&byte, 1) == 1) {
            out[used] = byte;
            return used + 1;
        }
        return used + escaper_escape(byte, out + used);
    }
    escaper->held[escaper->count++] = byte;
    if (escaper->count < whole_length(escaper->held[0])) {
        return used;
    }
    if (utf8_printable(escaper->held, escaper->count) != escaper->count) {
        return used + flush_partial(escaper, out + used);
    }
    memcpy(out + used, escaper->held, escaper->count);
    used += escaper->count;
    escaper->count = 0;
    return used;
}

size_t escaper_add(struct escaper *escaper, const char *bytes, size_t size, bool end, char *out)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        used += escape_byte(escaper, bytes[i], out + used);
    }
    return end ? used + flush_partial(escaper, out + used) : used;
}
