/* SPDX-License-Identifier: Apache-2.0
 * Places of records; see record_index.h.
 *
 *     group    uint64 offset of its first record | RECORD_INDEX_GROUP differences of `width` bytes
 *
 * so that an offset is found by looking at one or two lines of the cache. */
#include "worker/library/input/files/record_index.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "worker/library/checksum/crc32c.h"
#include "worker/library/input/files/record_frame.h"

#define FORMAT_VERSION 1
#define GROUPS_FIRST   64

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

static const char magic[8] = {'c', 'a', 'd', 'r', 'e', 'i', 'd', 'x'};

struct header {
    char magic[8];
    uint32_t version;
    uint32_t width;
    uint64_t file_bytes;
    int64_t file_modified_ns;
    uint64_t count;
    uint64_t end;
    uint64_t reserved; /* 0 */
    uint32_t zero;
    uint32_t checksum; /* CRC-32C of all bytes before and of all groups */
};

_Static_assert(sizeof(struct header) == RECORD_INDEX_HEADER_BYTES, "no bytes between");

static size_t group_bytes(uint32_t width)
{
    return sizeof(uint64_t) + (size_t)width * RECORD_INDEX_GROUP;
}

static uint64_t group_count(uint64_t records)
{
    return records / RECORD_INDEX_GROUP + (records % RECORD_INDEX_GROUP != 0);
}

void record_index_clear(struct record_index *index)
{
    free(index->memory);
    *index = (struct record_index){0};
}

static uint64_t width_max(uint32_t width)
{
    return width == 8 ? UINT64_MAX : ((uint64_t)1 << (8 * width)) - 1;
}

/* Makes room for `room` groups of `width`; what is there keeps its meaning. */
static cadre_status record_index_resize(
    struct record_index *index, uint32_t width, size_t room, struct cadre_error *error)
{
    size_t bytes = 0;
    bool too_large = __builtin_mul_overflow(room, group_bytes(width), &bytes);
    uint8_t *groups = too_large || fault_point("input.index") ? NULL : malloc(bytes);
    if (groups == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the positions of %" PRIu64 " records",
            (uint64_t)room * RECORD_INDEX_GROUP);
    }
    uint64_t used = group_count(index->count);
    if (width == index->width && used > 0) {
        memcpy(groups, index->groups, (size_t)used * group_bytes(width));
    }
    for (uint64_t g = 0; g < used && width != index->width; g++) {
        const uint8_t *from = index->groups + g * group_bytes(index->width);
        uint8_t *to = groups + g * group_bytes(width);
        memset(to, 0, group_bytes(width));
        memcpy(to, from, sizeof(uint64_t));
        for (size_t i = 0; i < RECORD_INDEX_GROUP; i++) {
            memcpy(to + sizeof(uint64_t) + i * width, from + sizeof(uint64_t) + i * index->width,
                index->width);
        }
    }
    free(index->memory);
    index->memory = groups;
    index->groups = groups;
    index->width = width;
    index->room = room;
    return CADRE_OK;
}

cadre_status record_index_add(
    struct record_index *index, uint64_t offset, struct cadre_error *error)
{
    uint64_t group = index->count / RECORD_INDEX_GROUP;
    size_t slot = index->count % RECORD_INDEX_GROUP;
    uint32_t width = index->width == 0 ? 2 : index->width;
    if (group == index->room) {
        CADRE_TRY(record_index_resize(
            index, width, index->room == 0 ? GROUPS_FIRST : 2 * index->room, error));
    }
    uint64_t base = offset;
    if (slot > 0) {
        memcpy(&base, index->groups + group * group_bytes(index->width), sizeof base);
    }
    CADRE_ASSERT(offset >= base);
    uint64_t difference = offset - base;
    while (difference > width_max(index->width)) {
        CADRE_TRY(record_index_resize(index, 2 * index->width, index->room, error));
    }
    uint8_t *to = index->groups + group * group_bytes(index->width);
    if (slot == 0) {
        memset(to, 0, group_bytes(index->width));
        memcpy(to, &base, sizeof base);
    }
    memcpy(to + sizeof base + slot * index->width, &difference, index->width);
    index->count++;
    return CADRE_OK;
}

uint64_t record_index_offset(const struct record_index *index, uint64_t number)
{
    CADRE_ASSERT(number <= index->count);
    if (index->frame_bytes != 0) {
        return number * index->frame_bytes;
    }
    if (number == index->count) {
        return index->end;
    }
    const uint8_t *group = index->groups + number / RECORD_INDEX_GROUP * group_bytes(index->width);
    size_t slot = number % RECORD_INDEX_GROUP;
    uint64_t base = 0;
    uint64_t difference = 0;
    memcpy(&base, group, sizeof base);
    if (index->width == 2) { /* a constant size is one load */
        memcpy(&difference, group + sizeof base + slot * 2, 2);
    } else {
        memcpy(&difference, group + sizeof base + slot * index->width, index->width);
    }
    return base + difference;
}

void record_index_prefetch(const struct record_index *index, uint64_t number)
{
    if (index->frame_bytes != 0) {
        return;
    }
    const uint8_t *group = index->groups + number / RECORD_INDEX_GROUP * group_bytes(index->width);
    __builtin_prefetch(group);
    __builtin_prefetch(
        group + sizeof(uint64_t) + number % RECORD_INDEX_GROUP * (size_t)index->width);
}

size_t record_index_body_bytes(const struct record_index *index)
{
    return (size_t)group_count(index->count) * group_bytes(index->width);
}

static uint32_t record_index_checksum(
    const struct header *header, const uint8_t *groups, size_t body_bytes)
{
    uint32_t crc = crc32c(0, header, offsetof(struct header, checksum));
    return crc32c(crc, groups, body_bytes);
}

void record_index_pack(const struct record_index *index, const struct record_index_file *file,
    uint8_t ret_header[RECORD_INDEX_HEADER_BYTES])
{
    struct header header = {
        .version = FORMAT_VERSION,
        .width = index->width,
        .file_bytes = file->bytes,
        .file_modified_ns = file->modified_ns,
        .count = index->count,
        .end = index->end,
    };
    memcpy(header.magic, magic, sizeof magic);
    size_t body_bytes = index->count == 0 ? 0 : record_index_body_bytes(index);
    header.checksum = record_index_checksum(&header, index->groups, body_bytes);
    memcpy(ret_header, &header, sizeof header);
}

/* The header as far as it can be judged alone. */
static cadre_status check_header(const struct header *header, size_t size,
    const struct record_index_file *file, struct cadre_error *error)
{
    if (memcmp(header->magic, magic, sizeof magic) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "it is no index of records");
    }
    if (header->version != FORMAT_VERSION) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "it is an index of version %" PRIu32 ", not %d", header->version, FORMAT_VERSION);
    }
    if (header->file_bytes != file->bytes || header->file_modified_ns != file->modified_ns) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "it is of a file of %" PRIu64 " bytes, not of this one of %" PRIu64
            ", or that was changed since",
            header->file_bytes, file->bytes);
    }
    bool width_known = header->width == 2 || header->width == 4 || header->width == 8 ||
                       (header->width == 0 && header->count == 0);
    uint64_t body_bytes = 0;
    if (!width_known || header->end != file->bytes ||
        __builtin_mul_overflow(
            group_count(header->count), group_bytes(header->width), &body_bytes) ||
        body_bytes != size - sizeof *header) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "its %zu bytes cannot be an index of %" PRIu64 " records", size, header->count);
    }
    return CADRE_OK;
}

/* Whether frames follow one another from the start to the end of the file; finds out whether they
 * are alike. */
static bool frames_fill_file(struct record_index *index)
{
    uint64_t before = 0;
    if (index->count == 0) {
        return index->end == 0;
    }
    if (record_index_offset(index, 0) != 0) {
        return false;
    }
    uint64_t first_bytes = record_index_offset(index, 1);
    bool alike = true;
    for (uint64_t i = 1; i <= index->count; i++) {
        uint64_t offset = record_index_offset(index, i);
        if (offset < before || offset - before < RECORD_FRAME_BYTES || offset > index->end) {
            return false;
        }
        alike = alike && offset - before == first_bytes;
        before = offset;
    }
    index->frame_bytes = alike ? first_bytes : 0;
    return true;
}

void record_index_finish(struct record_index *index)
{
    (void)frames_fill_file(index); /* as the reader saw it that added them */
}

cadre_status record_index_unpack(void *memory, size_t size, const struct record_index_file *file,
    struct record_index *ret_index, struct cadre_error *error)
{
    struct header header;
    *ret_index = (struct record_index){0};
    if (size < sizeof header) {
        free(memory);
        return cadre_error_set(
            error, CADRE_DATA_LOSS, "its %zu bytes cannot be an index of records", size);
    }
    memcpy(&header, memory, sizeof header);
    cadre_status status = check_header(&header, size, file, error);
    if (status != CADRE_OK) {
        free(memory);
        return status;
    }
    struct record_index index = {
        .count = header.count,
        .end = header.end,
        .width = header.width,
        .groups = (uint8_t *)memory + sizeof header,
        .memory = memory,
    };
    if (record_index_checksum(&header, index.groups, size - sizeof header) != header.checksum ||
        !frames_fill_file(&index)) {
        record_index_clear(&index);
        return cadre_error_set(error, CADRE_DATA_LOSS, "it is damaged");
    }
    *ret_index = index;
    return CADRE_OK;
}
