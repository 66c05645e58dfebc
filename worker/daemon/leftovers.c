/* SPDX-License-Identifier: Apache-2.0
 * After a kill -9 of the daemon its tasks die with it, but what they started may live on. A new
 * life of the daemon on the same state directory ends it before it says hello: its environment
 * names a socket in there. */
#include "common/base/files.h"
#include "worker/agent/orphans.h"
#include "worker/daemon/daemon.h"

static void note(pid_t pid)
{
    log_event(LOG_LEVEL_WARNING, "tasks", "a process of an earlier life of this daemon is ended",
        LOG_I64("pid", pid));
}

cadre_status leftovers_clear(struct daemon *daemon, struct cadre_error *error)
{
    orphans_end(daemon->task_dir, note);
    CADRE_TRY(tree_remove(daemon->task_dir, error));
    return folder_make(daemon->task_dir, 0711, error);
}
