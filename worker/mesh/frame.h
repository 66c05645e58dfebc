/* SPDX-License-Identifier: Apache-2.0
 * What a task says to every other task at the start of a collective: what it was called with. 80
 * bytes, then at most the mesh's inline limit of payload. A frame can also carry, instead, the
 * reason why this task cannot take part (PROBLEM: its own replicas disagree; the mesh stays usable)
 * or why its mesh is gone (FAULT). */
#ifndef CADRE_WORKER_MESH_FRAME_H
#define CADRE_WORKER_MESH_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/mesh/names.h"

#define FRAME_BYTES       80
#define FRAME_TEXT_BYTES  384   /* of a PROBLEM or FAULT, with the final zero */
#define FRAME_DTYPE_MIXED 0xffu /* a list of several element types, or of none */

enum frame_type { FRAME_CALL = 1, FRAME_PROBLEM, FRAME_FAULT };

/* What must be the same on all replicas of a collective. */
struct call_shape {
    uint8_t kind;  /* enum mesh_kind */
    uint8_t op;    /* 0 where there is none */
    uint8_t dtype; /* of all buffers, or FRAME_DTYPE_MIXED */
    uint32_t root; /* 0 where there is none */
    uint64_t count;
    uint64_t bytes;
    uint64_t layout; /* a digest of each buffer's type and size, in order */
    uint64_t key;    /* of what else must be equal: the note's */
};

struct frame {
    enum frame_type type;
    uint64_t generation;
    uint64_t nonce;
    uint64_t sequence;
    uint32_t rank;
    uint32_t code; /* a cadre_status; of a FAULT only */
    uint32_t inline_bytes;
    struct call_shape shape;
};

void mesh_frame_encode(const struct frame *frame, uint8_t ret_bytes[FRAME_BYTES]);

/* False when the bytes are no frame. Values are as sent: the reader judges them. */
bool mesh_frame_decode(const uint8_t bytes[FRAME_BYTES], struct frame *ret_frame);

bool mesh_call_shape_equal(const struct call_shape *a, const struct call_shape *b);

/* "all_reduce(sum, float32, 2 buffers, 400 bytes)" */
void mesh_call_shape_describe(const struct call_shape *shape, char *ret_text, size_t size);

/* "<who_a> called <shape a>, but <who_b> called <shape b>", also when only the layout differs. */
void mesh_call_shape_compare(const char *who_a, const struct call_shape *a, const char *who_b,
    const struct call_shape *b, char *ret_text, size_t size);

#endif
