/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/isolate/kin.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

bool process_kin(pid_t pid, struct kin *ret_kin)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    int group;
    return after != NULL && sscanf(after, ") %c %d %d %d", &ret_kin->state, &ret_kin->parent,
                                &group, &ret_kin->session) == 4;
}
