/* SPDX-License-Identifier: Apache-2.0
 * Several tasks of a job on one host need one checkpoint: one of them fetches it, the others link
 * to its files. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/restore_state.h"
#include "worker/host/daemon/task_files.h"

const struct task_files *restore_find_link_source(const struct task_files *task, bool complete)
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

bool restore_link_files(const char *from, const char *to)
{
    CADRE_CLEANUP(cadre_cleanup_dir) DIR *source = opendir(from);
    CADRE_CLOSE_AT_EXIT int target = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct dirent *entry;
    bool linked = source != NULL && target >= 0;
    while (linked && (entry = readdir(source)) != NULL) {
        linked = entry->d_name[0] == '.' ||
                 linkat(dirfd(source), entry->d_name, target, entry->d_name, 0) == 0;
    }
    return linked;
}
