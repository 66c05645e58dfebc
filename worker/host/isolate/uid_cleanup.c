/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/isolate/uid_cleanup.h"

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
#include "common/base/clock.h"
#include "common/base/files.h"
#include "worker/host/isolate/process_stat.h"

/* How long what was killed may take to die, and to be waited for by its parent. */
#define DEATH_US UINT64_C(2000000)
#define PAUSE_MS 2

/* Processes of the uid may kill its holder, until they are killed themselves. */
#define TRIES 64

static const char *const folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue"};

static void clear_folder(const char *folder, uid_t uid)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *entries = opendir(folder);
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct stat about;
        char path[512];
        bool is_entry = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
        if (is_entry && fstatat(dirfd(entries), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
            about.st_uid == uid) {
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            (void)tree_remove(path, NULL);
        }
    }
}

/* Removes what the uid left, while this process alone holds the uid. */
static void uid_cleanup_clear(uid_t uid, const struct uid_holder *holder)
{
    (void)uid_holder_clear(holder);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        clear_folder(folders[i], uid);
    }
}

bool uid_cleanup_claim(uid_t uid, struct uid_holder *holder)
{
    uid_holder_close(holder);
    if (uid_holder_open(uid, holder) == UID_HOLDER_NOT_ALONE) {
        uid_holder_close(holder);
        return false;
    }
    if (holder->pid != 0) { /* else this daemon cannot change users, and nor can its tasks */
        uid_cleanup_clear(uid, holder);
    }
    return true;
}

/* ---- descent of processes ---- */

enum descent { OURS, FOREIGN, UNCLEAR };

/* Follows the parents up to this process, or to one that has no parent here: of a container, or
 * of init. */
static enum descent descent_of(pid_t pid)
{
    struct process_stat process_stat = {.parent = (int)pid};
    pid_t self = getpid();
    while (process_stat.parent > 1 && process_stat.parent != (int)self) {
        if (!process_stat_read((pid_t)process_stat.parent, &process_stat)) {
            return UNCLEAR; /* it ended meanwhile, and its children have another parent */
        }
    }
    return process_stat.parent == (int)self ? OURS : FOREIGN;
}

/* The descriptor makes sure that it is still the process that was examined. */
static void kill_if_ours(pid_t pid, uid_t uid)
{
    CADRE_CLOSE_AT_EXIT int process = pidfd_open(pid, 0);
    if (process >= 0 && process_has_uid(pid, uid) && descent_of(pid) == OURS) {
        (void)pidfd_send_signal(process, SIGKILL, NULL, 0);
    }
}

/* Calls kill_if_ours for all, or with `kills` false only returns whether one of them is foreign. */
static bool walk_temporary_folders(uid_t uid, const struct uid_holder *holder, bool kills)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool foreign = false;
    while (proc != NULL && (entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == holder->pid || !process_has_uid(pid, uid)) {
            continue;
        }
        if (kills) {
            kill_if_ours(pid, uid);
        } else {
            foreign = foreign || descent_of(pid) == FOREIGN;
        }
    }
    return foreign;
}

/* Kills all of the uid at once, but only when all of it is ours. */
static enum uid_holder_status kill_ours(uid_t uid, const struct uid_holder *holder)
{
    if (!walk_temporary_folders(uid, holder, false)) {
        return uid_holder_kill(holder);
    }
    (void)walk_temporary_folders(uid, holder, true);
    return uid_holder_check(holder);
}

void uid_cleanup_remove(uid_t uid, struct uid_holder *holder)
{
    uint64_t end_us = clock_monotonic_us() + DEATH_US;
    enum uid_holder_status answer = uid_holder_check(holder);
    for (int tries = 0; answer != UID_HOLDER_ALONE && clock_monotonic_us() < end_us;) {
        if (answer == UID_HOLDER_GONE && ++tries > TRIES) {
            break;
        }
        if (answer == UID_HOLDER_GONE) {
            uid_holder_close(holder);
            answer = uid_holder_open(uid, holder);
        }
        if (answer == UID_HOLDER_NOT_ALONE) {
            answer = kill_ours(uid, holder);
        }
        if (answer == UID_HOLDER_NOT_ALONE) {
            (void)poll(NULL, 0, PAUSE_MS);
        }
    }
    if (answer == UID_HOLDER_ALONE) {
        uid_cleanup_clear(uid, holder);
    }
    uid_holder_close(holder);
}
