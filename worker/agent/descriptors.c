/* SPDX-License-Identifier: Apache-2.0
 * Nothing that this process has open may reach a task: neither what its own parent left open nor
 * what a library opened without close-on-exec. */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/agent/agent_state.h"

void descriptors_keep_from_tasks(void)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int fd = (int)strtol(entry->d_name, NULL, 10);
        int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;
        if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
            fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
        }
    }
}
