/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/isolate/process_stat.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* The beginning of /proc/PID/`file`; false: there is no such process. */
static bool read_about(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    if (got <= 0) {
        return false;
    }
    text[got] = '\0';
    return true;
}

bool process_stat_read(pid_t pid, struct process_stat *ret_stat)
{
    char text[512];
    if (!read_about(pid, "stat", text, sizeof text)) {
        return false;
    }
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    int group;
    return after != NULL && sscanf(after, ") %c %d %d %d", &ret_stat->state, &ret_stat->parent,
                                &group, &ret_stat->session) == 4;
}

bool process_uids(pid_t pid, unsigned ret_uids[PROCESS_UIDS])
{
    char text[2048];
    if (!read_about(pid, "status", text, sizeof text)) {
        return false;
    }
    const char *text_line = strstr(text, "\nUid:");
    return text_line != NULL && sscanf(text_line, "\nUid: %u %u %u %u", &ret_uids[0], &ret_uids[1],
                                    &ret_uids[2], &ret_uids[3]) == PROCESS_UIDS;
}

bool process_has_uid(pid_t pid, uid_t uid)
{
    unsigned uids[PROCESS_UIDS];
    struct process_stat process_stat;
    bool has = false;
    bool known = process_uids(pid, uids);
    for (int i = 0; known && i < PROCESS_UIDS; i++) {
        has = has || uids[i] == uid;
    }
    return has && process_stat_read(pid, &process_stat) && process_stat.state != 'Z';
}
