/* SPDX-License-Identifier: Apache-2.0
 * After a kill -9 of the daemon its tasks live on without it. A new life of the daemon on the same
 * state directory ends them: their environment names a socket in it. */
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/agent/process_variable.h"
#include "worker/daemon/daemon.h"

static void end_if_ours(const struct daemon *daemon, pid_t pid)
{
    char socket[4096];
    if (process_variable(pid, "CADRE_SOCKET", socket, sizeof socket) &&
        strncmp(socket, daemon->task_dir, strlen(daemon->task_dir)) == 0) {
        log_event(LOG_LEVEL_WARNING, "tasks", "a task of an earlier life of this daemon is ended",
            LOG_I64("pid", pid));
        kill(pid, SIGKILL);
    }
}

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid()) {
            end_if_ours(daemon, pid);
        }
    }
    CADRE_TRY(tree_remove(daemon->task_dir, error));
    return folder_make(daemon->task_dir, 0711, error);
}
