/* SPDX-License-Identifier: Apache-2.0
 * Stand-in, for tests only: what kernels may use besides C++: a thread's indices, how those of a
 * block and of a warp synchronize, atomics, vectors. */
#ifndef CADRE_STANDIN_DEVICE_CODE_H
#define CADRE_STANDIN_DEVICE_CODE_H

#include "standin_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a thread is; found without a call. */
#define STANDIN_PLACE extern STANDIN_API __attribute__((tls_model("initial-exec"))) __thread
STANDIN_PLACE uint3 threadIdx;
STANDIN_PLACE uint3 blockIdx;
STANDIN_PLACE dim3 blockDim;
STANDIN_PLACE dim3 gridDim;
#undef STANDIN_PLACE

/* All live threads of the block; returns the number of those with a predicate other than 0. */
STANDIN_API int standinBlockMeets(int predicate);
/* All live threads of the warp that `mask` names. `value` is exchanged; the result is the value of
 * `lane`, and the own one when there is no such lane. */
STANDIN_API uint64_t standinWarpMeets(unsigned int mask, uint64_t value, unsigned int lane);
/* The same; bits of those lanes with a predicate other than 0. */
STANDIN_API unsigned int standinWarpBallot(unsigned int mask, int predicate);
STANDIN_API unsigned int standinLane(void);
STANDIN_API unsigned int standinActiveMask(void);
/* Ends the kernel as a failed assertion does. */
STANDIN_API void standinTrap(void) __attribute__((noreturn));
STANDIN_API long long standinClock(void);

#ifdef __cplusplus
}

#include <cstdint>
#include <cstring>

/* One block runs at a time on a stream's thread, so what its threads share can be the thread's. */
#define __shared__ thread_local

static const int warpSize = 32;

static inline void __syncthreads()
{
    standinBlockMeets(0);
}
static inline int __syncthreads_count(int predicate)
{
    return standinBlockMeets(predicate);
}
static inline int __syncthreads_or(int predicate)
{
    return standinBlockMeets(predicate) != 0;
}
static inline int __syncthreads_and(int predicate)
{
    return standinBlockMeets(!predicate) == 0;
}
static inline void __syncwarp(unsigned int mask = 0xffffffffu)
{
    standinWarpMeets(mask, 0, standinLane());
}
static inline unsigned int __activemask()
{
    return standinActiveMask();
}
static inline unsigned int __ballot_sync(unsigned int mask, int predicate)
{
    return standinWarpBallot(mask, predicate);
}
static inline int __any_sync(unsigned int mask, int predicate)
{
    return standinWarpBallot(mask, predicate) != 0;
}
static inline int __all_sync(unsigned int mask, int predicate)
{
    return standinWarpBallot(mask, !predicate) == 0;
}

template <typename T>
static inline T standin_warp_take(unsigned int mask, T value, unsigned int lane)
{
    static_assert(sizeof(T) <= 8, "a warp exchanges words of at most 8 bytes");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof(T));
    word = standinWarpMeets(mask, word, lane);
    std::memcpy(static_cast<void *>(&value), &word, sizeof(T));
    return value;
}

template <typename T>
static inline T __shfl_sync(unsigned int mask, T value, int from, int width = 32)
{
    unsigned int lane = standinLane();
    unsigned int part = static_cast<unsigned int>(width) - 1;
    return standin_warp_take(
        mask, value, (lane & ~part) | (static_cast<unsigned int>(from) & part));
}

template <typename T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32)
{
    unsigned int lane = standinLane();
    unsigned int place = lane & (static_cast<unsigned int>(width) - 1);
    return standin_warp_take(mask, value, place < delta ? lane : lane - delta);
}

template <typename T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32)
{
    unsigned int lane = standinLane();
    unsigned int place = lane & (static_cast<unsigned int>(width) - 1);
    bool within = place + delta < static_cast<unsigned int>(width);
    return standin_warp_take(mask, value, within ? lane + delta : lane);
}

template <typename T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32)
{
    unsigned int lane = standinLane();
    unsigned int other = lane ^ static_cast<unsigned int>(bits);
    unsigned int part = static_cast<unsigned int>(width) - 1;
    return standin_warp_take(mask, value, (other & ~part) > (lane & ~part) ? lane : other);
}

static inline void __threadfence()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_block()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system()
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
[[noreturn]] static inline void __trap()
{
    standinTrap();
}
static inline long long clock64()
{
    return standinClock();
}
static inline void __nanosleep(unsigned int)
{
}

/* --- atomics: across the blocks of kernels that run at the same time --- */

template <typename T, typename Change> static inline T standin_atomic(T *place, Change change)
{
    T before;
    __atomic_load(place, &before, __ATOMIC_RELAXED);
    T after = change(before);
    while (!__atomic_compare_exchange(
        place, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        after = change(before);
    }
    return before;
}

#define STANDIN_ATOMIC_ADD(type)                                                                   \
    static inline type atomicAdd(type *place, type value)                                          \
    {                                                                                              \
        return standin_atomic(                                                                     \
            place, [value](type before) { return static_cast<type>(before + value); });            \
    }
#define STANDIN_ATOMICS(type)                                                                      \
    STANDIN_ATOMIC_ADD(type)                                                                       \
    static inline type atomicMax(type *place, type value)                                          \
    {                                                                                              \
        return standin_atomic(                                                                     \
            place, [value](type before) { return before < value ? value : before; });              \
    }                                                                                              \
    static inline type atomicMin(type *place, type value)                                          \
    {                                                                                              \
        return standin_atomic(                                                                     \
            place, [value](type before) { return value < before ? value : before; });              \
    }                                                                                              \
    static inline type atomicOr(type *place, type value)                                           \
    {                                                                                              \
        return standin_atomic(place, [value](type before) { return before | value; });             \
    }                                                                                              \
    static inline type atomicAnd(type *place, type value)                                          \
    {                                                                                              \
        return standin_atomic(place, [value](type before) { return before & value; });             \
    }                                                                                              \
    static inline type atomicXor(type *place, type value)                                          \
    {                                                                                              \
        return standin_atomic(place, [value](type before) { return before ^ value; });             \
    }                                                                                              \
    static inline type atomicExch(type *place, type value)                                         \
    {                                                                                              \
        return standin_atomic(place, [value](type) { return value; });                             \
    }                                                                                              \
    static inline type atomicCAS(type *place, type compare, type value)                            \
    {                                                                                              \
        return standin_atomic(                                                                     \
            place, [=](type before) { return before == compare ? value : before; });               \
    }
STANDIN_ATOMICS(int)
STANDIN_ATOMICS(unsigned int)
STANDIN_ATOMICS(unsigned long long)
STANDIN_ATOMIC_ADD(float)
STANDIN_ATOMIC_ADD(double)
#undef STANDIN_ATOMICS
#undef STANDIN_ATOMIC_ADD

static inline int atomicSub(int *place, int value)
{
    return standin_atomic(place, [value](int before) { return before - value; });
}
static inline unsigned int atomicSub(unsigned int *place, unsigned int value)
{
    return standin_atomic(place, [value](unsigned int before) { return before - value; });
}
static inline float atomicExch(float *place, float value)
{
    return standin_atomic(place, [value](float) { return value; });
}

/* --- loads and stores with a hint, which is not taken --- */

template <typename T> static inline T __ldg(const T *place)
{
    return *place;
}
template <typename T> static inline T __ldcs(const T *place)
{
    return *place;
}
template <typename T> static inline T __ldcg(const T *place)
{
    return *place;
}
template <typename T> static inline void __stcs(T *place, T value)
{
    *place = value;
}
template <typename T> static inline void __stcg(T *place, T value)
{
    *place = value;
}

/* --- vectors --- */

static inline float2 make_float2(float x, float y)
{
    return float2{x, y};
}
static inline float3 make_float3(float x, float y, float z)
{
    return float3{x, y, z};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}
static inline double2 make_double2(double x, double y)
{
    return double2{x, y};
}
static inline int2 make_int2(int x, int y)
{
    return int2{x, y};
}
static inline int4 make_int4(int x, int y, int z, int w)
{
    return int4{x, y, z, w};
}
static inline uint2 make_uint2(unsigned int x, unsigned int y)
{
    return uint2{x, y};
}
static inline uint3 make_uint3(unsigned int x, unsigned int y, unsigned int z)
{
    return uint3{x, y, z};
}
static inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w)
{
    return uint4{x, y, z, w};
}
static inline ushort4 make_ushort4(
    unsigned short x, unsigned short y, unsigned short z, unsigned short w)
{
    return ushort4{x, y, z, w};
}
static inline uchar4 make_uchar4(unsigned char x, unsigned char y, unsigned char z, unsigned char w)
{
    return uchar4{x, y, z, w};
}

#endif
#endif
