/* SPDX-License-Identifier: Apache-2.0
 * Records by number; see record_table.h.
 *
 * Short pieces are copied from the mapped file, long ones are read with pread: a page that was not
 * looked at before costs a fault, of which a long piece has many and a short one few.
 * FIGURES */
#include "worker/input/record_table.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "worker/input/record_index_file.h"

#define MAPPED_BYTES_MAX ((uint64_t)8 << 10)

/* One read call asks for no more than this: Linux never gives more than 2 GiB at a time. */
#define READ_BYTES_MAX ((size_t)1 << 30)

cadre_status record_table_open(struct record_table *table, const char *path,
    const char *index_folder, const struct record_options *options, bool keep_open,
    struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int fd = -1;
    uint64_t bytes = 0;
    struct record_table opened = {.path = path, .rules = options->rules, .fd = -1, .open = true};
    *table = (struct record_table){0};
    CADRE_ASSERT(options->compression == CADRE_COMPRESSION_NONE);
    CADRE_TRY(file_open_regular(path, &fd, &bytes, error));
    CADRE_TRY(record_index_open(path, index_folder, options, &opened.index, error));
    if (bytes != opened.index.end) {
        record_index_clear(&opened.index);
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s changes while its records are counted; read it when its writer has closed it",
            path);
    }
    if (bytes > 0 && mapped_file_open(&opened.mapped, fd, bytes, NULL) != CADRE_OK) {
        opened.mapped = (struct mapped_file){0}; /* pread does as well */
    }
    if (keep_open) {
        opened.fd = fd;
        fd = -1;
    }
    *table = opened;
    return CADRE_OK;
}

void record_table_close(struct record_table *table)
{
    if (table->open) {
        record_index_clear(&table->index);
        mapped_file_close(&table->mapped);
        if (table->fd >= 0) {
            close(table->fd);
        }
        *table = (struct record_table){0};
    }
}

uint64_t record_table_bytes(const struct record_table *table, uint64_t first, uint64_t count)
{
    return record_index_offset(&table->index, first + count) -
           record_index_offset(&table->index, first);
}

void record_table_prefetch_place(const struct record_table *table, uint64_t number)
{
    record_index_prefetch(&table->index, number);
}

void record_table_prefetch(const struct record_table *table, uint64_t number)
{
    uint64_t bytes = record_table_bytes(table, number, 1);
    if (table->mapped.mapping != NULL && bytes <= MAPPED_BYTES_MAX) {
        mapped_file_prefetch(
            &table->mapped, record_index_offset(&table->index, number), (size_t)bytes);
    }
}

/* `what` of record `number`, of which `code` is the failure. */
static cadre_status place_error(const struct record_table *table, uint64_t number,
    cadre_status code, const char *what, struct cadre_error *error)
{
    return cadre_error_set(error, code, "%s, record %" PRIu64 " at offset %" PRIu64 ": %s",
        table->path, number, record_index_offset(&table->index, number), what);
}

/* The record in which byte `offset` lies. */
static uint64_t find_record(
    const struct record_table *table, uint64_t first, size_t count, uint64_t offset)
{
    uint64_t number = first;
    while (number + 1 < first + count && record_index_offset(&table->index, number + 1) <= offset) {
        number++;
    }
    return number;
}

static cadre_status read_file(const struct record_table *table, uint64_t first, size_t count,
    uint8_t *to, size_t bytes, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int own = -1;
    uint64_t start = record_index_offset(&table->index, first);
    int fd = table->fd;
    if (fd < 0) {
        CADRE_TRY(file_open_regular(table->path, &own, NULL, error));
        fd = own;
    }
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < READ_BYTES_MAX ? bytes - done : READ_BYTES_MAX;
        ssize_t got = fault_point("input.record-read")
                          ? (errno = EIO, -1)
                          : pread(fd, to + done, want, (off_t)(start + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            uint64_t number = find_record(table, first, count, start + done);
            const char *what = got == 0 ? "the file ends before the end of it; it was cut short "
                                          "while it was read"
                                        : "it cannot be read";
            int errnum = errno;
            place_error(table, number, CADRE_DATA_LOSS, what, error);
            return got == 0 || error == NULL ? CADRE_DATA_LOSS
                                             : cadre_error_errno(error, errnum, "%s", error->text);
        }
        done += (size_t)got;
    }
    return CADRE_OK;
}

/* The frames are those that the index promises. */
static cadre_status check(const struct record_table *table, uint64_t first, size_t count,
    const uint8_t *bytes, size_t size, cadre_string records[], struct cadre_error *error)
{
    struct record_walk walk = record_walk_frames(bytes, size, count, &table->rules, records);
    if (walk.fault != RECORD_SOUND) {
        uint64_t number = first + walk.count;
        return record_fault_error(walk.fault, walk.length, &table->rules, table->path, number,
            record_index_offset(&table->index, number), error);
    }
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++) {
        uint64_t length = record_table_bytes(table, first + i, 1) - RECORD_FRAME_BYTES;
        if (i >= walk.count || records[i].size != length) {
            return place_error(table, first + i, CADRE_DATA_LOSS,
                "its length is not that of the index; the file was changed while it was read, or "
                "is another one: start again",
                error);
        }
        at += length + RECORD_FRAME_BYTES;
    }
    CADRE_ASSERT(at == bytes + size);
    return CADRE_OK;
}

cadre_status record_table_read(const struct record_table *table, uint64_t first, size_t count,
    uint8_t *to, cadre_string records[], struct cadre_error *error)
{
    CADRE_ASSERT(count >= 1 && first + count <= table->index.count);
    uint64_t start = record_index_offset(&table->index, first);
    size_t bytes = (size_t)(record_index_offset(&table->index, first + count) - start);
    /* Where the mapping fails, reading says exactly why. */
    bool copied = bytes <= MAPPED_BYTES_MAX && table->mapped.mapping != NULL &&
                  mapped_file_copy(&table->mapped, start, to, bytes);
    if (!copied) {
        CADRE_TRY(read_file(table, first, count, to, bytes, error));
    }
    return check(table, first, count, to, bytes, records, error);
}
