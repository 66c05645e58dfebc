/* SPDX-License-Identifier: Apache-2.0
 * The rings of latency.h. Called by common/storage/s3/run.c, under the session's lock. */
#include "common/storage/transport/latency.h"

#include "common/pure/assert.h"

#define SMALLEST_BYTES ((size_t)4096)

_Static_assert(LATENCY_SAMPLES <= 200, "the 99th percentile is the second largest, or the largest");

static unsigned size_index(size_t bytes)
{
    unsigned index = 0;
    for (size_t most = SMALLEST_BYTES; most < bytes && index + 1 < LATENCY_SIZES; most *= 2) {
        index++;
    }
    return index;
}

void latency_asked(struct latency *latency)
{
    if (latency->saved < HEDGE_SAVED_MOST * HEDGE_ONE_IN) {
        latency->saved++;
    }
}

void latency_took(struct latency *latency, size_t bytes, uint64_t us)
{
    struct latency_size *size = &latency->sizes[size_index(bytes)];
    CADRE_ASSERT(size->next < LATENCY_SAMPLES);
    size->us[size->next] = us;
    size->next = (size->next + 1) % LATENCY_SAMPLES;
    if (size->count < LATENCY_SAMPLES) {
        size->count++;
    }
}

uint64_t latency_hedge_us(const struct latency *latency, size_t bytes)
{
    const struct latency_size *size = &latency->sizes[size_index(bytes)];
    if (size->count < LATENCY_ENOUGH) {
        return UINT64_MAX;
    }
    uint64_t largest = 0;
    uint64_t second = 0;
    for (uint32_t i = 0; i < size->count; i++) {
        if (size->us[i] > largest) {
            second = largest;
            largest = size->us[i];
        } else if (size->us[i] > second) {
            second = size->us[i];
        }
    }
    return size->count < 100 ? largest : second;
}

bool latency_hedge(struct latency *latency)
{
    if (latency->saved < HEDGE_ONE_IN) {
        return false;
    }
    latency->saved -= HEDGE_ONE_IN;
    return true;
}
