/* SPDX-License-Identifier: Apache-2.0
 * The interface between the plugin's C and its kernels: each function launches one kernel on the
 * current device, and returns the launch's result. */
#ifndef CADRE_WORKER_CUDA_KERNELS_H
#define CADRE_WORKER_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Number types of the kernels. Integers have no sign here: they wrap around either way. */
enum kernel_number {
    KERNEL_F64,
    KERNEL_F32,
    KERNEL_F16,
    KERNEL_BF16,
    KERNEL_WORD8,
    KERNEL_WORD16,
    KERNEL_WORD32,
    KERNEL_WORD64
};

enum kernel_how { KERNEL_ADD, KERNEL_SUB, KERNEL_MUL };

/* data[i] *= factor; the four floating types. The product is a float64, rounded once. */
cudaError_t kernel_scale(
    enum kernel_number number, void *data, size_t count, double factor, cudaStream_t stream);

/* to[i] = to[i] <how> from[i]. Both are aligned to the size of an element. */
cudaError_t kernel_arithmetic(enum kernel_how how, enum kernel_number number, void *to,
    const void *from, size_t count, cudaStream_t stream);

/* An update by an optimizer, of f64 or f32; `kind` and `terms` are of
 * worker/library/optimizer/terms.h. All addresses are aligned to an element. */
struct update_terms;
struct kernel_update {
    uint32_t kind;
    const struct update_terms *terms;
    void *values;
    void *slots[3];
    const void *gradient;
    size_t count;
};
/* Updates the elements in place. */
cudaError_t kernel_update_elements(
    enum kernel_number number, const struct kernel_update *update, cudaStream_t stream);

/* The copies of one launch: bytes[i] of from[i] to to[i], any size but 0 and any alignment. It is
 * the kernel's parameter, of which there are 4 KiB. Pieces are cut into tiles, which blocks take by
 * turns; first_tile[i] is the number of piece i's first one. */
#define KERNEL_PIECES_MAX 140
struct kernel_pieces {
    const void *from[KERNEL_PIECES_MAX];
    void *to[KERNEL_PIECES_MAX];
    uint64_t bytes[KERNEL_PIECES_MAX];
    uint32_t first_tile[KERNEL_PIECES_MAX];
    uint32_t count;
    uint32_t tiles; /* of all pieces */
};

/* How many tiles a piece has that is copied to `to`. */
uint64_t kernel_piece_tiles(const void *to, uint64_t bytes);

/* Copies all pieces. */
cudaError_t kernel_copy_pieces(const struct kernel_pieces *pieces, cudaStream_t stream);

/* The chunks of one launch: chunks of KERNEL_CHUNK_BYTES, of piece i those `stride` chunks from
 * each to the next, from data[i] on, which is aligned to 16 bytes; first[i] is the number of its
 * first one. */
#define KERNEL_CHUNK_BYTES 65536
#define KERNEL_CHUNKS_MAX  140
struct kernel_chunks {
    const void *data[KERNEL_CHUNKS_MAX];
    uint64_t *hashes[KERNEL_CHUNKS_MAX];
    uint32_t stride[KERNEL_CHUNKS_MAX];
    uint32_t first[KERNEL_CHUNKS_MAX];
    uint32_t count;
    uint32_t chunks; /* of all pieces */
};

/* Hashes all chunks. */
cudaError_t kernel_hash_chunks(const struct kernel_chunks *pieces, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
