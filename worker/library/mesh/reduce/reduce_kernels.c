/* SPDX-License-Identifier: Apache-2.0
 * Chooses the loops, and splits reductions into what they do: up to four inputs are one loop, more
 * are a tree of fours, tile by tile, so that the values in between stay in the first-level cache. A
 * tree of fours is the tree of pairs, each two levels of it at once. The collectives, the wire and
 * the bench call it. */
#include "worker/library/mesh/reduce/reduce_kernels.h"

#include <stdatomic.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "common/pure/assert.h"
#include "worker/library/mesh/reduce/reduce_isa.h"

#define TILE_BYTES ((size_t)4096)

/* --- the instruction set --- */

static const struct reduce_isa *_Atomic chosen;

#ifdef __x86_64__
/* Clang's __builtin_cpu_supports does not have F16C; its AVX2 includes that the system saves the
 * registers. */
static bool has_avx2_and_f16c(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 &&
           (ecx & bit_F16C) != 0;
}
#endif

size_t reduce_isas(const struct reduce_isa *ret_isas[2])
{
    size_t count = 0;
    ret_isas[count++] = &reduce_isa_baseline;
#ifdef __x86_64__
    if (has_avx2_and_f16c()) {
        ret_isas[count++] = &reduce_isa_avx2;
    }
#endif
    return count;
}

void reduce_isa_use(const struct reduce_isa *isa)
{
    atomic_store(&chosen, isa);
}

/* Several threads may choose at once, and choose the same. */
static const struct reduce_isa *isa_of(void)
{
    const struct reduce_isa *isa = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (isa == NULL) {
        const struct reduce_isa *isas[2];
        isa = isas[reduce_isas(isas) - 1];
        atomic_store_explicit(&chosen, isa, memory_order_relaxed);
    }
    return isa;
}

/* --- types --- */

static bool is_half(enum mesh_dtype dtype)
{
    return dtype == MESH_F16 || dtype == MESH_BF16;
}

static size_t half_of(enum mesh_dtype dtype)
{
    CADRE_ASSERT(is_half(dtype));
    return dtype == MESH_F16 ? REDUCE_F16 : REDUCE_BF16;
}

enum mesh_dtype mesh_reduce_part_dtype(enum mesh_dtype dtype)
{
    return is_half(dtype) ? MESH_F32 : dtype;
}

void mesh_widen(enum mesh_dtype dtype, float *into, const void *from, size_t count)
{
    isa_of()->widen[half_of(dtype)](into, from, count);
}

void mesh_narrow(enum mesh_dtype dtype, void *into, const float *from, size_t count)
{
    isa_of()->narrow[half_of(dtype)](into, from, count);
}

/* --- the tree of fours --- */

struct reduction {
    const struct reduce_isa *isa;
    enum mesh_dtype dtype;
    const uint8_t *const *ins;
    size_t in_count;
    const struct reduce_row *leaves; /* joins inputs into partial results */
    const struct reduce_row *inner;  /* joins partial results */
    uint8_t *scratch;
};

/* The height of the tree of fours over more than one input. */
static uint32_t levels_of(size_t in_count)
{
    uint32_t levels = 1;
    for (size_t covered = REDUCE_INS_MAX; covered < in_count; covered *= REDUCE_INS_MAX) {
        levels++;
    }
    return levels;
}

size_t mesh_reduce_scratch_bytes(size_t in_count)
{
    /* Four tiles of children under the top of each level but the lowest, and one for a result that
     * is rounded at last. */
    return in_count <= REDUCE_INS_MAX
               ? 0
               : ((size_t)(levels_of(in_count) - 1) * REDUCE_INS_MAX + 1) * TILE_BYTES;
}

/* The partial result of `count` elements over the inputs from `first` on, under a node of `level`;
 * in `into`, or at the address of the only input or partial result under the node. */
static const void *part_of(const struct reduction *reduction, size_t first, uint32_t level,
    size_t at, size_t count, void *into)
{
    const void *children[REDUCE_INS_MAX] = {NULL};
    size_t child_count = 0;
    size_t width = (size_t)1 << (2 * (level - 1));
    for (size_t i = first; child_count < REDUCE_INS_MAX && i < reduction->in_count; i += width) {
        if (level == 1) {
            children[child_count++] = reduction->ins[i] + at;
        } else {
            size_t tile = (size_t)(level - 2) * REDUCE_INS_MAX + child_count;
            children[child_count++] =
                part_of(reduction, i, level - 1, at, count, reduction->scratch + tile * TILE_BYTES);
        }
    }
    if (child_count > 1) {
        const struct reduce_row *row = level == 1 ? reduction->leaves : reduction->inner;
        row->of[child_count - 2](into, children, count);
        return into;
    }
    if (level == 1 && is_half(reduction->dtype)) {
        mesh_widen(reduction->dtype, into, children[0], count);
        return into;
    }
    return children[0];
}

static struct reduction reduction_of(enum mesh_op op, enum mesh_dtype dtype,
    const uint8_t *const *ins, size_t in_count, uint8_t *scratch)
{
    const struct reduce_isa *isa = isa_of();
    CADRE_ASSERT(in_count >= 1);
    return (struct reduction){.isa = isa,
        .dtype = dtype,
        .ins = ins,
        .in_count = in_count,
        .leaves = is_half(dtype) ? &isa->wide[half_of(dtype)][op] : &isa->same[dtype][op],
        .inner = &isa->same[mesh_reduce_part_dtype(dtype)][op],
        .scratch = scratch};
}

void mesh_reduce_part(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into,
    const uint8_t *const *ins, size_t in_count, size_t at, size_t bytes, uint8_t *scratch)
{
    struct reduction reduction = reduction_of(op, dtype, ins, in_count, scratch);
    size_t size = mesh_dtype_bytes(dtype);
    size_t part_size = mesh_dtype_bytes(mesh_reduce_part_dtype(dtype));
    size_t tile = in_count <= REDUCE_INS_MAX ? SIZE_MAX : TILE_BYTES / part_size;
    size_t count = bytes / size;
    CADRE_ASSERT(bytes % size == 0);
    for (size_t done = 0; done < count;) {
        size_t now = count - done < tile ? count - done : tile;
        uint8_t *to = into + done * part_size;
        const void *part = part_of(&reduction, 0, levels_of(in_count), at + done * size, now, to);
        if (part != to) {
            memmove(to, part, now * part_size); /* there is one input */
        }
        done += now;
    }
}

/* --- into outputs --- */

/* Reduces `bytes` bytes, rounded to the inputs' type; at most a tile from more than four inputs. */
static void reduce_into(const struct reduction *reduction, const struct reduce_row *row, size_t at,
    size_t bytes, uint8_t *into)
{
    size_t count = bytes / mesh_dtype_bytes(reduction->dtype);
    uint32_t levels = levels_of(reduction->in_count);
    if (reduction->in_count == 1) {
        if (into != reduction->ins[0] + at) {
            memmove(into, reduction->ins[0] + at, bytes);
        }
    } else if (reduction->in_count <= REDUCE_INS_MAX) {
        const void *ins[REDUCE_INS_MAX];
        for (size_t i = 0; i < reduction->in_count; i++) {
            ins[i] = reduction->ins[i] + at;
        }
        row->of[reduction->in_count - 2](into, ins, count);
    } else if (is_half(reduction->dtype)) {
        uint8_t *tile = reduction->scratch + (size_t)(levels - 1) * REDUCE_INS_MAX * TILE_BYTES;
        mesh_narrow(reduction->dtype, into, part_of(reduction, 0, levels, at, count, tile), count);
    } else {
        part_of(reduction, 0, levels, at, count, into);
    }
}

static void reduce_to_all(const struct reduction *reduction, const struct reduce_row *row,
    uint8_t *const *outs, size_t at, size_t bytes)
{
    void *to[REDUCE_INS_MAX];
    const void *ins[REDUCE_INS_MAX];
    for (size_t i = 0; i < reduction->in_count; i++) {
        to[i] = outs[i] + at;
        ins[i] = reduction->ins[i] + at;
    }
    row->all[reduction->in_count - 2](to, ins, bytes / mesh_dtype_bytes(reduction->dtype));
}

void mesh_reduce_many(enum mesh_op op, enum mesh_dtype dtype, uint8_t *const *outs,
    size_t out_count, const uint8_t *const *ins, size_t in_count, size_t at, size_t bytes,
    uint8_t *scratch)
{
    struct reduction reduction = reduction_of(op, dtype, ins, in_count, scratch);
    const struct reduce_row *row = &reduction.isa->same[dtype][op];
    bool few = in_count >= 2 && in_count <= REDUCE_INS_MAX;
    CADRE_ASSERT(bytes % mesh_dtype_bytes(dtype) == 0 && out_count >= 1);
    if (few && out_count == in_count && row->all[in_count - 2] != NULL) {
        reduce_to_all(&reduction, row, outs, at, bytes);
        return;
    }
    /* In halves of a tile the written bytes are still in the cache when they are copied, and 16-bit
     * types fill a tile when they are float32. */
    size_t piece = few && out_count == 1 ? SIZE_MAX : TILE_BYTES / 2;
    for (size_t end = at + bytes; at < end;) {
        size_t now = end - at < piece ? end - at : piece;
        reduce_into(&reduction, row, at, now, outs[0] + at);
        for (size_t i = 1; i < out_count; i++) {
            if (in_count > 1 || outs[i] != ins[0]) {
                memmove(outs[i] + at, outs[0] + at, now);
            }
        }
        at += now;
    }
}

void mesh_reduce_pair(enum mesh_op op, enum mesh_dtype dtype, uint8_t *into, const uint8_t *left,
    const uint8_t *right, size_t bytes)
{
    size_t size = mesh_dtype_bytes(dtype);
    CADRE_ASSERT(bytes % size == 0);
    isa_of()->same[dtype][op].of[0](into, (const void *const[]){left, right}, bytes / size);
}
