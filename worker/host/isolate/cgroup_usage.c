/* SPDX-License-Identifier: Apache-2.0
 * Reads what a group used, and explains by it why a task ended. */
#include <inttypes.h>
#include <stdio.h>

#include "worker/host/isolate/cgroup.h"
#include "worker/host/isolate/cgroup_tree.h"

/* v1 has a number near the largest for "no limit". */
#define UNLIMITED_FROM (UINT64_C(1) << 60)

static uint64_t limit_of(uint64_t number)
{
    return number < UNLIMITED_FROM ? number : 0;
}

void cgroup_usage(const struct task_cgroup *group, struct cgroup_usage *ret_report)
{
    bool v2 = group->kind == CGROUP_V2;
    const char *memory = group->folders[v2 ? 0 : CGROUP_MEMORY];
    const char *pids = group->folders[v2 ? 0 : CGROUP_PIDS];
    *ret_report =
        (struct cgroup_usage){.pids_limit = limit_of(cgroup_file_number(pids, "pids.max", NULL)),
            .pids_refused = cgroup_file_number(pids, "pids.events", "max")};
    if (v2) {
        ret_report->memory_peak_bytes = cgroup_file_number(memory, "memory.peak", NULL);
        ret_report->memory_limit_bytes = limit_of(cgroup_file_number(memory, "memory.max", NULL));
        ret_report->oom_kills = cgroup_file_number(memory, "memory.events", "oom_kill");
        ret_report->cpu_us = cgroup_file_number(memory, "cpu.stat", "usage_usec");
        return;
    }
    ret_report->memory_peak_bytes = cgroup_file_number(memory, "memory.max_usage_in_bytes", NULL);
    ret_report->memory_limit_bytes =
        limit_of(cgroup_file_number(memory, "memory.limit_in_bytes", NULL));
    ret_report->oom_kills = cgroup_file_number(memory, "memory.oom_control", "oom_kill");
    ret_report->cpu_us =
        cgroup_file_number(group->folders[CGROUP_CPUACCT], "cpuacct.usage", NULL) / 1000;
}

/* "512 MiB", "1.5 GiB". */
static void format_bytes(uint64_t bytes, char *text, size_t text_bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    double value = (double)bytes;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(
        text, text_bytes, "%.*f %s", value == (double)(uint64_t)value ? 0 : 1, value, units[unit]);
}

bool cgroup_explain(const struct cgroup_usage *report, const struct cgroup_limits *asked,
    bool failed, char *text, size_t text_bytes)
{
    char limit[32];
    format_bytes(report->memory_limit_bytes, limit, sizeof limit);
    if (report->oom_kills > 0 && report->memory_limit_bytes > 0) {
        snprintf(text, text_bytes, "%sended by the kernel: it used more than its %s (%s)",
            failed ? "" : "a process of it was ", limit,
            asked->memory_bytes > 0 ? "--memory" : "--task-memory of the worker");
        return true;
    }
    if (report->oom_kills > 0) {
        snprintf(text, text_bytes, "ended by the kernel: the host had no memory left");
        return true;
    }
    if (failed && report->pids_refused > 0) {
        snprintf(text, text_bytes,
            "it had all of its %" PRIu64 " processes and threads (%s): %" PRIu64
            " more were refused",
            report->pids_limit, asked->pids > 0 ? "--pids" : "--task-pids of the worker",
            report->pids_refused);
        return true;
    }
    return false;
}
