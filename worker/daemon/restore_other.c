/* SPDX-License-Identifier: Apache-2.0
 * Several tasks of a job on one host need one checkpoint: one of them fetches it, the others link
 * to its files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "worker/daemon/restore.h"

/* One that fetches the same checkpoint, or (complete) that has it. */
static const struct task_files *find_other(const struct task_files *task, bool complete)
{
    const struct checkpoint_ref *wanted = &task->start->checkpoint;
    const struct task_files *other = task->daemon->tasks;
    for (; other != NULL; other = other->next) {
        const struct agent_start *start = other->start;
        bool same = other != task && start->restores && !start->checkpoint.shared &&
                    other->ref.job.n == task->ref.job.n &&
                    memcmp(start->checkpoint.manifest_sha256, wanted->manifest_sha256,
                        LIMIT_SHA256_BYTES) == 0;
        bool has_it = other->restore_path != NULL;
        bool fetches = other->restore != NULL && other->restore->leads;
        if (same && (complete ? has_it : fetches)) {
            return other;
        }
    }
    return NULL;
}

static bool link_files(const struct task_files *from, const char *to)
{
    CADRE_FREE_AT_EXIT char *path = NULL;
    if (asprintf(&path, "%s/restore", from->folder) < 0) {
        path = NULL;
        return false;
    }
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *source = opendir(path);
    CADRE_CLOSE_AT_EXIT int target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    bool linked = source != NULL && target >= 0;
    while (linked && (entry = readdir(source)) != NULL) {
        linked = entry->d_name[0] == '.' ||
                 linkat(dirfd(source), entry->d_name, target, entry->d_name, 0) == 0;
    }
    return linked;
}

/* False: there is nobody to take it from, so it has to be fetched. */
bool restore_take_from_other(struct restore *restore, bool *ret_complete)
{
    const struct task_files *other = find_other(restore->task, true);
    *ret_complete = other != NULL && link_files(other, restore->folder);
    if (*ret_complete) {
        return true;
    }
    if (other != NULL) { /* some of its files may be here */
        (void)tree_remove(restore->folder, NULL);
        (void)folder_make(restore->folder, 0700, NULL);
    }
    return find_other(restore->task, false) != NULL;
}
