/* SPDX-License-Identifier: Apache-2.0
 * A table of files as bytes. Numbers are base 128, the lower groups first. After the head come
 * entries of those files only that differ from what is expected: nothing consumed, not done, and
 * the owner next in turn after that of the file before. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/library/input/sharding/file_shares.h"

#define SHARES_VERSION 2

enum {
    SHARE_OWNER = 1, /* it is another one than expected */
    SHARE_DONE = 2,
    SHARE_CONSUMED = 4,
    SHARE_DROPPED = 8, /* with SHARE_DONE */
    SHARE_FLAGS = 15
};

struct shares_writer {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    bool failed; /* no memory */
};

static void file_shares_bytes_put(struct shares_writer *writer, uint64_t number)
{
    if (writer->capacity - writer->count < 10 && !writer->failed) {
        size_t capacity = writer->capacity == 0 ? 64 : writer->capacity * 2;
        uint8_t *grown = realloc(writer->bytes, capacity);
        writer->failed = grown == NULL;
        writer->bytes = grown != NULL ? grown : writer->bytes;
        writer->capacity = grown != NULL ? capacity : writer->capacity;
    }
    if (writer->failed) {
        return;
    }
    for (; number >= 128; number >>= 7) {
        writer->bytes[writer->count++] = (uint8_t)(number | 128);
    }
    writer->bytes[writer->count++] = (uint8_t)number;
}

static uint32_t expected_owner(const struct file_shares *shares, size_t file)
{
    return file == 0 ? 0 : (shares->files[file - 1].owner + 1) % shares->workers;
}

static void put_file(struct shares_writer *writer, const struct file_share *file, unsigned flags)
{
    file_shares_bytes_put(writer, flags);
    if ((flags & SHARE_OWNER) != 0) {
        file_shares_bytes_put(writer, file->owner);
    }
    if ((flags & SHARE_CONSUMED) != 0) {
        uint64_t end = 0;
        file_shares_bytes_put(writer, file->consumed_count);
        for (size_t i = 0; i < file->consumed_count; i++) {
            file_shares_bytes_put(writer, file->consumed[i].first - end);
            file_shares_bytes_put(writer, file->consumed[i].end - file->consumed[i].first);
            end = file->consumed[i].end;
        }
    }
}

cadre_status file_shares_encode(const struct file_shares *shares, uint8_t **ret_bytes,
    size_t *ret_count, struct cadre_error *error)
{
    struct shares_writer writer = {0};
    file_shares_bytes_put(&writer, SHARES_VERSION);
    file_shares_bytes_put(&writer, shares->epoch);
    file_shares_bytes_put(&writer, shares->step);
    file_shares_bytes_put(&writer, shares->workers);
    file_shares_bytes_put(&writer, shares->file_count);
    size_t reported = 0;
    for (size_t i = 0; i < shares->file_count; i++) {
        const struct file_share *file = &shares->files[i];
        unsigned flags = (file->owner != expected_owner(shares, i) ? SHARE_OWNER : 0u) |
                         (file->done ? SHARE_DONE : 0u) | (file->dropped ? SHARE_DROPPED : 0u) |
                         (file->consumed_count > 0 ? SHARE_CONSUMED : 0u);
        if (flags != 0) {
            file_shares_bytes_put(&writer, i - reported);
            put_file(&writer, file, flags);
            reported = i + 1;
        }
    }
    if (writer.failed) {
        free(writer.bytes);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to write a table of %zu files", shares->file_count);
    }
    *ret_bytes = writer.bytes;
    *ret_count = writer.count;
    return CADRE_OK;
}

/* --- back --- */

struct shares_reader {
    const uint8_t *bytes;
    size_t count;
    size_t at;
};

/* A number from 0 to `most`, written as `put` writes it and in no other way. */
static cadre_status file_shares_bytes_take(struct shares_reader *reader, uint64_t limit,
    const char *what, uint64_t *ret_number, struct cadre_error *error)
{
    uint64_t number = 0;
    size_t begin = reader->at;
    for (unsigned shift = 0; reader->at < reader->count && shift < 64; shift += 7) {
        uint8_t byte = reader->bytes[reader->at++];
        uint64_t group = byte & 127u;
        if (shift == 63 && group > 1) {
            break;
        }
        number |= group << shift;
        if (byte < 128) {
            if ((byte == 0 && shift > 0) || number > limit) {
                break;
            }
            *ret_number = number;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "the table of files is damaged: at byte %zu of %zu stands no %s from 0 to %" PRIu64, begin,
        reader->count, what, limit);
}

static cadre_status take_consumed(
    struct shares_reader *reader, struct file_share *file, struct cadre_error *error)
{
    const uint64_t limit = FILE_SHARES_SAMPLES_MAX;
    uint64_t count = 0;
    uint64_t end = 0;
    /* Two bytes each at the least. */
    CADRE_TRY(file_shares_bytes_take(
        reader, (reader->count - reader->at) / 2, "number of intervals", &count, error));
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is damaged: at byte %zu of %zu stands a list of no intervals",
            reader->at, reader->count);
    }
    file->consumed = malloc((size_t)count * sizeof file->consumed[0]);
    if (file->consumed == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %" PRIu64 " intervals of samples", count);
    }
    file->consumed_capacity = (size_t)count;
    while (file->consumed_count < count) {
        uint64_t gap = 0;
        uint64_t length = 0;
        CADRE_TRY(file_shares_bytes_take(reader, limit - end, "first sample", &gap, error));
        CADRE_TRY(
            file_shares_bytes_take(reader, limit - end - gap, "number of samples", &length, error));
        if (length == 0 || (gap == 0 && file->consumed_count > 0)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the table of files is damaged: before byte %zu of %zu stands an interval that is "
                "empty or touches the one before",
                reader->at, reader->count);
        }
        file->consumed[file->consumed_count++] =
            (struct sample_interval){.first = end + gap, .end = end + gap + length};
        end += gap + length;
    }
    return CADRE_OK;
}

static cadre_status take_file(struct shares_reader *reader, struct file_shares *shares,
    size_t number, struct cadre_error *error)
{
    struct file_share *file = &shares->files[number];
    uint64_t flags = 0;
    uint64_t owner = 0;
    CADRE_TRY(file_shares_bytes_take(reader, SHARE_FLAGS, "kind of entry", &flags, error));
    if ((flags & SHARE_OWNER) != 0) {
        CADRE_TRY(file_shares_bytes_take(reader, shares->workers - 1, "worker", &owner, error));
        file->owner = (uint32_t)owner;
    }
    if (flags == 0 || (flags & (SHARE_DONE | SHARE_DROPPED)) == SHARE_DROPPED ||
        ((flags & SHARE_OWNER) != 0 && owner == expected_owner(shares, number))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is damaged: what is said of file %zu before byte %zu of %zu needs "
            "no saying",
            number, reader->at, reader->count);
    }
    file->done = (flags & SHARE_DONE) != 0;
    file->dropped = (flags & SHARE_DROPPED) != 0;
    shares->done_count += file->done ? 1 : 0;
    shares->dropped_count += file->dropped ? 1 : 0;
    return (flags & SHARE_CONSUMED) != 0 ? take_consumed(reader, file, error) : CADRE_OK;
}

static cadre_status file_shares_bytes_decode(
    struct shares_reader *reader, struct file_shares *shares, struct cadre_error *error)
{
    uint64_t version = 0;
    uint64_t epoch = 0;
    uint64_t step = 0;
    uint64_t workers = 0;
    uint64_t files = 0;
    CADRE_TRY(file_shares_bytes_take(reader, UINT64_MAX, "version", &version, error));
    if (version != SHARES_VERSION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is of version %" PRIu64 "; this program reads version %d", version,
            SHARES_VERSION);
    }
    CADRE_TRY(file_shares_bytes_take(reader, UINT64_MAX, "epoch", &epoch, error));
    CADRE_TRY(file_shares_bytes_take(reader, UINT64_MAX, "step", &step, error));
    CADRE_TRY(file_shares_bytes_take(
        reader, FILE_SHARES_WORKERS_MAX, "number of workers", &workers, error));
    CADRE_TRY(
        file_shares_bytes_take(reader, FILE_SHARES_FILES_MAX, "number of files", &files, error));
    CADRE_TRY(file_shares_init(shares, epoch, files, (uint32_t)workers, error));
    shares->step = step;
    size_t reported = 0;
    while (reported < files) {
        uint64_t gap = files - reported;
        if (reader->at < reader->count) {
            CADRE_TRY(
                file_shares_bytes_take(reader, files - reported - 1, "gap of files", &gap, error));
        }
        for (uint64_t i = 0; i < gap; i++, reported++) {
            shares->files[reported].owner = expected_owner(shares, reported);
        }
        if (reported < files) {
            shares->files[reported].owner = expected_owner(shares, reported);
            CADRE_TRY(take_file(reader, shares, reported, error));
            reported++;
        }
    }
    if (reader->at < reader->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is damaged: it ends at byte %zu, and there are %zu", reader->at,
            reader->count);
    }
    return CADRE_OK;
}

cadre_status file_shares_decode(
    const uint8_t *bytes, size_t count, struct file_shares *ret_shares, struct cadre_error *error)
{
    struct shares_reader reader = {.bytes = bytes, .count = count};
    *ret_shares = (struct file_shares){0};
    cadre_status status = file_shares_bytes_decode(&reader, ret_shares, error);
    if (status != CADRE_OK) {
        file_shares_clear(ret_shares);
    }
    return status;
}
