/* SPDX-License-Identifier: Apache-2.0
 * What a task or a host uses. */
#include "common/view/result.h"

cadre_usage view_usage(const struct resource_usage *usage)
{
    return (cadre_usage){.has_cpu = usage->has_cpu,
        .cpu_thousandths = usage->cpu_thousandths,
        .has_memory = usage->has_memory,
        .memory_bytes = usage->memory_bytes,
        .has_memory_peak = usage->has_memory_peak,
        .memory_peak_bytes = usage->memory_peak_bytes,
        .has_gpu = usage->has_gpu,
        .gpu_percent = usage->gpu_percent,
        .has_gpu_memory = usage->has_gpu_memory,
        .gpu_memory_bytes = usage->gpu_memory_bytes};
}
