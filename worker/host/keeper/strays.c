/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/keeper/task.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/isolate/process_stat.h"

/* True when this process has children; mostly it has none. */
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
        struct process_stat process_stat;
        if (pid <= 0 || !process_stat_read(pid, &process_stat) || process_stat.parent != self ||
            (spared != NULL && spared(pid, user))) {
            continue;
        }
        if (process_stat.state == 'Z') {
            waitpid(pid, NULL, WNOHANG);
        } else {
            kill(pid, SIGKILL);
            killed++;
        }
    }
    return killed;
}
