/* SPDX-License-Identifier: Apache-2.0
 * See store_free_memory.h. */
#include "worker/library/ps/store/store_free_memory.h"

#include <stdbool.h>

#include "worker/library/device/machine_memory.h"

static uint64_t store_free_memory_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t left_in(const char *folder, bool second)
{
    const char *limit_name = second ? "memory.max" : "memory.limit_in_bytes";
    const char *usage_name = second ? "memory.current" : "memory.usage_in_bytes";
    const char *cache = second ? "inactive_file " : "total_inactive_file ";
    uint64_t limit = control_groups_read(folder, limit_name, "", UINT64_MAX);
    if (limit == UINT64_MAX) {
        return UINT64_MAX;
    }
    uint64_t used = control_groups_read(folder, usage_name, "", 0);
    uint64_t cached = control_groups_read(folder, "memory.stat", cache, 0);
    used -= store_free_memory_lesser(used, cached);
    return limit - store_free_memory_lesser(limit, used);
}

uint64_t store_free_memory(void)
{
    uint64_t kilobytes = control_groups_read("/proc", "meminfo", "MemAvailable:", UINT64_MAX >> 10);
    return store_free_memory_lesser(kilobytes << 10, control_groups_min(left_in));
}
