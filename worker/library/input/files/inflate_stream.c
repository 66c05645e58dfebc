/* SPDX-License-Identifier: Apache-2.0
 * Plain bytes of compressed files, by ISA-L's igzip: measured at two to three times the speed of
 * zlib 1.2.13, and a dependency already. What it does not do by itself is done here: members that
 * follow one another, unread bytes given back at the end of one, and flags that must be zero.
 *
 * Gzip: RFC 1952, zlib: RFC 1950. */
#include "worker/library/input/files/inflate_stream.h"

#include <inttypes.h>
#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "worker/library/input/files/input_file.h"

/* Compressed bytes read at a time. */
#define INPUT_BYTES ((size_t)128 << 10)

/* Room before them, for bytes that the decompressor took and did not need. */
#define UNREAD_BYTES sizeof(uint64_t)

/* One call of the decompressor writes no more than this: it counts in 32 bits. */
#define OUTPUT_BYTES_MAX ((size_t)1 << 30)

#define SKIP_BYTES ((size_t)16 << 10)

#define GZIP_RESERVED_FLAGS 0xe0u
#define ZLIB_WINDOW_MAX     7u

enum stage { STAGE_BETWEEN, STAGE_HEADER, STAGE_BODY };

struct inflate_stream {
    struct input_file file;
    struct object_ahead ahead;
    cadre_compression compression;
    uint64_t given; /* plain bytes */

    /* Of compressed files only. */
    enum stage stage;
    int64_t loaded;       /* bytes of the file that have been read */
    int64_t member_start; /* where in the file the member at hand begins */
    struct isal_gzip_header gzip_header;
    struct isal_zlib_header zlib_header;
    struct inflate_state state;
    uint8_t input[UNREAD_BYTES + INPUT_BYTES];
};

cadre_status inflate_stream_open(const char *path, cadre_compression compression,
    struct inflate_stream **ret_stream, struct cadre_error *error)
{
    *ret_stream = NULL;
    bool compressed =
        compression == CADRE_COMPRESSION_GZIP || compression == CADRE_COMPRESSION_ZLIB;
    if (!compressed && compression != CADRE_COMPRESSION_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: %d is not a compression; use one of enum cadre_compression", path,
            (int)compression);
    }
    /* Most of it is the decompressor's, and costs nothing where it is never touched. */
    struct inflate_stream *stream = fault_point("input.inflate") ? NULL : calloc(1, sizeof *stream);
    if (stream == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "%s: no memory to read it (%zu bytes)", path, sizeof *stream);
    }
    cadre_status status = input_file_open(&stream->file, path, true, error);
    if (status != CADRE_OK) {
        free(stream);
        return status;
    }
    stream->compression = compression;
    if (compressed) {
        isal_inflate_init(&stream->state);
        stream->state.next_in = stream->input + UNREAD_BYTES;
    }
    *ret_stream = stream;
    return CADRE_OK;
}

static const char *kind_name(const struct inflate_stream *stream)
{
    return stream->compression == CADRE_COMPRESSION_GZIP ? "gzip" : "zlib";
}

/* The offset in the file of the next byte that was not used. */
static int64_t position_in_file(const struct inflate_stream *stream)
{
    int64_t unread = (int64_t)stream->state.avail_in + stream->state.read_in_length / 8;
    return unread < stream->loaded ? stream->loaded - unread : 0;
}

/* What the decompressor means. */
static const char *inflate_stream_reason(int code)
{
    switch (code) {
    case ISAL_INVALID_BLOCK:
        return "a block begins wrongly";
    case ISAL_INVALID_SYMBOL:
        return "a code that does not exist";
    case ISAL_INVALID_LOOKBACK:
        return "a repetition of bytes before the start";
    case ISAL_INVALID_WRAPPER:
        return "the header is not one";
    case ISAL_UNSUPPORTED_METHOD:
        return "the header names a method that does not exist";
    case ISAL_INCORRECT_CHECKSUM:
        return "a checksum is wrong";
    default:
        return "the decompressor cannot go on";
    }
}

static cadre_status cut_short(const struct inflate_stream *stream, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s is cut short: its %" PRId64
        " bytes end inside the %s stream that begins at byte %" PRId64 "; copy the file again",
        stream->file.path, stream->file.bytes, kind_name(stream), stream->member_start);
}

/* A header that is none: the file is of another kind, or has something behind its last member. */
static cadre_status wrong_header(
    const struct inflate_stream *stream, const char *why, struct cadre_error *error)
{
    if (stream->member_start == 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s is not a %s file (%s); say how it is compressed, or copy it again",
            stream->file.path, kind_name(stream), why);
    }
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s: after the end of the %s stream, from byte %" PRId64
        " on, stands something else (%s); remove it, or copy the file again",
        stream->file.path, kind_name(stream), stream->member_start, why);
}

static cadre_status inflate_stream_damaged(
    const struct inflate_stream *stream, int code, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s: the %s stream is damaged near byte %" PRId64 " of the file (%s); copy the file again",
        stream->file.path, kind_name(stream), position_in_file(stream),
        inflate_stream_reason(code));
}

static cadre_status inflate_stream_load(struct inflate_stream *stream, struct cadre_error *error)
{
    struct inflate_state *state = &stream->state;
    int64_t left = stream->file.bytes - stream->loaded;
    if (state->avail_in > 0 || left == 0) {
        return CADRE_OK;
    }
    size_t bytes = left < (int64_t)INPUT_BYTES ? (size_t)left : INPUT_BYTES;
    state->next_in = stream->input + UNREAD_BYTES;
    CADRE_TRY(input_file_read_on(
        &stream->file, &stream->ahead, stream->loaded, state->next_in, bytes, error));
    state->avail_in = (uint32_t)bytes;
    stream->loaded += (int64_t)bytes;
    return CADRE_OK;
}

static void begin_member(struct inflate_stream *stream)
{
    bool gzip = stream->compression == CADRE_COMPRESSION_GZIP;
    stream->member_start = position_in_file(stream);
    isal_inflate_reset(&stream->state);
    /* The header is read here, in pieces if need be, which isal_inflate itself cannot. */
    stream->state.crc_flag = gzip ? ISAL_GZIP_NO_HDR_VER : ISAL_ZLIB_NO_HDR_VER;
    stream->gzip_header = (struct isal_gzip_header){0};
    stream->zlib_header = (struct isal_zlib_header){0};
    stream->stage = STAGE_HEADER;
}

/* A header that is not there in full: what there is of it tells a file that was cut from one that
 * has something else at its end. */
static cadre_status short_header(struct inflate_stream *stream, struct cadre_error *error)
{
    static const uint8_t gzip_begins[2] = {0x1f, 0x8b};
    uint8_t begins[2];
    int64_t left = stream->file.bytes - stream->member_start;
    size_t bytes = left < 2 ? (size_t)left : 2;
    if (stream->compression == CADRE_COMPRESSION_GZIP && bytes > 0) {
        CADRE_TRY(input_file_read(&stream->file, stream->member_start, begins, bytes, error));
        if (memcmp(begins, gzip_begins, bytes) != 0) {
            return wrong_header(stream, inflate_stream_reason(ISAL_INVALID_WRAPPER), error);
        }
    }
    return cut_short(stream, error);
}

/* Reads on in the header; the stage changes when it is complete. `ended`: there is no more input.
 */
static cadre_status read_header(
    struct inflate_stream *stream, bool ended, struct cadre_error *error)
{
    struct inflate_state *state = &stream->state;
    bool gzip = stream->compression == CADRE_COMPRESSION_GZIP;
    int code = gzip ? isal_read_gzip_header(state, &stream->gzip_header)
                    : isal_read_zlib_header(state, &stream->zlib_header);
    if (code == ISAL_END_INPUT) {
        return ended ? short_header(stream, error) : CADRE_OK;
    }
    if (code != ISAL_DECOMP_OK) {
        return wrong_header(stream, inflate_stream_reason(code), error);
    }
    if (gzip && (stream->gzip_header.flags & GZIP_RESERVED_FLAGS) != 0) {
        return wrong_header(stream, "the header has flags that do not exist", error);
    }
    if (!gzip && stream->zlib_header.info > ZLIB_WINDOW_MAX) {
        return wrong_header(stream, "the header asks for a window that does not exist", error);
    }
    if (!gzip && stream->zlib_header.dict_flag != 0) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED,
            "%s needs a dictionary to be decompressed; compress it without one", stream->file.path);
    }
    stream->stage = STAGE_BODY;
    return CADRE_OK;
}

/* The decompressor takes up to eight bytes ahead: those behind the end of a member go back. */
static void end_member(struct inflate_stream *stream)
{
    struct inflate_state *state = &stream->state;
    uint32_t unread = (uint32_t)state->read_in_length / 8;
    uint64_t bits = state->read_in >> (state->read_in_length % 8);
    state->next_in -= unread;
    for (uint32_t i = 0; i < unread; i++) {
        state->next_in[i] = (uint8_t)(bits >> (8 * i));
    }
    state->avail_in += unread;
    state->read_in_length = 0;
    stream->stage = STAGE_BETWEEN;
}

static cadre_status inflate_body(
    struct inflate_stream *stream, bool ended, struct cadre_error *error)
{
    struct inflate_state *state = &stream->state;
    const uint8_t *before = state->next_out;
    int code = isal_inflate(state);
    if (code != ISAL_DECOMP_OK) {
        return inflate_stream_damaged(stream, code, error);
    }
    if (state->block_state == ISAL_BLOCK_FINISH) {
        end_member(stream);
    } else if (ended && state->next_out == before) {
        return cut_short(stream, error);
    }
    return CADRE_OK;
}

static cadre_status read_compressed(struct inflate_stream *stream, void *to, size_t bytes,
    size_t *ret_count, struct cadre_error *error)
{
    struct inflate_state *state = &stream->state;
    state->next_out = to;
    state->avail_out = (uint32_t)(bytes < OUTPUT_BYTES_MAX ? bytes : OUTPUT_BYTES_MAX);
    while (state->next_out == to) {
        CADRE_TRY(inflate_stream_load(stream, error));
        bool ended = state->avail_in == 0;
        if (stream->stage == STAGE_BETWEEN) {
            if (ended && stream->file.bytes > 0) {
                break;
            }
            begin_member(stream);
        }
        if (stream->stage == STAGE_HEADER) {
            CADRE_TRY(read_header(stream, ended, error));
        } else {
            CADRE_TRY(inflate_body(stream, ended, error));
        }
    }
    *ret_count = (size_t)(state->next_out - (uint8_t *)to);
    return CADRE_OK;
}

cadre_status inflate_stream_read(struct inflate_stream *stream, void *to, size_t bytes,
    size_t *ret_count, struct cadre_error *error)
{
    *ret_count = 0;
    if (stream->compression != CADRE_COMPRESSION_NONE) {
        CADRE_TRY(read_compressed(stream, to, bytes, ret_count, error));
    } else {
        uint64_t left = (uint64_t)stream->file.bytes - stream->given;
        size_t count = left < bytes ? (size_t)left : bytes;
        CADRE_TRY(input_file_read_on(
            &stream->file, &stream->ahead, (int64_t)stream->given, to, count, error));
        *ret_count = count;
    }
    stream->given += *ret_count;
    return CADRE_OK;
}

cadre_status inflate_stream_skip(
    struct inflate_stream *stream, uint64_t bytes, uint64_t *ret_skipped, struct cadre_error *error)
{
    *ret_skipped = 0;
    if (stream->compression == CADRE_COMPRESSION_NONE) {
        uint64_t left = (uint64_t)stream->file.bytes - stream->given;
        *ret_skipped = left < bytes ? left : bytes;
        stream->given += *ret_skipped;
        return CADRE_OK;
    }
    while (*ret_skipped < bytes) {
        uint8_t passed[SKIP_BYTES];
        uint64_t left = bytes - *ret_skipped;
        size_t count = 0;
        CADRE_TRY(inflate_stream_read(
            stream, passed, left < SKIP_BYTES ? (size_t)left : SKIP_BYTES, &count, error));
        if (count == 0) {
            break;
        }
        *ret_skipped += count;
    }
    return CADRE_OK;
}

uint64_t inflate_stream_offset(const struct inflate_stream *stream)
{
    return stream->given;
}

const char *inflate_stream_path(const struct inflate_stream *stream)
{
    return stream->file.path;
}

void inflate_stream_close(struct inflate_stream *stream)
{
    if (stream != NULL) {
        object_ahead_end(&stream->ahead);
        input_file_close(&stream->file);
        free(stream);
    }
}
