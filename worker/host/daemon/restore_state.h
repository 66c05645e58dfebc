/* SPDX-License-Identifier: Apache-2.0
 * Private to the fetching of a checkpoint: shared by restore*.c only. */
#ifndef CADRE_WORKER_DAEMON_RESTORE_STATE_H
#define CADRE_WORKER_DAEMON_RESTORE_STATE_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/objects/job_storage.h"
#include "worker/host/daemon/task_files.h"

/* The file name of the manifest here. */
#define RESTORE_MANIFEST "checkpoint.json"

struct restore {
    struct task_files *task; /* NULL: cancelled, the end of the work or of the call frees this */
    struct daemon *daemon;
    void (*done)(struct task_files *task);
    struct file_work work; /* one piece at a time; a call is not read on meanwhile */
    char *folder;
    char *link_source_folder; /* of a task that has it, to link to */
    bool linked;
    char *shared_path; /* of one in a shared folder, which is only checked, as this user: */
    struct isolation_user user;
    uint8_t shared_sha256[LIMIT_SHA256_BYTES];
    struct job_storage storage;  /* of one in an object store: with it */
    struct isolation_user owner; /* may read it */
    bool leads;                  /* it fetches; else it waits for a task that does */
    struct checkpoint_content content;
    bool has_manifest;
    size_t next; /* block to be fetched */
    struct checkpoint_counts counts;
    int fd;                /* of the file that is put together */
    struct rpc_call *call; /* of the content being fetched, and of that: */
    struct sha256_stream *hash;
    uint64_t got_bytes;
    uint8_t *chunk; /* that is being written */
    size_t chunk_bytes;
    size_t chunk_capacity;
    char *file; /* that is made */
    bool ended; /* the call, while a thread was at work, with: */
    cadre_status end_status;
    char end_text[LIMIT_TEXT_BYTES];
    void (*fetched)(struct restore *restore);
    struct wire_buffer manifest; /* its bytes, as they come */
    struct cadre_error error;    /* ours, when code is set */
};

static inline const struct checkpoint_ref *restore_wanted(const struct restore *restore)
{
    return &restore->task->start->checkpoint;
}

/* restore_fetch.c: fetches the next content. On OK fetched(restore) follows, on the loop and
 * once: when the content is there, when restore->error has a failure, or when the fetch was
 * cancelled (restore->task is NULL; then it is the last call). It does not follow when the link
 * breaks: then restore_fetch() is called again. */
cadre_status restore_fetch(
    struct restore *restore, void (*fetched)(struct restore *restore), struct cadre_error *error);
/* True when all contents are there. */
bool restore_is_fetched(const struct restore *restore);
/* Writes the manifest, the last file; in a thread. */
cadre_status restore_write_manifest(const struct restore *restore, struct cadre_error *error);

/* restore_link.c: a task of the job here that has the whole checkpoint (complete), or fetches
 * it; or NULL. */
const struct task_files *restore_find_link_source(const struct task_files *task, bool complete);
/* Links to the files of another task; in a thread. False: not all of them could be linked. */
bool restore_link_files(const char *from, const char *to);

#endif
