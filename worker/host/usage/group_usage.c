/* SPDX-License-Identifier: Apache-2.0
 * What the processes of a control group use. A task that runs has used time and memory, so 0 is a
 * file that is not there. */
#include "worker/host/isolate/cgroup_tree.h"
#include "worker/host/usage/usage.h"

static void take_number(uint64_t number, bool *ret_known, uint64_t *ret_number)
{
    *ret_known = number > 0 && number <= INT64_MAX;
    *ret_number = *ret_known ? number : 0;
}

void usage_read_group(const struct task_cgroup *group, struct usage_reading *reading)
{
    const char *memory = group->folders[group->kind == CGROUP_V2 ? 0 : CGROUP_MEMORY];
    uint64_t cpu_us = 0;
    uint64_t bytes = 0;
    uint64_t peak = 0;
    if (group->kind == CGROUP_V2) {
        cpu_us = cgroup_file_number(memory, "cpu.stat", "usage_usec");
        bytes = cgroup_file_number(memory, "memory.current", NULL);
        peak = cgroup_file_number(memory, "memory.peak", NULL);
    } else if (group->kind == CGROUP_V1) {
        const char *cpu = group->folders[CGROUP_CPUACCT];
        cpu_us = cgroup_file_number(cpu, "cpuacct.usage", NULL) / 1000;
        bytes = cgroup_file_number(memory, "memory.usage_in_bytes", NULL);
        peak = cgroup_file_number(memory, "memory.max_usage_in_bytes", NULL);
    }
    take_number(cpu_us, &reading->has_cpu, &reading->cpu_us);
    take_number(bytes, &reading->has_memory, &reading->memory_bytes);
    take_number(peak, &reading->has_memory_peak, &reading->memory_peak_bytes);
}
