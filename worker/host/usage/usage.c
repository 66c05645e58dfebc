/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/usage/usage.h"

#include "common/model/limits.h"

struct resource_usage usage_between(
    const struct usage_reading *before, const struct usage_reading *now)
{
    struct resource_usage usage = {.has_memory = now->has_memory,
        .has_memory_peak = now->has_memory_peak,
        .memory_bytes = now->memory_bytes,
        .memory_peak_bytes = now->memory_peak_bytes};
    usage.has_cpu = before->has_cpu && now->has_cpu && now->at_us > before->at_us;
    if (usage.has_cpu) {
        uint64_t used_us = now->cpu_us > before->cpu_us ? now->cpu_us - before->cpu_us : 0;
        double share = (double)used_us / (double)(now->at_us - before->at_us) * 1000;
        usage.cpu_thousandths = share < LIMIT_CPU_MAX ? (uint32_t)(share + 0.5) : LIMIT_CPU_MAX;
    }
    return usage;
}
