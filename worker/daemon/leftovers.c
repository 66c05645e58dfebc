/* SPDX-License-Identifier: Apache-2.0
 * After a kill -9 of the daemon its tasks die with it, but what they started may live on. A new
 * life of the daemon on the same state directory ends it before it says hello: its environment
 * names a socket in there. Files that had not come whole go too. */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "worker/agent/orphans.h"
#include "worker/daemon/daemon.h"

static void note(pid_t pid)
{
    log_event(LOG_LEVEL_WARNING, "tasks", "a process of an earlier life of this daemon is ended",
        LOG_I64("pid", pid));
}

/* What was being fetched. What had come whole bears its hash as its name, and stays. */
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

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    orphans_end(daemon->task_dir, note);
    fetches_clear(daemon->blob_dir);
    CADRE_TRY(tree_remove(daemon->task_dir, error));
    return folder_make(daemon->task_dir, 0711, error);
}
