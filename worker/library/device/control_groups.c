/* SPDX-License-Identifier: Apache-2.0
 * See machine_memory.h; proc(5) "/proc/pid/cgroup". */
#include "worker/library/device/machine_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_LINE_BYTES 4096

static uint64_t control_groups_lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t control_groups_read(
    const char *folder, const char *name, const char *key, uint64_t otherwise)
{
    char text_line[TEXT_LINE_BYTES];
    char path[2 * TEXT_LINE_BYTES];
    uint64_t number = otherwise;
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = length > 0 && (size_t)length < sizeof path ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(text_line, sizeof text_line, file) != NULL) {
        if (strncmp(text_line, key, strlen(key)) == 0) {
            if (sscanf(text_line + strlen(key), "%" SCNu64, &number) != 1) {
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

/* The least of a control group and those around it: `group` is shortened down to "". */
static uint64_t least_around(const char *mount, char *group, bool second,
    uint64_t (*measure)(const char *folder, bool second))
{
    uint64_t least = UINT64_MAX;
    for (;;) {
        char folder[2 * TEXT_LINE_BYTES];
        int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
        if (length > 0 && (size_t)length < sizeof folder) {
            least = control_groups_lesser(least, measure(folder, second));
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = 0;
    }
}

/* A line of text is NUMBER:CONTROLLERS:GROUP; version 2 has no controllers there. */
uint64_t control_groups_min(uint64_t (*measure)(const char *folder, bool second))
{
    uint64_t least = UINT64_MAX;
    char text_line[TEXT_LINE_BYTES];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(text_line, sizeof text_line, file) != NULL) {
        text_line[strcspn(text_line, "\n")] = 0;
        char *controllers = strchr(text_line, ':');
        char *group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) {
            continue;
        }
        *group++ = 0;
        if (controllers[1] == 0) {
            least =
                control_groups_lesser(least, least_around("/sys/fs/cgroup", group, true, measure));
        } else if (strstr(controllers, "memory") != NULL) {
            least = control_groups_lesser(
                least, least_around("/sys/fs/cgroup/memory", group, false, measure));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return least;
}
