/* SPDX-License-Identifier: Apache-2.0
 * Snapshots of the shared ledger: files CONTENTS/snapshots/INDEX-HASH.db (16 hexadecimal digits,
 * and the 64 of the file's SHA-256), each a copy of ledger.db as of the entry of that index.
 * Threads write and read them; one piece of work at a time: what is asked for meanwhile fails. */
#ifndef CADRE_COORDINATOR_DAEMON_SHARED_SNAPSHOT_FILES_H
#define CADRE_COORDINATOR_DAEMON_SHARED_SNAPSHOT_FILES_H

#include "common/rpc/file_work.h"
#include "coordinator/replication/replica.h"
#include "coordinator/store/store.h"

struct snapshot_files;

/* From the loop, when a piece of work is done; `error` is of code OK or says what failed. */
struct snapshot_files_owner {
    /* The snapshot is in the folder, synced, and was read back. */
    void (*made)(
        void *user, const struct replica_snapshot *snapshot, const struct cadre_error *error);
    /* `path` is a store with the snapshot's content, for the owner to take. */
    void (*fetched)(void *user, const struct replica_snapshot *snapshot, const char *path,
        const struct cadre_error *error);
    void *user;
};

/* `contents`: the folder that the coordinators share, or a path of an object store; `state`: this
 * coordinator's folder. */
cadre_status snapshot_files_open(const char *contents, const char *state,
    struct file_work_pool *pool, const struct snapshot_files_owner *owner,
    struct snapshot_files **ret_files, struct cadre_error *error);
/* No function of the owner is called any more. Before the store that is copied is closed, and
 * before the loop. NULL is fine. */
void snapshot_files_close(struct snapshot_files *files);

/* Copies the store into the state directory, some pages in each turn of the loop, while it is used;
 * a thread does all else. made() follows, with the position that the copy has. */
void snapshot_files_make(struct snapshot_files *files, struct store *store);
/* fetched() follows. */
void snapshot_files_fetch(struct snapshot_files *files, const struct replica_snapshot *snapshot);
/* Files of snapshots below this index are removed, if no other work is under way. */
void snapshot_files_remove_older(struct snapshot_files *files, uint64_t index);

#endif
