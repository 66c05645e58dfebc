/* SPDX-License-Identifier: Apache-2.0
 * Inside the fetching of a checkpoint, shared by its files only. */
#ifndef CADRE_WORKER_DAEMON_RESTORE_H
#define CADRE_WORKER_DAEMON_RESTORE_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "worker/daemon/daemon.h"

/* What the manifest is called here. */
#define RESTORE_MANIFEST "checkpoint.json"

struct restore {
    struct task_files *task; /* NULL: cancelled, the call's end frees this */
    char *folder;
    bool leads; /* it fetches; else it waits for one that does */
    struct checkpoint_content content;
    bool has_manifest;
    size_t next;           /* block to be fetched */
    int fd;                /* of the file that is put together */
    struct rpc_call *call; /* of the content in hand, and of that: */
    struct sha256_stream *hash;
    uint64_t got_bytes;
    struct wire_buffer manifest; /* its bytes, as they come */
    struct cadre_error error;    /* ours, when code is set */
};

static inline const struct checkpoint_ref *restore_wanted(const struct restore *restore)
{
    return &restore->task->start->checkpoint;
}

/* restore_fetch.c: asks for the next content; restore_go_on follows when it is there,
 * restore_give_up when it is not what it should be. */
cadre_status restore_fetch(struct restore *restore, struct cadre_error *error);
bool restore_is_fetched(const struct restore *restore);
/* The last file. */
cadre_status restore_write_manifest(struct restore *restore, struct cadre_error *error);

/* restore_other.c: false when there is nobody to take it from, so that it has to be fetched.
 * *ret_complete: it is here now; else another task fetches it. */
bool restore_take_from_other(struct restore *restore, bool *ret_complete);

/* restore.c */
void restore_go_on(struct restore *restore);
void restore_give_up(struct restore *restore, const struct cadre_error *error);
void restore_free(struct restore *restore);

#endif
