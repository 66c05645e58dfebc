/* SPDX-License-Identifier: Apache-2.0
 * The arguments of a collective that must be the same on all replicas. */
#ifndef CADRE_WORKER_MESH_CALL_SHAPE_H
#define CADRE_WORKER_MESH_CALL_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/names.h"

#define CALL_DTYPE_MIXED 0xffu /* a list of several element types, or of none */

struct call_shape {
    uint8_t kind;  /* enum mesh_kind */
    uint8_t op;    /* 0 where there is none */
    uint8_t dtype; /* of all buffers, or CALL_DTYPE_MIXED */
    uint32_t root; /* 0 where there is none */
    uint64_t count;
    uint64_t bytes;
    uint64_t layout; /* a digest of each buffer's type and size, in order */
    uint64_t key;    /* of what else must be equal: the note's key */
};

/* Whether two calls match. */
bool mesh_call_shape_equal(const struct call_shape *a, const struct call_shape *b);

/* Writes "all_reduce(sum, float32, 2 buffers, 400 bytes)"; takes any values. */
void mesh_call_shape_describe(const struct call_shape *shape, char *ret_text, size_t size);

#endif
