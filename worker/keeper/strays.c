/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/keeper/strays.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"

/* From /proc/<pid>/stat; false when it is gone. */
static bool read_parent(pid_t pid, char *ret_state, int *ret_parent)
{
    char path[64];
    char text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t size = read(fd, text, sizeof text - 1);
    if (size <= 0) {
        return false;
    }
    text[size] = '\0';
    const char *after = strrchr(text, ')'); /* the name may hold spaces and brackets, too */
    return after != NULL && sscanf(after, ") %c %d", ret_state, ret_parent) == 2;
}

/* Without children there is nothing to look for: mostly so. */
static bool has_children(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

unsigned strays_kill(bool (*spared)(pid_t pid, const void *user), const void *user)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = has_children() ? opendir("/proc") : NULL;
    const struct dirent *entry;
    int self = (int)getpid();
    unsigned killed = 0;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        char state = 0;
        int parent = 0;
        if (pid <= 0 || !read_parent(pid, &state, &parent) || parent != self ||
            (spared != NULL && spared(pid, user))) {
            continue;
        }
        if (state == 'Z') {
            waitpid(pid, NULL, WNOHANG);
        } else {
            kill(pid, SIGKILL);
            killed++;
        }
    }
    return killed;
}
