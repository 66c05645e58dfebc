/* SPDX-License-Identifier: Apache-2.0
 * Lines out of a buffer; see line_reader.h. */
#include "worker/library/input/files/line_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "worker/library/input/files/inflate_stream.h"
#include "worker/library/device/machine_memory.h"

/* What the buffer holds at first, and goes back to after a longer line. */
#define BUFFER_BYTES ((size_t)256 << 10)

/* From here on a larger buffer is compared with the machine's memory: the line is in it, and in the
 * tensor that is made of it. */
#define MEMORY_CHECKED_BYTES ((size_t)64 << 20)

void line_reader_close(struct line_reader *reader)
{
    inflate_stream_close(reader->stream);
    reader->stream = NULL;
    reader->start = 0;
    reader->end = 0;
    reader->ended = false;
    reader->failure.code = CADRE_OK;
    if (reader->capacity > BUFFER_BYTES) {
        free(reader->buffer);
        reader->buffer = NULL;
        reader->capacity = 0;
    }
}

void line_reader_free(struct line_reader *reader)
{
    line_reader_close(reader);
    free(reader->buffer);
    *reader = (struct line_reader){0};
}

static cadre_status too_long(const struct line_reader *reader, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "%s: the line that begins at byte %" PRIu64 " of the text is longer than the %" PRIu64
        " bytes that are taken; raise cadre_text_options.line_bytes if it is a line",
        inflate_stream_path(reader->stream), reader->offset, reader->longest);
}

/* Twice the room, but no more than the longest line and its end need. */
static cadre_status line_reader_grow(struct line_reader *reader, struct cadre_error *error)
{
    uint64_t limit = reader->longest + 2 > BUFFER_BYTES ? reader->longest + 2 : BUFFER_BYTES;
    uint64_t wanted = reader->capacity == 0 ? BUFFER_BYTES : (uint64_t)reader->capacity * 2;
    wanted = wanted < limit ? wanted : limit;
    bool too_much = wanted > MEMORY_CHECKED_BYTES && wanted > machine_memory() / 2;
    char *buffer =
        too_much || fault_point("input.line") ? NULL : realloc(reader->buffer, (size_t)wanted);
    if (buffer == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s: no memory for the line that begins at byte %" PRIu64
            " of the text and has %zu bytes and more",
            inflate_stream_path(reader->stream), reader->offset, reader->end - reader->start);
    }
    reader->buffer = buffer;
    reader->capacity = (size_t)wanted;
    return CADRE_OK;
}

/* Passes over `offset` bytes, of which the last one ends a line. */
static cadre_status go_to(struct line_reader *reader, uint64_t offset, struct cadre_error *error)
{
    uint64_t skipped = 0;
    size_t count = 0;
    char last = '\n';
    if (offset > 0) {
        CADRE_TRY(inflate_stream_skip(reader->stream, offset - 1, &skipped, error));
        CADRE_TRY(inflate_stream_read(reader->stream, &last, 1, &count, error));
    }
    if (last != '\n' || inflate_stream_offset(reader->stream) != offset) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: reading was to go on at byte %" PRIu64
            " of the text, but no line begins there; it is another file than before",
            inflate_stream_path(reader->stream), offset);
    }
    return CADRE_OK;
}

cadre_status line_reader_open(struct line_reader *reader, const char *path,
    cadre_compression compression, uint64_t longest, uint64_t offset, struct cadre_error *error)
{
    line_reader_close(reader);
    CADRE_TRY(inflate_stream_open(path, compression, &reader->stream, error));
    reader->longest = longest;
    reader->offset = offset;
    cadre_status status = reader->buffer == NULL ? line_reader_grow(reader, error) : CADRE_OK;
    if (status == CADRE_OK) {
        status = go_to(reader, offset, error);
    }
    if (status != CADRE_OK) {
        line_reader_close(reader);
    }
    return status;
}

/* Reads on behind what is in the buffer, which has room at its end or at its start. The lines that
 * were found in it move with it. */
static cadre_status line_reader_fill(
    struct line_reader *reader, cadre_string lines[], size_t found, struct cadre_error *error)
{
    if (reader->start > 0 && reader->capacity - reader->end < reader->capacity / 2) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        for (size_t i = 0; i < found; i++) {
            lines[i].bytes -= reader->start;
        }
        reader->end -= reader->start;
        reader->start = 0;
    }
    size_t count = 0;
    CADRE_TRY(inflate_stream_read(reader->stream, reader->buffer + reader->end,
        reader->capacity - reader->end, &count, error));
    reader->ended = count == 0;
    reader->end += count;
    return CADRE_OK;
}

/* What was found is given before a failure that comes after it. */
static cadre_status line_reader_postpone(struct line_reader *reader, size_t found,
    const struct cadre_error *failure, struct cadre_error *error)
{
    if (found > 0) {
        reader->failure = *failure;
        return CADRE_OK;
    }
    if (error != NULL) {
        *error = *failure;
    }
    return failure->code;
}

/* The line that begins `at` bytes behind `start`; it has no end before `*seen`. false: it has none
 * in the buffer. *ret_next is where the next one begins. */
static bool find_text_line(const struct line_reader *reader, size_t at, size_t *seen,
    cadre_string *ret_text_line, size_t *ret_next)
{
    const char *text = reader->buffer + reader->start;
    size_t bytes = reader->end - reader->start;
    const char *newline = memchr(text + *seen, '\n', bytes - *seen);
    *seen = bytes;
    if (newline != NULL) {
        size_t end = (size_t)(newline - text);
        *ret_next = end + 1;
        bool carriage_return = end > at && text[end - 1] == '\r';
        *ret_text_line = (cadre_string){.bytes = text + at, .size = end - at - carriage_return};
        return true;
    }
    *ret_next = bytes;
    *ret_text_line = (cadre_string){.bytes = text + at, .size = bytes - at};
    return reader->ended && at < bytes;
}

cadre_status line_reader_next(struct line_reader *reader, cadre_string lines[], size_t wanted,
    size_t *ret_count, struct cadre_error *error)
{
    struct cadre_error failure = reader->failure;
    size_t found = 0;
    size_t at = 0; /* of the line that is looked for, from `start` on */
    size_t seen = 0;
    while (failure.code == CADRE_OK && found < wanted) {
        cadre_string text_line;
        size_t next = 0;
        bool whole = find_text_line(reader, at, &seen, &text_line, &next);
        /* An unfinished line may yet end in "\r\n". */
        if (text_line.size > reader->longest + (whole ? 0 : 1)) {
            too_long(reader, &failure);
        } else if (whole) {
            lines[found++] = text_line;
            reader->offset += next - at;
            at = next;
            seen = next;
        } else if (reader->ended ||
                   (found > 0 && reader->end - reader->start == reader->capacity)) {
            break;
        } else if (reader->end - reader->start < reader->capacity) {
            line_reader_fill(reader, lines, found, &failure);
        } else {
            line_reader_grow(reader, &failure);
        }
    }
    reader->start += at;
    *ret_count = found;
    return failure.code == CADRE_OK ? CADRE_OK
                                    : line_reader_postpone(reader, found, &failure, error);
}
