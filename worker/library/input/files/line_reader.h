/* SPDX-License-Identifier: Apache-2.0
 * The lines of one text file, out of a buffer that grows with the longest of them. One thread at a
 * time. */
#ifndef CADRE_WORKER_INPUT_FILES_LINE_READER_H
#define CADRE_WORKER_INPUT_FILES_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/sources.h"
#include "common/base/error.h"

struct inflate_stream;

/* Zeroed: closed. The buffer is kept from file to file. */
struct line_reader {
    struct inflate_stream *stream;
    uint64_t longest; /* bytes of a line, without its end */
    char *buffer;
    size_t capacity;
    size_t start;               /* of the next line */
    size_t end;                 /* of what was read */
    uint64_t offset;            /* of `start` in the text */
    bool ended;                 /* the stream has no more */
    struct cadre_error failure; /* of the stream, after lines that were whole */
};

/* Opens a file behind the line that ends at byte `offset` of its text; 0: at its start.
 * INVALID_ARGUMENT: no line ends there. On failure the reader is closed. */
cadre_status line_reader_open(struct line_reader *reader, const char *path,
    cadre_compression compression, uint64_t longest, uint64_t offset, struct cadre_error *error);

/* The next lines, `wanted` of them at most (>= 1), as they lie in the buffer, without "\n" or
 * "\r\n": valid until the next call. At least one, and all that are wanted if the buffer can hold
 * them; *ret_count 0: the end. RESOURCE_EXHAUSTED: a line is too long. */
cadre_status line_reader_next(struct line_reader *reader, cadre_string lines[], size_t wanted,
    size_t *ret_count, struct cadre_error *error);

/* Closes the file; the buffer stays. */
void line_reader_close(struct line_reader *reader);

/* Closes the file and frees the buffer. */
void line_reader_free(struct line_reader *reader);

#endif
