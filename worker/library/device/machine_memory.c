/* SPDX-License-Identifier: Apache-2.0
 * See machine_memory.h. */
#include "worker/library/device/machine_memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t machine_memory_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t limit_of(const char *folder, bool second)
{
    return control_groups_read(
        folder, second ? "memory.max" : "memory.limit_in_bytes", "", UINT64_MAX);
}

static uint64_t process_limit(void)
{
    struct rlimit space = {.rlim_cur = RLIM_INFINITY};
    struct rlimit data = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_AS, &space);
    (void)getrlimit(RLIMIT_DATA, &data);
    return machine_memory_lesser(space.rlim_cur, data.rlim_cur);
}

uint64_t machine_memory(void)
{
    static _Atomic uint64_t found; /* several threads may find the same */
    uint64_t memory = atomic_load_explicit(&found, memory_order_relaxed);
    if (memory == 0) {
        memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        memory = machine_memory_lesser(
            machine_memory_lesser(memory, control_groups_min(limit_of)), process_limit());
        atomic_store_explicit(&found, memory, memory_order_relaxed);
    }
    return memory;
}
