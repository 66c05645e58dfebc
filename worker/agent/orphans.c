/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/agent/orphans.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/agent/process_variable.h"

/* Who is killed may have started another meanwhile: passes, until one finds nobody. */
#define PASSES_MAX 16
#define DEATH_MS   2000

static bool is_below(const char *folder, pid_t pid)
{
    char socket[4096];
    size_t length = strlen(folder);
    return process_variable(pid, "CADRE_SOCKET", socket, sizeof socket) &&
           strncmp(socket, folder, length) == 0 &&
           (socket[length] == '/' || socket[length] == '\0');
}

/* Killed, and waited for: nobody writes in its folders any more. The descriptor makes sure that it
 * is still the one that was looked at. */
static bool end_if_below(const char *folder, pid_t pid, void (*told)(pid_t pid))
{
    CADRE_CLOSE_AT_EXIT int process = pidfd_open(pid, 0);
    if (process < 0 || !is_below(folder, pid)) {
        return false;
    }
    if (told != NULL) {
        told(pid);
    }
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (pidfd_send_signal(process, SIGKILL, NULL, 0) == 0) {
        (void)poll(&end, 1, DEATH_MS);
    }
    return true;
}

static bool end_some(const char *folder, void (*told)(pid_t pid))
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && end_if_below(folder, pid, told)) {
            found = true;
        }
    }
    return found;
}

void orphans_end(const char *folder, void (*told)(pid_t pid))
{
    for (int pass = 0; pass < PASSES_MAX && end_some(folder, told); pass++) {
    }
}
