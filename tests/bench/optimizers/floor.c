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

#define LANES 64

float floor_read(float *const arrays[], size_t read, size_t count)
{
    float lanes[LANES] = {0};
    const float *a = arrays[0];
    const float *b = arrays[1];
    const float *c = arrays[2];
    const float *d = arrays[read > 3 ? 3 : 2];
    for (size_t i = 0; i + LANES <= count; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            lanes[k] += (a[i + k] + b[i + k]) + (c[i + k] + d[i + k]);
        }
    }
    float sum = 0;
    for (size_t k = 0; k < LANES; k++) {
        sum += lanes[k];
    }
    return sum;
}
