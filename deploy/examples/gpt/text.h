/* SPDX-License-Identifier: Apache-2.0
 * The text that is learnt from, and windows of it as a dataset. */
#ifndef GPT_TEXT_H
#define GPT_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <cadre/cadre.h>

/* A part of the text, cut into windows that lie one behind the other: each byte is foretold in one
 * window, from those before it there. */
struct part {
    const uint8_t *bytes;
    int64_t size;
    int64_t length; /* of a window */
};

struct text {
    uint8_t *bytes;
    int64_t size;
    struct part training; /* the first nine tenths */
    struct part held_out; /* the rest */
};

/* Reads the file, or all plain files of the folder in the order of their names. All tasks must find
 * the same bytes. Fails with a message for a text that is missing, or too short for one window of
 * `length` bytes of each part. The text outlives the datasets. */
cadre_status text_read(const char *path, int64_t length, struct text *ret_text);
void text_free(struct text *text); /* a zeroed one is allowed */

int64_t text_windows_count(const struct part *part);

/* Elements u8 [length + 1]: a window, and the byte behind it. Read by place. */
cadre_dataset *text_windows(struct part *part);

#endif
