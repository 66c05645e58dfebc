/* SPDX-License-Identifier: Apache-2.0
 * Inside the fetching of a checkpoint, shared by its files only. */
#ifndef CADRE_WORKER_DAEMON_RESTORE_STATE_H
#define CADRE_WORKER_DAEMON_RESTORE_STATE_H

#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/task_files.h"

/* What the manifest is called here. */
#define RESTORE_MANIFEST "checkpoint.json"

struct restore {
    struct task_files *task; /* NULL: cancelled, the end of the work or of the call frees this */
    struct daemon *daemon;
    void (*done)(struct task_files *task);
    struct file_work work; /* one piece at a time; a call is not read on meanwhile */
    char *folder;
    char *link_source_folder; /* of a task that has it, to link to */
    bool linked;
    char *shared_path; /* of one that lies in a shared folder, and is only looked at: */
    uint8_t shared_sha256[LIMIT_SHA256_BYTES];
    struct isolation_user owner; /* who may read it */
    bool leads;                  /* it fetches; else it waits for one that does */
    struct checkpoint_content content;
    bool has_manifest;
    size_t next;           /* block to be fetched */
    int fd;                /* of the file that is put together */
    struct rpc_call *call; /* of the content in hand, and of that: */
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

/* restore_fetch.c: asks for the next content. On OK fetched(restore) follows, on the loop and once:
 * when it is there, when restore->error says why not, or when nobody wants it (restore->task is
 * NULL; then it is the last that is heard of it). Not when the link breaks: then it is asked for
 * again. */
cadre_status restore_fetch(
    struct restore *restore, void (*fetched)(struct restore *restore), struct cadre_error *error);
bool restore_is_fetched(const struct restore *restore);
/* The last file; in a thread. */
cadre_status restore_write_manifest(const struct restore *restore, struct cadre_error *error);

/* restore_link.c: a task of the job here that has it (complete), or fetches it; or NULL. */
const struct task_files *restore_find_link_source(const struct task_files *task, bool complete);
/* In a thread: false: not all of it could be linked. */
bool restore_link_files(const char *from, const char *to);

#endif
