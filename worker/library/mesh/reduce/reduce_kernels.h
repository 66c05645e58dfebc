/* SPDX-License-Identifier: Apache-2.0
 * Reductions of vectors in memory, for every operation and element type, as fast as this processor
 * can: the loops exist once per instruction set (reduce_isa.h), and the best that runs here is
 * chosen at the first call. All of them give the same bits.
 *
 * Addresses need no alignment; bytes are multiples of the element. Integers wrap around. MIN and
 * MAX give NaN when either side is NaN (the left one's first), and the left side when the two
 * compare equal. float16 and bfloat16 are widened to float32, reduced there, and rounded to nearest
 * even once, when the result is written. */
#ifndef CADRE_WORKER_MESH_REDUCE_REDUCE_KERNELS_H
#define CADRE_WORKER_MESH_REDUCE_REDUCE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/mesh.h"

/* into = left op right, element by element. `into` is one of the two or overlaps neither. */
void mesh_reduce_pair(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into, const uint8_t *left,
    const uint8_t *right, size_t bytes);

/* The bytes of scratch memory that reducing `in_count` inputs takes; 0 for up to 4. */
size_t mesh_reduce_scratch_bytes(size_t in_count);

/* Reduces `bytes` bytes at ins[i] + at of all inputs, in the order of the balanced pairwise tree
 * over their index (padded to a power of two; without a right side the left one is the result), and
 * writes the result at outs[k] + at of all outputs: one pass over memory, whatever the counts. Both
 * counts are at least 1. An output is one of the inputs (in place) or overlaps none; outputs do not
 * overlap: where they do, because another process spoilt their addresses, the numbers are arbitrary
 * and nothing else is written. `scratch` has mesh_reduce_scratch_bytes(in_count), aligned to 64. */
void mesh_reduce_many(enum mesh_op op, enum mesh_dtype dtype, uint8_t *const *outs,
    size_t out_count, const uint8_t *const *ins, size_t in_count, size_t at, size_t bytes,
    uint8_t *scratch);

/* The same for a part of a larger tree, before the rounding: 16-bit inputs give float32, at `into`
 * (not + at), which overlaps no input. Reduce such parts as MESH_F32, then mesh_narrow: the bits
 * are those of one reduction of all inputs. Other types are not changed. */
void mesh_reduce_part(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into,
    const uint8_t *const *ins, size_t in_count, size_t at, size_t bytes, uint8_t *scratch);

/* MESH_F32 for the 16-bit floats; else the type itself: what mesh_reduce_part gives. */
enum mesh_dtype mesh_reduce_part_dtype(enum mesh_dtype dtype);

/* `count` elements of a 16-bit float type to float32. The two sides do not overlap. */
void mesh_widen(enum mesh_dtype dtype, float *into, const void *from, size_t count);
/* And back, rounding to nearest even; a NaN becomes quiet. */
void mesh_narrow(enum mesh_dtype dtype, void *into, const float *from, size_t count);

#endif
