/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/base/daemon.h"

cadre_status state_lock(struct daemon *daemon, struct cadre_error *error)
{
    const char *state = daemon->options.state_dir;
    const char *contents = daemon->options.contents_dir;
    CADRE_FREE_AT_EXIT char *lock = NULL;
    if (asprintf(&lock, "%s/lock", state) < 0 ||
        asprintf(&daemon->ledger_path, "%s/ledger.db", state) < 0 ||
        asprintf(&daemon->blob_dir, "%s/blobs", contents != NULL ? contents : state) < 0 ||
        asprintf(&daemon->job_dir, "%s/jobs", contents != NULL ? contents : state) < 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to open %s", state);
    }
    if (contents != NULL && access(contents, R_OK | W_OK | X_OK) != 0) {
        return cadre_error_errno(error, errno,
            "--contents %s: cannot use this folder, which is to be there and mounted before the "
            "coordinator starts",
            contents);
    }
    CADRE_TRY(folder_make_durable(state, 0700, error));
    return lock_file_acquire(lock, &daemon->lock_fd, error);
}

cadre_status state_open(struct daemon *daemon, struct store **ret_store, struct cadre_error *error)
{
    CADRE_TRY(state_lock(daemon, error));
    CADRE_TRY(folder_make_durable(daemon->blob_dir, 0700, error));
    CADRE_TRY(folder_make_durable(daemon->job_dir, 0700, error));
    return store_sqlite_open(daemon->ledger_path, ret_store, error);
}
