/* SPDX-License-Identifier: Apache-2.0
 * A list of buffers as one packed run of bytes. All offsets here are packed offsets; all replicas
 * share one layout, so cuts made from it are the same everywhere. */
#ifndef CADRE_WORKER_MESH_LAYOUT_H
#define CADRE_WORKER_MESH_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/mesh.h"

struct layout_entry {
    size_t start; /* packed offset of the buffer's first byte */
    enum mesh_dtype dtype;
};

struct layout {
    struct layout_entry *entries; /* [count + 1]; the last one's start is the total */
    size_t count;
    size_t capacity;
    size_t bytes;
};

/* A run of bytes of one buffer. */
struct layout_piece {
    size_t buffer;
    size_t at; /* offset inside the buffer */
    size_t bytes;
    enum mesh_dtype dtype;
};

/* Describes `buffers`; reuses the memory of the call before. The total must fit size_t (checked by
 * the caller). */
cadre_status mesh_layout_set(struct layout *layout, const struct mesh_buffer *buffers, size_t count,
    struct cadre_error *error);
/* The same list with its 16-bit floats as float32; reuses the memory of `layout`. */
cadre_status mesh_layout_widen(
    struct layout *layout, const struct layout *narrow, struct cadre_error *error);
/* The offset in `wide` of an offset in `narrow`, which `wide` was made from. */
size_t mesh_layout_widened(const struct layout *wide, const struct layout *narrow, size_t offset);

/* Frees the entries. */
void mesh_layout_finish(struct layout *layout);

/* The largest element boundary that is not above `offset`; the total for any offset at or past the
 * end. */
size_t mesh_layout_cut(const struct layout *layout, size_t offset);

/* Where a chunk of up to `bytes` (more than an element) that begins at `low` ends. */
size_t mesh_layout_chunk_end(const struct layout *layout, size_t low, size_t bytes);

/* Share `index` of `share_count` nearly equal ones of [low, high), cut at element boundaries and,
 * counted from `low`, at whole cache lines. */
void mesh_layout_part(const struct layout *layout, size_t low, size_t high, uint32_t index,
    uint32_t share_count, size_t *ret_low, size_t *ret_high);

/* The piece at *offset that ends at `end` or with its buffer; moves *offset behind it. False when
 * *offset >= end. */
bool mesh_layout_next(
    const struct layout *layout, size_t *offset, size_t end, struct layout_piece *ret_piece);

/* Copies [low, high) from where the buffers are read (`from` if there is one) to `packed`, which
 * holds offset `low` first. */
void mesh_layout_gather(const struct layout *layout, const struct mesh_buffer *buffers, size_t low,
    size_t high, uint8_t *packed);
/* Copies [low, high) from `packed`, which holds offset `low` first, to `data` of the buffers. */
void mesh_layout_scatter(const struct layout *layout, const struct mesh_buffer *buffers, size_t low,
    size_t high, const uint8_t *packed);

#endif
