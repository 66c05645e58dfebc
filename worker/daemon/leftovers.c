/* SPDX-License-Identifier: Apache-2.0
 * After a kill -9 of the daemon its tasks live on without it. A new life of the daemon on the same
 * state directory ends them: their environment names a socket in it. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/daemon/daemon.h"

#define ENVIRON_BYTES_MAX ((size_t)256 * 1024)

static bool names_our_socket(const char *text, size_t size, const char *task_dir)
{
    static const char name[] = "CADRE_SOCKET=";
    const char *end = text + size;
    for (const char *item = text; item < end; item += strlen(item) + 1) {
        if (strncmp(item, name, sizeof name - 1) == 0) {
            return strncmp(item + sizeof name - 1, task_dir, strlen(task_dir)) == 0;
        }
    }
    return false;
}

static void end_if_ours(const struct daemon *daemon, pid_t pid, char *text)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    ssize_t got;
    while (fd >= 0 && size < ENVIRON_BYTES_MAX &&
           (got = read(fd, text + size, ENVIRON_BYTES_MAX - size)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    if (size > 0 && names_our_socket(text, size, daemon->task_dir)) {
        log_event(LOG_LEVEL_WARNING, "tasks", "a task of an earlier life of this daemon is ended",
            LOG_I64("pid", pid));
        kill(pid, SIGKILL);
    }
}

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *text = malloc(ENVIRON_BYTES_MAX + 1);
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    while (text != NULL && proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid()) {
            end_if_ours(daemon, pid, text);
        }
    }
    CADRE_TRY(tree_remove(daemon->task_dir, error));
    return folder_make(daemon->task_dir, 0711, error);
}
