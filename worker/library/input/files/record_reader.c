/* SPDX-License-Identifier: Apache-2.0
 * Records in order; see record_reader.h.
 *
 * Unread bytes lie in a block, a tensor of bytes. What is incomplete at its end moves to the start
 * of it before more is read; to a new one when the block was handed out. */
#include "worker/library/input/files/record_reader.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/files/inflate_stream.h"

/* Behind a record at least this long only its successor's page is read when headers are looked at:
 * a jump costs a system call, and 64 KiB take as long as several. */
#define JUMP_BYTES_MIN ((uint64_t)64 << 10)
#define JUMP_READ      ((size_t)4 << 10)

/* A block of its own for many records starts no larger, whatever they are expected to take. */
#define BLOCK_BYTES_FIRST ((uint64_t)64 << 20)

#define RECORDS_FIRST 64

struct record_reader {
    struct inflate_stream *stream;
    struct record_rules rules;
    size_t buffer_bytes;

    cadre_tensor *block;
    uint8_t *bytes; /* of the block */
    size_t capacity;
    bool given;   /* the block was handed out: nothing in it may change */
    size_t begin; /* unread bytes */
    size_t end;

    uint64_t offset; /* of bytes[begin] */
    uint64_t number;

    cadre_string *records;
    size_t records_room;

    /* Of reading on. It is returned when the records before it have been given. */
    struct cadre_error failure;
};

cadre_status record_reader_open(const char *path, const struct record_options *options,
    struct record_reader **ret_reader, struct cadre_error *error)
{
    CADRE_ASSERT(options->buffer_bytes >= 1);
    CADRE_ASSERT(options->rules.record_bytes <= RECORD_BYTES_LIMIT);
    *ret_reader = NULL;
    struct record_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for a reader of records", path);
    }
    reader->rules = options->rules;
    reader->buffer_bytes =
        options->buffer_bytes > RECORD_FRAME_BYTES ? options->buffer_bytes : RECORD_FRAME_BYTES;
    cadre_status status = inflate_stream_open(path, options->compression, &reader->stream, error);
    if (status != CADRE_OK) {
        free(reader);
        return status;
    }
    *ret_reader = reader;
    return CADRE_OK;
}

void record_reader_close(struct record_reader *reader)
{
    if (reader != NULL) {
        inflate_stream_close(reader->stream);
        cadre_tensor_release(reader->block);
        free(reader->records);
        free(reader);
    }
}

uint64_t record_reader_offset(const struct record_reader *reader)
{
    return reader->offset;
}

uint64_t record_reader_number(const struct record_reader *reader)
{
    return reader->number;
}

/* --- errors --- */

cadre_status record_fault_error(enum record_fault fault, uint64_t length,
    const struct record_rules *rules, const char *path, uint64_t number, uint64_t offset,
    struct cadre_error *error)
{
    switch (fault) {
    case RECORD_TOO_LONG:
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s, record %" PRIu64 " at offset %" PRIu64 ": a length of %" PRIu64
            " bytes, over the limit of %" PRIu64
            "; the file is damaged or no TFRecord file, or the limit (record_bytes) is too small",
            path, number, offset, length, rules->record_bytes);
    case RECORD_DATA_DAMAGED:
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s, record %" PRIu64 " at offset %" PRIu64 ": the checksum of its %" PRIu64
            " bytes of data is wrong; copy the file again",
            path, number, offset, length);
    default:
        CADRE_ASSERT(fault == RECORD_LENGTH_DAMAGED);
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s, record %" PRIu64 " at offset %" PRIu64
            ": the checksum of its length is wrong; the file is damaged, or it is no TFRecord "
            "file, or it is compressed and the compression was not given",
            path, number, offset);
    }
}

static cadre_status fault_error(
    const struct record_reader *reader, const struct record_walk *walk, struct cadre_error *error)
{
    return record_fault_error(walk->fault, walk->length, &reader->rules,
        inflate_stream_path(reader->stream), reader->number, reader->offset, error);
}

/* The file ends `have` bytes into the frame at hand, of which `wanted` are known to be needed. */
static cadre_status cut_short(
    const struct record_reader *reader, uint64_t have, uint64_t wanted, struct cadre_error *error)
{
    const char *path = inflate_stream_path(reader->stream);
    if (have < RECORD_HEADER_BYTES) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%s, record %" PRIu64 " at offset %" PRIu64
            ": the file ends inside its length, %" PRIu64
            " bytes into the frame; copy the file again",
            path, reader->number, reader->offset, have);
    }
    bool in_data = have < wanted - RECORD_FOOTER_BYTES;
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "%s, record %" PRIu64 " at offset %" PRIu64 ": the file ends inside its %s, after %" PRIu64
        " of %" PRIu64 " bytes; copy the file again",
        path, reader->number, reader->offset, in_data ? "data" : "checksum",
        in_data ? have - RECORD_HEADER_BYTES : have - (wanted - RECORD_FOOTER_BYTES),
        in_data ? wanted - RECORD_FRAME_BYTES : (uint64_t)RECORD_FOOTER_BYTES);
}

/* What reading on failed of, said of the record at hand. */
static cadre_status print_failure(const struct record_reader *reader, struct cadre_error *error)
{
    CADRE_ASSERT(reader->failure.code != CADRE_OK);
    if (error != NULL) {
        *error = reader->failure;
    }
    return cadre_error_wrap(error, reader->failure.code, "record %" PRIu64 " at offset %" PRIu64,
        reader->number, reader->offset);
}

/* --- the block --- */

/* The first `count` records move with the bytes they point into. */
static void move_records(struct record_reader *reader, size_t count, const uint8_t *to)
{
    const char *from = (const char *)reader->bytes + reader->begin;
    for (size_t i = 0; i < count; i++) {
        reader->records[i].bytes = (const char *)to + (reader->records[i].bytes - from);
    }
}

/* Has room for `capacity` bytes from the first unread one on. `fresh`: in a new block. Of failures
 * see print_failure. */
static cadre_status make_room(
    struct record_reader *reader, uint64_t capacity, bool fresh, size_t count)
{
    size_t have = reader->end - reader->begin;
    bool oversized = reader->capacity / 4 > capacity;
    if (!fresh && !reader->given && !oversized && capacity <= reader->capacity) {
        if (reader->begin > 0 && capacity > reader->capacity - reader->begin) {
            move_records(reader, count, reader->bytes);
            memmove(reader->bytes, reader->bytes + reader->begin, have);
            reader->begin = 0;
            reader->end = have;
        }
        return CADRE_OK;
    }
    cadre_tensor *block = NULL;
    const int64_t bytes = (int64_t)(capacity > have ? capacity : have);
    CADRE_TRY(tensor_create_unset(CADRE_U8, 1, &bytes, &block, &reader->failure));
    uint8_t *to = cadre_tensor_data(block);
    if (have > 0) {
        move_records(reader, count, to);
        memcpy(to, reader->bytes + reader->begin, have);
    }
    cadre_tensor_release(reader->block);
    reader->block = block;
    reader->bytes = to;
    reader->capacity = (size_t)bytes;
    reader->given = false;
    reader->begin = 0;
    reader->end = have;
    return CADRE_OK;
}

/* Reads until `need` bytes are there or the file ends, and up to `ahead` where that is one read;
 * there is room for `need`. Of failures see print_failure. */
static cadre_status read_on(struct record_reader *reader, size_t need, size_t ahead)
{
    while (reader->end - reader->begin < need) {
        size_t missing = need - (reader->end - reader->begin);
        size_t room = reader->capacity - reader->end;
        size_t bytes = ahead < room ? ahead : room;
        size_t count = 0;
        CADRE_ASSERT(missing <= room);
        CADRE_TRY(reader->failure.code);
        CADRE_TRY(inflate_stream_read(reader->stream, reader->bytes + reader->end,
            bytes > missing ? bytes : missing, &count, &reader->failure));
        if (count == 0) {
            break;
        }
        reader->end += count;
    }
    return CADRE_OK;
}

/* The header of the next record, for those that only look; at the end *ret_count is 0. */
static cadre_status load_header(
    struct record_reader *reader, size_t ahead, size_t *ret_count, struct cadre_error *error)
{
    *ret_count = reader->end - reader->begin;
    if (*ret_count >= RECORD_HEADER_BYTES) {
        return CADRE_OK;
    }
    if (make_room(reader, reader->buffer_bytes, false, 0) != CADRE_OK ||
        read_on(reader, RECORD_HEADER_BYTES, ahead) != CADRE_OK) {
        return print_failure(reader, error);
    }
    *ret_count = reader->end - reader->begin;
    if (*ret_count > 0 && *ret_count < RECORD_HEADER_BYTES) {
        return cut_short(reader, *ret_count, RECORD_HEADER_BYTES, error);
    }
    return CADRE_OK;
}

/* --- reading --- */

/* What `most` records take with their frames, of which the first needs `next` bytes (no more than a
 * header: not known): like those that came before, `used` bytes and `count` records of which are
 * not counted as read yet. A first one that is known takes what it does: a caller that keeps it
 * alone keeps no more, however large those before were. */
static uint64_t files_record_reader_expect(
    const struct record_reader *reader, uint64_t used, size_t count, uint64_t next, size_t limit)
{
    uint64_t before = reader->number + count;
    uint64_t mean = before > 0 ? (reader->offset + used) / before : next;
    uint64_t others = 0;
    next = next > RECORD_HEADER_BYTES || next > mean ? next : mean;
    if (__builtin_mul_overflow(limit - 1, mean, &others) || others > INT64_MAX - next) {
        return INT64_MAX;
    }
    return next + others;
}

cadre_status record_reader_expect(
    struct record_reader *reader, size_t limit, uint64_t *ret_bytes, struct cadre_error *error)
{
    size_t have = 0;
    *ret_bytes = 0;
    CADRE_ASSERT(limit >= 1);
    CADRE_TRY(load_header(reader, reader->buffer_bytes, &have, error));
    if (have == 0) {
        return CADRE_OK;
    }
    struct record_walk walk = record_walk_headers(
        reader->bytes + reader->begin, RECORD_HEADER_BYTES, 1, &reader->rules, 0, NULL);
    if (walk.fault != RECORD_SOUND) {
        return fault_error(reader, &walk, error);
    }
    *ret_bytes = files_record_reader_expect(reader, 0, 0, walk.used, limit);
    return CADRE_OK;
}

static cadre_status grow_records(
    struct record_reader *reader, size_t limit, struct cadre_error *error)
{
    size_t room = reader->records_room == 0 ? RECORDS_FIRST : 2 * reader->records_room;
    room = room < limit ? room : limit;
    cadre_string *records = realloc(reader->records, room * sizeof records[0]);
    if (records == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the positions of %zu records", room);
    }
    reader->records = records;
    reader->records_room = room;
    return CADRE_OK;
}

/* One call of next. */
struct taking {
    size_t limit;
    bool block;    /* all in one block, for the caller */
    bool renewed;  /* which is no longer the one that the call began with */
    size_t count;  /* records so far */
    uint64_t used; /* and their bytes */
};

/* Reads what the walk wants. *ret_stop when what was taken must do: there is no more room or no
 * more file. */
static cadre_status take_more(struct record_reader *reader, struct taking *taking, uint64_t wanted,
    bool *ret_stop, struct cadre_error *error)
{
    uint64_t need = taking->used + wanted;
    uint64_t ahead = reader->buffer_bytes;
    uint64_t capacity = need > ahead ? need : ahead;
    *ret_stop = false;
    if (!taking->block && need > reader->buffer_bytes && taking->count > 0) {
        *ret_stop = true;
        return CADRE_OK;
    }
    if (taking->block) {
        /* With the header behind the last one, from which the next call judges. */
        uint64_t others = files_record_reader_expect(
            reader, taking->used, taking->count, wanted, taking->limit - taking->count);
        uint64_t all = taking->used + others + RECORD_HEADER_BYTES;
        uint64_t limit = taking->renewed ? 2 * (uint64_t)reader->capacity : BLOCK_BYTES_FIRST;
        uint64_t have = reader->end - reader->begin;
        bool grow = !taking->renewed || need > reader->capacity;
        ahead = all - have < ahead ? all - have : ahead;
        capacity = all + all / 4 < limit ? all + all / 4 : limit;
        capacity = need > capacity ? need : capacity;
        capacity = grow ? capacity : reader->capacity;
    }
    bool fresh = taking->block && !taking->renewed;
    if (make_room(reader, capacity, fresh, taking->count) != CADRE_OK) {
        *ret_stop = true;
        return taking->count > 0 ? CADRE_OK : print_failure(reader, error);
    }
    taking->renewed = true;
    if (read_on(reader, (size_t)need, (size_t)ahead) != CADRE_OK) {
        *ret_stop = true;
        return taking->count > 0 ? CADRE_OK : print_failure(reader, error);
    }
    size_t have = reader->end - reader->begin;
    if (have < need) {
        *ret_stop = true;
        if (taking->count == 0 && have > 0) {
            return cut_short(reader, have, wanted, error);
        }
    }
    return CADRE_OK;
}

/* Finds the next records and passes them. */
static cadre_status record_reader_take(
    struct record_reader *reader, struct taking *taking, struct cadre_error *error)
{
    bool stop = false;
    while (!stop && taking->count < taking->limit) {
        if (taking->count == reader->records_room) {
            CADRE_TRY(grow_records(reader, taking->limit, error));
        }
        size_t start = reader->begin + (size_t)taking->used;
        size_t room =
            (reader->records_room < taking->limit ? reader->records_room : taking->limit) -
            taking->count;
        struct record_walk walk = {.wanted = RECORD_HEADER_BYTES};
        if (start < reader->end) {
            walk = record_walk_frames(reader->bytes + start, reader->end - start, room,
                &reader->rules, reader->records + taking->count);
        }
        taking->count += walk.count;
        taking->used += walk.used;
        if (walk.fault != RECORD_SOUND && taking->count == 0) {
            return fault_error(reader, &walk, error);
        }
        stop = walk.fault != RECORD_SOUND;
        if (walk.wanted > 0) {
            CADRE_TRY(take_more(reader, taking, walk.wanted, &stop, error));
        }
    }
    return CADRE_OK;
}

static void record_reader_pass(struct record_reader *reader, const struct taking *taking)
{
    reader->begin += (size_t)taking->used;
    reader->offset += taking->used;
    reader->number += taking->count;
}

cadre_status record_reader_next(struct record_reader *reader, size_t limit,
    const cadre_string **ret_records, size_t *ret_count, struct cadre_error *error)
{
    struct taking taking = {.limit = limit};
    CADRE_ASSERT(limit >= 1);
    *ret_count = 0;
    CADRE_TRY(record_reader_take(reader, &taking, error));
    record_reader_pass(reader, &taking);
    *ret_records = reader->records;
    *ret_count = taking.count;
    return CADRE_OK;
}

/* All of them were in the block that is read ahead: they get one of the very size. */
static cadre_status copy_out(struct record_reader *reader, const struct taking *taking,
    cadre_tensor **ret_block, struct cadre_error *error)
{
    const int64_t bytes = (int64_t)taking->used;
    CADRE_TRY(tensor_create_unset(CADRE_U8, 1, &bytes, ret_block, error));
    uint8_t *to = cadre_tensor_data(*ret_block);
    memcpy(to, reader->bytes + reader->begin, (size_t)taking->used);
    move_records(reader, taking->count, to);
    return CADRE_OK;
}

cadre_status record_reader_next_block(struct record_reader *reader, size_t limit,
    const cadre_string **ret_records, size_t *ret_count, cadre_tensor **ret_block,
    struct cadre_error *error)
{
    struct taking taking = {.limit = limit, .block = true};
    CADRE_ASSERT(limit >= 1);
    *ret_count = 0;
    *ret_block = NULL;
    CADRE_TRY(record_reader_take(reader, &taking, error));
    if (taking.count > 0 && !taking.renewed) {
        CADRE_TRY(copy_out(reader, &taking, ret_block, error));
    } else if (taking.count > 0) {
        *ret_block = cadre_tensor_retain(reader->block);
        reader->given = true;
    }
    record_reader_pass(reader, &taking);
    *ret_records = reader->records;
    *ret_count = taking.count;
    return CADRE_OK;
}

/* --- passing over --- */

/* Passes the frame at hand, of `bytes` bytes, of which the header is there. */
static cadre_status pass_frame(
    struct record_reader *reader, uint64_t bytes, struct cadre_error *error)
{
    size_t have = reader->end - reader->begin;
    if (bytes <= have) {
        reader->begin += (size_t)bytes;
    } else {
        uint64_t skipped = 0;
        if (inflate_stream_skip(reader->stream, bytes - have, &skipped, &reader->failure) !=
            CADRE_OK) {
            return print_failure(reader, error);
        }
        if (skipped < bytes - have) {
            return cut_short(reader, have + skipped, bytes, error);
        }
        reader->begin = 0;
        reader->end = 0;
    }
    reader->offset += bytes;
    reader->number++;
    return CADRE_OK;
}

cadre_status record_reader_skip(struct record_reader *reader, uint64_t limit, uint64_t starts[],
    uint64_t *ret_skipped, struct cadre_error *error)
{
    size_t ahead = reader->buffer_bytes;
    *ret_skipped = 0;
    while (*ret_skipped < limit) {
        size_t have = 0;
        CADRE_TRY(load_header(reader, ahead, &have, error));
        if (have == 0) {
            break;
        }
        /* All frames that lie in the buffer whole, and the one that goes beyond it. */
        uint64_t *next_starts = starts == NULL ? NULL : starts + *ret_skipped;
        const uint8_t *bytes = reader->bytes + reader->begin;
        struct record_walk walk = record_walk_headers(
            bytes, have, limit - *ret_skipped, &reader->rules, reader->offset, next_starts);
        if (walk.fault != RECORD_SOUND && walk.count == 0) {
            return fault_error(reader, &walk, error);
        }
        CADRE_ASSERT(walk.count > 0);
        uint64_t last = 0;
        if (walk.used > have) {
            last = walk.used - walk.last;
            walk.used = walk.last;
            walk.count--;
        }
        reader->begin += (size_t)walk.used;
        reader->offset += walk.used;
        reader->number += walk.count;
        *ret_skipped += walk.count;
        ahead = reader->buffer_bytes;
        if (last > 0) {
            CADRE_TRY(pass_frame(reader, last, error));
            ++*ret_skipped;
            ahead = last >= JUMP_BYTES_MIN ? JUMP_READ : ahead;
        }
    }
    return CADRE_OK;
}

cadre_status record_reader_seek(
    struct record_reader *reader, uint64_t offset, uint64_t number, struct cadre_error *error)
{
    uint64_t skipped = 0;
    CADRE_ASSERT(reader->offset == 0 && reader->begin == reader->end);
    CADRE_TRY(inflate_stream_skip(reader->stream, offset, &skipped, error));
    if (skipped < offset) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s has %" PRIu64 " bytes, but record %" PRIu64 " is said to be at offset %" PRIu64
            "; the file is another one than before",
            inflate_stream_path(reader->stream), skipped, number, offset);
    }
    reader->offset = offset;
    reader->number = number;
    return CADRE_OK;
}
