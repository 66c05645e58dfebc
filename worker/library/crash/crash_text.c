/* SPDX-License-Identifier: Apache-2.0
 * Text in a handler of signals, without the C library's buffers. */
#include <poll.h>
#include <unistd.h>

#include "worker/library/crash/crash_internal.h"

/* A full pipe must not keep a crashed program from ending. */
#define READER_MS 1000

void crash_text_add(struct crash_text *text, const char *more)
{
    while (*more != '\0' && text->size < sizeof text->bytes - 1) { /* room for the newline */
        char byte = *more++;
        text->bytes[text->size++] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
}

static void add_number(struct crash_text *text, uint64_t number, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0);
    crash_text_add(text, digits + at);
}

void crash_text_hex(struct crash_text *text, uintptr_t number)
{
    crash_text_add(text, "0x");
    add_number(text, number, 16);
}

void crash_text_decimal(struct crash_text *text, uint64_t number)
{
    add_number(text, number, 10);
}

void crash_text_end(struct crash_text *text)
{
    struct pollfd reader = {.fd = STDERR_FILENO, .events = POLLOUT};
    text->bytes[text->size++] = '\n';
    if (poll(&reader, 1, READER_MS) == 1) {
        ssize_t written = write(STDERR_FILENO, text->bytes, text->size); /* less than PIPE_BUF */
        (void)written;
    }
    text->size = 0;
}
