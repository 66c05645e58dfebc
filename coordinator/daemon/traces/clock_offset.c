/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/traces/clock_offset.h"

#define DRIFT_DIVISOR 20000 /* 50 millionths; a quartz has at most that */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

bool clock_offset_add(
    struct clock_offset *offset, uint64_t asked_ns, uint64_t answered_ns, uint64_t received_ns)
{
    if (received_ns < asked_ns) {
        return false;
    }
    uint64_t half_ns = (received_ns - asked_ns) / 2;
    uint64_t age_ns = offset->samples > 0 ? distance(received_ns, offset->taken_ns) : 0;
    bool better = offset->samples == 0 || half_ns < offset->half_ns + age_ns / DRIFT_DIVISOR;
    offset->samples++;
    if (better) {
        offset->offset_ns = asked_ns + half_ns - answered_ns;
        offset->half_ns = half_ns;
        offset->taken_ns = asked_ns + half_ns;
    }
    return better;
}

uint64_t clock_offset_error(const struct clock_offset *offset, uint64_t from_ns, uint64_t to_ns)
{
    if (offset->samples == 0) {
        return UINT64_MAX;
    }
    uint64_t before_ns = distance(offset->taken_ns, from_ns);
    uint64_t after_ns = distance(offset->taken_ns, to_ns);
    return offset->half_ns + 1 + (before_ns > after_ns ? before_ns : after_ns) / DRIFT_DIVISOR;
}
