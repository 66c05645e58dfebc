/* SPDX-License-Identifier: Apache-2.0
 * After a kill -9 of the daemon its tasks die with it, but what they started may live on. A new
 * life of the daemon on the same state directory ends it before it says hello: its environment
 * names a socket in there. */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/agent/process_variable.h"
#include "worker/daemon/daemon.h"

/* Who is killed may have started another meanwhile: passes, until one finds nobody. */
#define PASSES_MAX 16
#define DEATH_MS   2000

static bool is_ours(const struct daemon *daemon, pid_t pid)
{
    char socket[4096];
    size_t length = strlen(daemon->task_dir);
    return process_variable(pid, "CADRE_SOCKET", socket, sizeof socket) &&
           strncmp(socket, daemon->task_dir, length) == 0 && socket[length] == '/';
}

/* Killed, and waited for: nobody writes in its folders any more. The descriptor makes sure that it
 * is still the one that was looked at. */
static bool end_if_ours(const struct daemon *daemon, pid_t pid)
{
    CADRE_CLOSE_AT_EXIT int process = pidfd_open(pid, 0);
    if (process < 0 || !is_ours(daemon, pid)) {
        return false;
    }
    log_event(LOG_LEVEL_WARNING, "tasks", "a process of an earlier life of this daemon is ended",
        LOG_I64("pid", pid));
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (pidfd_send_signal(process, SIGKILL, NULL, 0) == 0) {
        (void)poll(&end, 1, DEATH_MS);
    }
    return true;
}

static bool end_some(const struct daemon *daemon)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && end_if_ours(daemon, pid)) {
            found = true;
        }
    }
    return found;
}

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    for (int pass = 0; pass < PASSES_MAX && end_some(daemon); pass++) {
    }
    CADRE_TRY(tree_remove(daemon->task_dir, error));
    return folder_make(daemon->task_dir, 0711, error);
}
