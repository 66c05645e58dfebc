/* SPDX-License-Identifier: Apache-2.0
 * Packed offsets over a list of buffers. */
#include "worker/library/mesh/layout.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

#define CACHE_LINE_BYTES 64

static cadre_status make_room(struct layout *layout, size_t count, struct cadre_error *error)
{
    if (count + 1 > layout->capacity) {
        size_t capacity = layout->capacity * 2 > count + 1 ? layout->capacity * 2 : count + 1;
        struct layout_entry *entries = reallocarray(layout->entries, capacity, sizeof *entries);
        if (entries == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the layout of %zu buffers; pass fewer at a time", count);
        }
        layout->entries = entries;
        layout->capacity = capacity;
    }
    return CADRE_OK;
}

cadre_status mesh_layout_set(struct layout *layout, const struct mesh_buffer *buffers, size_t count,
    struct cadre_error *error)
{
    if (count + 1 > layout->capacity) {
        CADRE_TRY(make_room(layout, count, error));
    }
    size_t start = 0;
    for (size_t i = 0; i < count; i++) {
        layout->entries[i] = (struct layout_entry){.start = start, .dtype = buffers[i].dtype};
        start += buffers[i].bytes;
    }
    layout->entries[count] = (struct layout_entry){.start = start};
    layout->count = count;
    layout->bytes = start;
    return CADRE_OK;
}

static bool is_half(enum mesh_dtype dtype)
{
    return dtype == MESH_F16 || dtype == MESH_BF16;
}

cadre_status mesh_layout_widen(
    struct layout *layout, const struct layout *narrow, struct cadre_error *error)
{
    CADRE_TRY(make_room(layout, narrow->count, error));
    size_t start = 0;
    for (size_t i = 0; i < narrow->count; i++) {
        const struct layout_entry *entry = &narrow->entries[i];
        bool half = is_half(entry->dtype);
        layout->entries[i] =
            (struct layout_entry){.start = start, .dtype = half ? MESH_F32 : entry->dtype};
        start += (entry[1].start - entry->start) * (half ? 2 : 1);
    }
    layout->entries[narrow->count] = (struct layout_entry){.start = start};
    layout->count = narrow->count;
    layout->bytes = start;
    return CADRE_OK;
}

void mesh_layout_finish(struct layout *layout)
{
    free(layout->entries);
    *layout = (struct layout){.count = 0};
}

/* The buffer that holds the byte at `offset` < bytes: the last one that starts at or before it. */
static size_t layout_find(const struct layout *layout, size_t offset)
{
    CADRE_ASSERT(offset < layout->bytes);
    size_t low = 0;
    size_t high = layout->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (layout->entries[middle].start <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

size_t mesh_layout_widened(const struct layout *wide, const struct layout *narrow, size_t offset)
{
    if (offset >= narrow->bytes) {
        return wide->bytes;
    }
    size_t buffer = layout_find(narrow, offset);
    size_t within = offset - narrow->entries[buffer].start;
    return wide->entries[buffer].start + within * (is_half(narrow->entries[buffer].dtype) ? 2 : 1);
}

size_t mesh_layout_cut(const struct layout *layout, size_t offset)
{
    if (offset >= layout->bytes) {
        return layout->bytes;
    }
    const struct layout_entry *entry = &layout->entries[layout_find(layout, offset)];
    return offset - (offset - entry->start) % mesh_dtype_bytes(entry->dtype);
}

size_t mesh_layout_chunk_end(const struct layout *layout, size_t low, size_t bytes)
{
    return layout->bytes - low <= bytes ? layout->bytes : mesh_layout_cut(layout, low + bytes);
}

void mesh_layout_part(const struct layout *layout, size_t low, size_t high, uint32_t index,
    uint32_t share_count, size_t *ret_low, size_t *ret_high)
{
    size_t whole = (high - low) / share_count;
    size_t rest = (high - low) % share_count;
    size_t from =
        low + (whole * index + (rest * index) / share_count) / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    size_t to = whole * (index + 1) + (rest * (index + 1)) / share_count;
    to = low + to / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
    *ret_low = index == 0 ? low : mesh_layout_cut(layout, from);
    *ret_high = index + 1 == share_count ? high : mesh_layout_cut(layout, to);
    /* A cut may fall under `low` only when `low` is no element boundary, which no caller passes. */
    CADRE_ASSERT(*ret_low >= low && *ret_low <= *ret_high);
}

bool mesh_layout_next(
    const struct layout *layout, size_t *offset, size_t end, struct layout_piece *ret_piece)
{
    if (*offset >= end) {
        return false;
    }
    size_t buffer = layout_find(layout, *offset);
    size_t buffer_end = layout->entries[buffer + 1].start;
    size_t stop = buffer_end < end ? buffer_end : end;
    *ret_piece = (struct layout_piece){
        .buffer = buffer,
        .at = *offset - layout->entries[buffer].start,
        .bytes = stop - *offset,
        .dtype = layout->entries[buffer].dtype,
    };
    *offset = stop;
    return true;
}

void mesh_layout_gather(const struct layout *layout, const struct mesh_buffer *buffers, size_t low,
    size_t high, uint8_t *packed)
{
    struct layout_piece piece;
    while (mesh_layout_next(layout, &low, high, &piece)) {
        const struct mesh_buffer *buffer = &buffers[piece.buffer];
        const uint8_t *from = buffer->from != NULL ? buffer->from : buffer->data;
        memcpy(packed, from + piece.at, piece.bytes);
        packed += piece.bytes;
    }
}

void mesh_layout_scatter(const struct layout *layout, const struct mesh_buffer *buffers, size_t low,
    size_t high, const uint8_t *packed)
{
    struct layout_piece piece;
    while (mesh_layout_next(layout, &low, high, &piece)) {
        memcpy((uint8_t *)buffers[piece.buffer].data + piece.at, packed, piece.bytes);
        packed += piece.bytes;
    }
}
