/* SPDX-License-Identifier: Apache-2.0
 * What an earlier incarnation of the daemon left in its state directory. With --keep-tasks a
 * task whose keeper answers is taken over. All else is ended before the daemon sends its hello:
 * processes are found by a socket in that directory which their environment names. Incomplete
 * files are removed. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/host/agent/orphans.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/objects/object_index.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"

static void leftovers_note(pid_t pid)
{
    log_event(LOG_LEVEL_WARNING, "tasks",
        "a process of an earlier incarnation of this daemon is ended", LOG_I64("pid", pid));
}

/* Removes incomplete contents. A whole one has its hash as its name, and stays. */
static void fetches_clear(const char *folder)
{
    DIR *entries = opendir(folder);
    if (entries == NULL) {
        return; /* not made yet */
    }
    const struct dirent *entry;
    while ((entry = readdir(entries)) != NULL) {
        if (strncmp(entry->d_name, FETCH_PREFIX, sizeof FETCH_PREFIX - 1) == 0) {
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
        }
    }
    closedir(entries);
}

static void daemon_leftovers_adopt(struct daemon *daemon, const char *name)
{
    struct task_ref ref = {0};
    struct cadre_error error = {0};
    char keeper[4096];
    char socket[4096];
    int end = 0;
    if (sscanf(name, "%" SCNu64 ".%" SCNu32 ".%" SCNu64 "%n", &ref.job.n, &ref.slot,
            &ref.incarnation, &end) != 3 ||
        name[end] != '\0') {
        return;
    }
    snprintf(keeper, sizeof keeper, "%s/%s/keeper", daemon->task_dir, name);
    snprintf(socket, sizeof socket, "%s/%s/socket", daemon->task_dir, name);
    if (access(keeper, F_OK) != 0) {
        return;
    }
    if (agent_adopt(daemon->agent, ref, keeper, socket, &error) == CADRE_OK) {
        log_event(LOG_LEVEL_INFO, "tasks",
            "a task of an earlier incarnation of this daemon is taken over",
            LOG_U64("job", ref.job.n), LOG_U64("slot", ref.slot),
            LOG_U64("incarnation", ref.incarnation));
    } else {
        log_event(LOG_LEVEL_WARNING, "tasks",
            "a task of an earlier incarnation of this daemon is ended", LOG_U64("job", ref.job.n),
            LOG_U64("slot", ref.slot), LOG_STR("reason", error.text));
    }
}

void leftovers_adopt(struct daemon *daemon)
{
    DIR *entries = daemon->options.keep_tasks ? opendir(daemon->task_dir) : NULL;
    const struct dirent *entry;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        daemon_leftovers_adopt(daemon, entry->d_name);
    }
    if (entries != NULL) {
        closedir(entries);
    }
}

/* Whether the path is in the folder of a task that is here. */
static bool is_adopted(const char *path, const void *user)
{
    const struct daemon *daemon = user;
    for (const struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        size_t length = strlen(task->folder);
        if (strncmp(path, task->folder, length) == 0 &&
            (path[length] == '/' || path[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* With tasks that were taken over nothing may take long, because the coordinator ends them when
 * it gets no report of them in time. */
static cadre_status folder_clear(struct daemon *daemon, const char *path, struct cadre_error *error)
{
    return daemon->options.keep_tasks ? removal_folder(daemon, path, error)
                                      : tree_remove(path, error);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Removes all that it can; returns the first failure. The names first, because some are changed. */
static cadre_status folders_clear(struct daemon *daemon, struct cadre_error *error)
{
    struct dirent **entries = NULL;
    int count = scandir(daemon->task_dir, &entries, is_entry, NULL);
    cadre_status status = CADRE_OK;
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct cadre_error failed;
        snprintf(path, sizeof path, "%s/%s", daemon->task_dir, entries[i]->d_name);
        free(entries[i]);
        if (!is_adopted(path, daemon) && folder_clear(daemon, path, &failed) != CADRE_OK &&
            status == CADRE_OK) {
            *error = failed;
            status = failed.code;
        }
    }
    free(entries);
    return status;
}

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    orphans_kill_except(daemon->task_dir, is_adopted, daemon, leftovers_note);
    fetches_clear(daemon->blob_dir);
    object_index_clear(daemon->blob_dir);
    cadre_status status = folders_clear(daemon, error);
    struct cadre_error failed;
    if (folder_make(daemon->task_dir, 0711, &failed) != CADRE_OK && status == CADRE_OK) {
        *error = failed;
        status = failed.code;
    }
    return status;
}
