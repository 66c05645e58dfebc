/* SPDX-License-Identifier: Apache-2.0 */
#include "values.h"

#include <string.h>

static float value(int rank, size_t i)
{
    return (float)((i + 13 * (size_t)rank) & 31);
}

static float sum(int ranks, size_t i)
{
    float all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        all += value(rank, i);
    }
    return all;
}

void values_fill(const struct bench_call *call, int rank, int ranks)
{
    size_t count = call->operation == BENCH_ALL_GATHER ? call->count / (size_t)ranks : call->count;
    for (size_t i = 0; i < count; i++) {
        call->in[i] = value(rank, i);
    }
}

bool values_right(const struct bench_call *call, int rank, int ranks)
{
    size_t part = call->count / (size_t)ranks;
    size_t wrong = 0;
    switch (call->operation) {
    case BENCH_ALL_REDUCE:
    case BENCH_FRESH:
        for (size_t i = 0; i < call->count; i++) {
            wrong += call->in[i] != sum(ranks, i);
        }
        break;
    case BENCH_REDUCE_SCATTER:
        for (size_t i = 0; i < part; i++) {
            wrong += call->out[i] != sum(ranks, (size_t)rank * part + i);
        }
        break;
    case BENCH_BROADCAST:
        for (size_t i = 0; i < call->count; i++) {
            wrong += call->in[i] != value(call->root, i);
        }
        break;
    case BENCH_ALL_GATHER:
        for (size_t i = 0; i < call->count; i++) {
            wrong += call->out[i] != value((int)(i / part), i % part);
        }
        break;
    case BENCH_BARRIER:
        break;
    }
    return wrong == 0;
}

void values_fill_rough(float *values, size_t count, int rank)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(rank + 1);
    for (size_t i = 0; i < count; i++) {
        state ^= state << 7;
        state ^= state >> 9;
        float fraction = (float)(int32_t)(state >> 32) / 2147483648.0f;
        values[i] = fraction * (float)(1u << (state & 15));
    }
}

uint64_t values_hash(const float *values, size_t count)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        hash = (hash ^ bits) * UINT64_C(0x100000001b3);
    }
    return hash;
}
