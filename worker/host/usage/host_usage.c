/* SPDX-License-Identifier: Apache-2.0
 * What a host uses, by whatever program. In a container these files are the host's as well. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/host/isolate/cgroup_tree.h"
#include "worker/host/usage/usage.h"

/* The times of all CPUs in the first line, in ticks: proc(5). */
static void read_cpu(const char *proc, struct usage_reading *reading)
{
    char text[256];
    uint64_t ticks[8]; /* user nice system idle iowait irq softirq steal; guest is in user */
    if (!cgroup_file_read(proc, "stat", text, sizeof text) ||
        sscanf(text,
            "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
            " %" SCNu64,
            &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
            &ticks[7]) != 8) {
        return;
    }
    uint64_t busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
    reading->has_cpu = true;
    reading->cpu_us = busy * (CADRE_US_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* "MemTotal:       24567890 kB" */
static bool find_kib(const char *text, const char *key, uint64_t *ret_kib)
{
    const char *at = strstr(text, key);
    return at != NULL && sscanf(at + strlen(key), ": %" SCNu64 " kB", ret_kib) == 1;
}

static void read_memory(const char *proc, struct usage_reading *reading)
{
    char text[512];
    uint64_t total = 0;
    uint64_t available = 0;
    if (cgroup_file_read(proc, "meminfo", text, sizeof text) &&
        find_kib(text, "MemTotal", &total) && find_kib(text, "MemAvailable", &available) &&
        available <= total && total <= INT64_MAX / 1024) {
        reading->has_memory = true;
        reading->memory_bytes = (total - available) * 1024;
    }
}

void usage_read_host(const char *proc, struct usage_reading *reading)
{
    read_cpu(proc, reading);
    read_memory(proc, reading);
}
