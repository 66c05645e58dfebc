/* SPDX-License-Identifier: Apache-2.0
 * See floor.h. */
#include "tests/bench/optimizers/floor.h"

#define STREAM(number, ...)                                                                        \
    static void stream_##number(float *const arrays[], size_t count)                               \
    {                                                                                              \
        float *restrict a = arrays[0];                                                             \
        float *restrict b = arrays[number > 1 ? 1 : 0];                                            \
        float *restrict c = arrays[number > 2 ? 2 : 0];                                            \
        float *restrict d = arrays[number > 3 ? 3 : 0];                                            \
        const float *restrict g = arrays[number];                                                  \
        (void)b;                                                                                   \
        (void)c;                                                                                   \
        (void)d;                                                                                   \
        for (size_t i = 0; i < count; i++) {                                                       \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
STREAM(1, a[i] += g[i];)
STREAM(2, a[i] += g[i]; b[i] += g[i];)
STREAM(3, a[i] += g[i]; b[i] += g[i]; c[i] += g[i];)
STREAM(4, a[i] += g[i]; b[i] += g[i]; c[i] += g[i]; d[i] += g[i];)

void floor_stream(float *const arrays[], size_t written, size_t count)
{
    static void (*const streams[])(float *const[], size_t) = {
        stream_1, stream_2, stream_3, stream_4};
    streams[written - 1](arrays, count);
}

float floor_read(float *const arrays[], size_t read, size_t count)
{
    const float *a = arrays[0];
    const float *b = arrays[1];
    const float *c = arrays[2];
    const float *d = arrays[read > 3 ? 3 : 2];
    float sums[4] = {0}; /* as many sums at a time as hide how long an addition takes */
    for (size_t i = 0; i < count; i++) {
        sums[0] += a[i];
        sums[1] += b[i];
        sums[2] += c[i];
        sums[3] += d[i];
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}
