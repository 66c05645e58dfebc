/* SPDX-License-Identifier: Apache-2.0
 * See available_memory.h; proc(5) "/proc/meminfo", and "Memory Interface Files" of the kernel's
 * documentation of control groups v2. */
#include "worker/library/input/node/available_memory.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"

#define SHORT_PART 16

/* The first bytes of a small file, as text; empty when it cannot be read. */
static void read_text(const char *path, char *text, size_t bytes)
{
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, bytes - 1) : 0;
    text[got > 0 ? got : 0] = '\0';
}

/* The number behind `name`; 0: none. */
static uint64_t number_behind(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10);
}

static bool machine_is_low(void)
{
    char text[512];
    read_text("/proc/meminfo", text, sizeof text);
    uint64_t total = number_behind(text, "MemTotal:");
    return total > 0 && strstr(text, "MemAvailable:") != NULL &&
           number_behind(text, "MemAvailable:") < total / SHORT_PART;
}

static bool cgroup_is_low(void)
{
    char limit[64];
    char used[64];
    char details[4096];
    read_text("/sys/fs/cgroup/memory.max", limit, sizeof limit);
    read_text("/sys/fs/cgroup/memory.current", used, sizeof used);
    uint64_t most = strtoull(limit, NULL, 10); /* 0 of "max" */
    uint64_t now = strtoull(used, NULL, 10);
    if (most == 0 || now < most - most / SHORT_PART) {
        return false;
    }
    read_text("/sys/fs/cgroup/memory.stat", details, sizeof details);
    uint64_t of_files = number_behind(details, "\nfile "); /* given back when others want it */
    return now - (of_files < now ? of_files : now) >= most - most / SHORT_PART;
}

bool available_memory_is_low(void)
{
    return fault_point("memory.left") || machine_is_low() || cgroup_is_low();
}
