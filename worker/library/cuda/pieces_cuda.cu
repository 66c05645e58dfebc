/* SPDX-License-Identifier: Apache-2.0
 * Copies of many pieces in one launch. A piece is cut into tiles at addresses of `to` that are
 * aligned to 16 bytes; a block takes tiles by turns, so a huge piece among small ones is spread
 * over all of them. */
#include "worker/library/cuda/kernels.h"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned threads = 256;
constexpr unsigned each = 4; /* words that a thread has under way */
constexpr unsigned blocks_max = 2048;
constexpr unsigned vector_bytes = 16;
constexpr uint64_t tile_bytes = threads * each * vector_bytes;

static_assert(sizeof(kernel_pieces) <= 4096, "a kernel has 4 KiB of parameters");

struct alignas(vector_bytes) Word16 {
    uint32_t at[4];
};

/* The piece that a tile belongs to: the last one that begins at it or before. */
__device__ unsigned find_piece(const kernel_pieces &pieces, unsigned tile)
{
    unsigned low = 0;
    unsigned high = pieces.count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (pieces.first_tile[middle] <= tile) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

template <typename Word>
__device__ void copy_vectors(char *to, const char *from, unsigned first, unsigned vectors)
{
    auto *target = reinterpret_cast<Word *>(to + first);
    auto *source = reinterpret_cast<const Word *>(from + first);
    for (unsigned i = threadIdx.x; i < vectors; i += threads * each) {
        Word values[each];
        for (unsigned k = 0; k < each; k++) {
            if (i + k * threads < vectors) {
                values[k] = source[i + k * threads];
            }
        }
        for (unsigned k = 0; k < each; k++) {
            if (i + k * threads < vectors) {
                target[i + k * threads] = values[k];
            }
        }
    }
}

/* The bytes before the first aligned word and behind the last one are copied by themselves. */
template <typename Word> __device__ void copy_aligned(char *to, const char *from, unsigned bytes)
{
    unsigned off = static_cast<unsigned>(reinterpret_cast<uintptr_t>(to) % sizeof(Word));
    unsigned head = off == 0 ? 0 : static_cast<unsigned>(sizeof(Word)) - off;
    head = head < bytes ? head : bytes;
    unsigned vectors = (bytes - head) / static_cast<unsigned>(sizeof(Word));
    unsigned tail = head + vectors * static_cast<unsigned>(sizeof(Word));
    copy_vectors<Word>(to, from, head, vectors);
    if (threadIdx.x < head) {
        to[threadIdx.x] = from[threadIdx.x];
    }
    if (threadIdx.x < bytes - tail) {
        to[tail + threadIdx.x] = from[tail + threadIdx.x];
    }
}

/* By the widest word that can be aligned on both sides. */
__device__ void copy_tile(char *to, const char *from, unsigned bytes)
{
    auto apart = static_cast<unsigned>(
        (reinterpret_cast<uintptr_t>(to) ^ reinterpret_cast<uintptr_t>(from)) % vector_bytes);
    if (apart == 0) {
        copy_aligned<Word16>(to, from, bytes);
    } else if (apart % sizeof(uint64_t) == 0) {
        copy_aligned<uint64_t>(to, from, bytes);
    } else if (apart % sizeof(uint32_t) == 0) {
        copy_aligned<uint32_t>(to, from, bytes);
    } else if (apart % sizeof(uint16_t) == 0) {
        copy_aligned<uint16_t>(to, from, bytes);
    } else {
        copy_vectors<char>(to, from, 0, bytes);
    }
}

__global__ void __launch_bounds__(threads)
    copy_pieces_kernel(const __grid_constant__ kernel_pieces pieces)
{
    for (unsigned tile = blockIdx.x; tile < pieces.tiles; tile += gridDim.x) {
        unsigned piece = find_piece(pieces, tile);
        auto *to = static_cast<char *>(pieces.to[piece]);
        auto *from = static_cast<const char *>(pieces.from[piece]);
        uint64_t bytes = pieces.bytes[piece];
        uint64_t off = reinterpret_cast<uintptr_t>(to) % vector_bytes;
        uint64_t end = (tile - pieces.first_tile[piece] + 1) * tile_bytes - off;
        uint64_t begin = end + off == tile_bytes ? 0 : end - tile_bytes;
        end = end < bytes ? end : bytes;
        copy_tile(to + begin, from + begin, static_cast<unsigned>(end - begin));
    }
}

} /* namespace */

uint64_t kernel_piece_tiles(const void *to, uint64_t bytes)
{
    uint64_t off = reinterpret_cast<uintptr_t>(to) % vector_bytes;
    return (off + bytes + tile_bytes - 1) / tile_bytes;
}

cudaError_t kernel_copy_pieces(const kernel_pieces *pieces, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(pieces->tiles < blocks_max ? pieces->tiles : blocks_max);
    config.blockDim = dim3(threads);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, copy_pieces_kernel, *pieces);
}
