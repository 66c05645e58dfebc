/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/agent/orphans.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* A process that is killed may have started another meanwhile: passes, until one finds none. */
#define PASSES_MAX 16
#define DEATH_MS   2000

/* More than a job's spec can hold, so that no task hides behind a long environment. */
#define ENVIRON_BYTES_MAX ((size_t)4 * 1024 * 1024)

struct search {
    const char *folder;
    bool (*spared)(const char *socket, const void *user);
    const void *user;
    void (*reported)(pid_t pid);
};

/* A variable of the environment that the process was started with; a longer value is cut. False
 * when it is not there, the process has exited, or it may not be read. */
static bool read_variable(pid_t pid, const char *name, char *ret_value, size_t size)
{
    char path[64];
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t text_bytes = 0;
    size_t name_bytes = strlen(name);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_BYTES_MAX, &text, &text_bytes, NULL) != CADRE_OK) {
        return false;
    }
    for (const char *item = text; item < text + text_bytes; item += strlen(item) + 1) {
        if (strncmp(item, name, name_bytes) == 0 && item[name_bytes] == '=') {
            snprintf(ret_value, size, "%s", item + name_bytes + 1);
            return true;
        }
    }
    return false;
}

/* A daemon in a container may have a folder of the same path, which its tasks name. */
static bool is_our_folder(const char *folder, pid_t pid)
{
    char path[4096];
    struct stat here;
    struct stat there;
    if (stat(folder, &here) != 0) {
        return true; /* there is nothing to compare */
    }
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, folder);
    return stat(path, &there) == 0 && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static bool is_sought(const struct search *search, pid_t pid)
{
    char socket[4096];
    size_t length = strlen(search->folder);
    return read_variable(pid, "CADRE_SOCKET", socket, sizeof socket) &&
           strncmp(socket, search->folder, length) == 0 &&
           (socket[length] == '/' || socket[length] == '\0') &&
           is_our_folder(search->folder, pid) &&
           (search->spared == NULL || !search->spared(socket, search->user));
}

/* Kills it and waits, so that it does not write in its folders any more. The descriptor makes
 * sure that it is still the process that was examined. */
static bool kill_if_sought(const struct search *search, pid_t pid)
{
    CADRE_CLOSE_AT_EXIT int process = pidfd_open(pid, 0);
    if (process < 0 || !is_sought(search, pid)) {
        return false;
    }
    if (search->reported != NULL) {
        search->reported(pid);
    }
    struct pollfd end = {.fd = process, .events = POLLIN};
    if (pidfd_send_signal(process, SIGKILL, NULL, 0) == 0) {
        (void)poll(&end, 1, DEATH_MS);
    }
    return true;
}

static bool kill_some(const struct search *search)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool found = false;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid != getpid() && kill_if_sought(search, pid)) {
            found = true;
        }
    }
    return found;
}

void orphans_kill_except(const char *folder, bool (*spared)(const char *socket, const void *user),
    const void *user, void (*reported)(pid_t pid))
{
    const struct search search = {folder, spared, user, reported};
    for (int pass = 0; pass < PASSES_MAX && kill_some(&search); pass++) {
    }
}

void orphans_kill(const char *folder, void (*reported)(pid_t pid))
{
    orphans_kill_except(folder, NULL, NULL, reported);
}
