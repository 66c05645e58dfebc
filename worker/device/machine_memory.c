/* SPDX-License-Identifier: Apache-2.0
 * See machine_memory.h. */
#include "worker/device/machine_memory.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LINE_BYTES 4096

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number in a file of one line; UINT64_MAX for "max", and where there is no such file. */
static uint64_t number_in(const char *path)
{
    uint64_t number = UINT64_MAX;
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%" SCNu64, &number) != 1) {
            number = UINT64_MAX;
        }
        fclose(file);
    }
    return number;
}

/* The least limit of a control group and those around it: `group` is shortened down to "". */
static uint64_t group_limit(const char *mount, char *group, const char *name)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char path[2 * LINE_BYTES];
        int length = snprintf(path, sizeof path, "%s%s/%s", mount, group, name);
        if (length > 0 && (size_t)length < sizeof path) {
            least = lesser(least, number_in(path));
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = 0;
    }
}

/* A line is NUMBER:CONTROLLERS:GROUP; version 2 has no controllers there. */
static uint64_t groups_limit(void)
{
    uint64_t least = UINT64_MAX;
    char line[LINE_BYTES];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group++ = 0;
        if (controllers[1] == 0) {
            least = lesser(least, group_limit("/sys/fs/cgroup", group, "memory.max"));
        } else if (strstr(controllers, "memory") != NULL) {
            least =
                lesser(least, group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}

static uint64_t process_limit(void)
{
    struct rlimit space = {.rlim_cur = RLIM_INFINITY};
    struct rlimit data = {.rlim_cur = RLIM_INFINITY};
    (void)getrlimit(RLIMIT_AS, &space);
    (void)getrlimit(RLIMIT_DATA, &data);
    return lesser(space.rlim_cur, data.rlim_cur);
}

uint64_t machine_memory(void)
{
    static _Atomic uint64_t found; /* several threads may find the same */
    uint64_t memory = atomic_load_explicit(&found, memory_order_relaxed);
    if (memory == 0) {
        memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        memory = lesser(lesser(memory, groups_limit()), process_limit());
        atomic_store_explicit(&found, memory, memory_order_relaxed);
    }
    return memory;
}
