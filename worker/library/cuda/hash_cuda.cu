/* SPDX-License-Identifier: Apache-2.0
 * XXH3 of chunks, by the algorithm's specification, for inputs of just one length:
 *
 *    chunk    block 0 │ block 1 │ ... │ block 63      1 KiB each; of one, by four threads:
 *    block    stripe 0 │ stripe 1 │ ... │ stripe 15   64 bytes each: eight words, two of a thread
 *
 * What the stripes of a block add to the eight lanes does not depend on the blocks before, so that
 * all blocks are summed at once, by 256 threads; then eight threads go over the 64 sums. It is
 * bound by memory: each byte is loaded once, 16 at a time, and a thread's 16 loads are independent.
 * work_cuda.c launches it. */
#include "worker/library/cuda/kernels.h"

#include <cuda_runtime.h>

namespace
{

constexpr unsigned lanes = 8;
constexpr unsigned stripes = 16; /* of a block: each begins a word later in the secret */
constexpr unsigned blocks = KERNEL_CHUNK_BYTES / (stripes * lanes * sizeof(uint64_t));
constexpr unsigned pairs = lanes / 2; /* threads of a block of the chunk */
constexpr unsigned threads = blocks * pairs;
constexpr unsigned key_count = 24; /* 64-bit words of the secret */
constexpr unsigned grid_max = 4096;

/* Offsets in the secret, in bytes. */
constexpr unsigned secret_scramble = 128;
constexpr unsigned secret_last = 121;
constexpr unsigned secret_merge = 11;

static_assert(threads == 256, "a chunk is what so many threads sum up");
static_assert(sizeof(kernel_chunks) <= 4096, "a kernel has 4 KiB of parameters");

constexpr uint64_t prime32_1 = 0x9e3779b1;
constexpr uint64_t prime32_2 = 0x85ebca77;
constexpr uint64_t prime32_3 = 0xc2b2ae3d;
constexpr uint64_t prime64_1 = 0x9e3779b185ebca87;
constexpr uint64_t prime64_2 = 0xc2b2ae3d27d4eb4f;
constexpr uint64_t prime64_3 = 0x165667b19e3779f9;
constexpr uint64_t prime64_4 = 0x85ebca77c2b2ae63;
constexpr uint64_t prime64_5 = 0x27d4eb2f165667c5;
constexpr uint64_t prime_mix = 0x165667919e3779f9;

/* The default secret of the specification, and the first values of the lanes. */
__constant__ const uint64_t secret_keys[key_count] = {
    0xbe4ba423396cfeb8,
    0x1cad21f72c81017c,
    0xdb979083e96dd4de,
    0x1f67b3b7a4a44072,
    0x78e5c0cc4ee679cb,
    0x2172ffcc7dd05a82,
    0x8e2443f7744608b8,
    0x4c263a81e69035e0,
    0xcb00c391bb52283c,
    0xa32e531b8b65d088,
    0x4ef90da297486471,
    0xd8acdea946ef1938,
    0x3f349ce33f76faa8,
    0x1d4f0bc7c7bbdcf9,
    0x3159b4cd4be0518a,
    0x647378d9c97e9fc8,
    0xc3ebd33483acc5ea,
    0xeb6313faffa081c5,
    0x49daf0b751dd0d17,
    0x9e68d429265516d3,
    0xfca1477d58be162b,
    0xce31d07ad1b8f88f,
    0x280416958f3acb45,
    0x7e404bbbcafbd7af,
};
__constant__ const uint64_t lane_starts[lanes] = {
    prime32_3, prime64_1, prime64_2, prime64_3, prime64_4, prime32_2, prime64_5, prime32_1};

struct alignas(2 * sizeof(uint64_t)) Pair {
    uint64_t at[2];
};

__device__ uint64_t secret_at(const uint64_t *secret, unsigned byte)
{
    unsigned bits = byte % 8 * 8;
    uint64_t low = secret[byte / 8];
    return bits == 0 ? low : low >> bits | secret[byte / 8 + 1] << (64 - bits);
}

__device__ uint64_t low32(uint64_t value)
{
    return value & 0xffffffff;
}

/* The halves of the product of 128 bits, one xored with the other. */
__device__ uint64_t fold(uint64_t a, uint64_t b)
{
    uint64_t low = low32(a) * low32(b);
    uint64_t cross = (a >> 32) * low32(b);
    uint64_t other = low32(a) * (b >> 32);
    uint64_t middle = (low >> 32) + low32(cross) + low32(other);
    uint64_t high = (a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32) + (middle >> 32);
    return high ^ (middle << 32 | low32(low));
}

__device__ uint64_t product(uint64_t value)
{
    return low32(value) * (value >> 32);
}

/* What a stripe adds to two lanes: each gets the other one's word as it is. */
__device__ void add_stripe(Pair &sum, Pair stripe, uint64_t key0, uint64_t key1)
{
    sum.at[0] += stripe.at[1] + product(stripe.at[0] ^ key0);
    sum.at[1] += stripe.at[0] + product(stripe.at[1] ^ key1);
}

/* What a block adds to lanes 2 * pair and 2 * pair + 1. The last stripe of all has other keys. */
__device__ Pair sum_block(const uint64_t *secret, const Pair *from, unsigned block, unsigned pair)
{
    Pair sum = {};
    Pair loaded[stripes];
    for (unsigned i = 0; i < stripes; i++) {
        loaded[i] = from[(block * stripes + i) * pairs + pair];
    }
    for (unsigned i = 0; i + 1 < stripes; i++) {
        add_stripe(sum, loaded[i], secret[i + 2 * pair], secret[i + 2 * pair + 1]);
    }
    unsigned byte = block + 1 < blocks ? (stripes - 1) * 8 : secret_last;
    add_stripe(sum, loaded[stripes - 1], secret_at(secret, byte + 16 * pair),
        secret_at(secret, byte + 16 * pair + 8));
    return sum;
}

/* A lane after all blocks. */
__device__ uint64_t run_lane(const uint64_t *secret, const uint64_t (*sums)[lanes], unsigned lane)
{
    uint64_t value = lane_starts[lane];
    uint64_t key = secret_at(secret, secret_scramble + 8 * lane);
    for (unsigned block = 0; block + 1 < blocks; block++) {
        value += sums[block][lane];
        value = (value ^ value >> 47 ^ key) * prime32_1;
    }
    return value + sums[blocks - 1][lane];
}

__device__ uint64_t merge(const uint64_t *ends)
{
    uint64_t hash = uint64_t{KERNEL_CHUNK_BYTES} * prime64_1;
    for (unsigned i = 0; i < lanes; i += 2) {
        hash += fold(ends[i], ends[i + 1]);
    }
    hash = (hash ^ hash >> 37) * prime_mix;
    return hash ^ hash >> 32;
}

/* The piece that a chunk belongs to: the last one that begins at it or before. */
__device__ unsigned find_piece(const kernel_chunks &pieces, unsigned chunk)
{
    unsigned low = 0;
    unsigned high = pieces.count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (pieces.first[middle] <= chunk) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

__global__ void __launch_bounds__(threads)
    hash_chunks_kernel(const __grid_constant__ kernel_chunks pieces)
{
    __shared__ uint64_t secret[key_count];
    __shared__ uint64_t sums[blocks][lanes];
    __shared__ uint64_t ends[lanes];
    unsigned block = threadIdx.x / pairs;
    unsigned pair = threadIdx.x % pairs;
    if (threadIdx.x < key_count) {
        secret[threadIdx.x] = secret_keys[threadIdx.x];
    }
    __syncthreads();
    for (unsigned chunk = blockIdx.x; chunk < pieces.chunks; chunk += gridDim.x) {
        unsigned piece = find_piece(pieces, chunk);
        uint64_t number = chunk - pieces.first[piece];
        auto *from = static_cast<const char *>(pieces.data[piece]) +
                     number * pieces.stride[piece] * KERNEL_CHUNK_BYTES;
        Pair sum = sum_block(secret, reinterpret_cast<const Pair *>(from), block, pair);
        sums[block][2 * pair] = sum.at[0];
        sums[block][2 * pair + 1] = sum.at[1];
        __syncthreads();
        if (threadIdx.x < lanes) {
            ends[threadIdx.x] = run_lane(secret, sums, threadIdx.x) ^
                                secret_at(secret, secret_merge + 8 * threadIdx.x);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            pieces.hashes[piece][number] = merge(ends);
        }
    }
}

} /* namespace */

cudaError_t kernel_hash_chunks(const kernel_chunks *pieces, cudaStream_t stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(pieces->chunks < grid_max ? pieces->chunks : grid_max);
    config.blockDim = dim3(threads);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, hash_chunks_kernel, *pieces);
}
