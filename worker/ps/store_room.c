/* SPDX-License-Identifier: Apache-2.0
 * See store_room.h. */
#include "worker/ps/store_room.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 4096

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number behind `key` in a file of lines "key number"; with "" the file's first number.
 * `otherwise`: there is none. */
static uint64_t number_in(const char *path, const char *key, uint64_t otherwise)
{
    char line[LINE_BYTES];
    uint64_t number = otherwise;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        size_t length = strlen(key);
        if (strncmp(line, key, length) == 0) {
            if (sscanf(line + length, "%" SCNu64, &number) != 1) {
                number = otherwise;
            }
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return number;
}

static uint64_t file_in_group(
    const char *folder, const char *name, const char *key, uint64_t otherwise)
{
    char path[2 * LINE_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path ? number_in(path, key, otherwise) : otherwise;
}

static uint64_t left_in(
    const char *folder, const char *limit_name, const char *usage_name, const char *cache)
{
    uint64_t limit = file_in_group(folder, limit_name, "", UINT64_MAX);
    if (limit == UINT64_MAX) {
        return UINT64_MAX;
    }
    uint64_t used = file_in_group(folder, usage_name, "", 0);
    uint64_t cached = file_in_group(folder, "memory.stat", cache, 0);
    used -= lesser(used, cached);
    return limit - lesser(limit, used);
}

/* Of a control group and those around it: `group` is shortened down to "". */
static uint64_t group_left(const char *mount, char *group, bool second)
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char folder[2 * LINE_BYTES];
        int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
        if (length > 0 && (size_t)length < sizeof folder) {
            least = lesser(
                least, second ? left_in(folder, "memory.max", "memory.current", "inactive_file ")
                              : left_in(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                                    "total_inactive_file "));
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = 0;
    }
}

/* A line is NUMBER:CONTROLLERS:GROUP; version 2 has no controllers there. */
static uint64_t groups_left(void)
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
            least = lesser(least, group_left("/sys/fs/cgroup", group, true));
        } else if (strstr(controllers, "memory") != NULL) {
            least = lesser(least, group_left("/sys/fs/cgroup/memory", group, false));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}

uint64_t store_room(void)
{
    uint64_t kilobytes = number_in("/proc/meminfo", "MemAvailable:", UINT64_MAX >> 10);
    return lesser(kilobytes << 10, groups_left());
}
