/* SPDX-License-Identifier: Apache-2.0
 * Which contents are here: an index in memory, which is asked instead of the disk. It is filled at
 * the start, and kept up by uploads and removals. Of the loop alone, but for contents_sync(). Who
 * adds and who removes one and the same content goes one after the other, so a name in the index
 * has its file. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENTS_H

#include "common/base/sha256.h"
#include "common/rpc/file_work.h"

struct contents;
struct content_references;

/* At the start, when nobody uploads: reads the folder, and removes what uploads that were cut short
 * left behind. The folder's name and `works`, whose threads remove files, stay the caller's. On an
 * error *ret_contents is to be closed, too. */
cadre_status contents_open(const char *folder, struct file_work_pool *file_pool,
    struct contents **ret_contents, struct cadre_error *error);
void contents_close(struct contents *contents); /* accepts NULL; no thread works */

/* The content is here; *ret_bytes (may be NULL) is its size. */
bool contents_find(const struct contents *contents, const struct sha256 *hash, uint64_t *ret_bytes);
/* What a worker is told of one that is not here, or that it may not have: NOT_FOUND, by its hash.
 */
cadre_status contents_not_found(const struct sha256 *hash, struct cadre_error *error);
/* It is here, and came before that time of the wall clock. */
bool contents_is_older(
    const struct contents *contents, const struct sha256 *hash, uint64_t wall_us);
uint64_t contents_bytes(const struct contents *contents); /* of all that are here */

/* Somebody counts on it from now on: it stays for an hour though nobody else needs it. False: it is
 * not here. *ret_number tells it from a later one of the same hash. The caller sets the time of
 * access of its file, which tells the next start. */
bool contents_touch(struct contents *contents, const struct sha256 *hash, uint64_t *ret_number);

/* The file of that one is gone, whoever removed it. */
void contents_file_lost(struct contents *contents, const struct sha256 *hash, uint64_t number);

/* Removes one that nobody needs any more; with `unless_touched` not if somebody asked for it
 * lately: it may be part of something that is being uploaded. It is not here from now on; a thread
 * of the pool removes the file. One that is just being uploaded stays. */
void contents_remove(struct contents *contents, const struct sha256 *hash, bool unless_touched);

/* It is not what its hash says: it is not here from now on, and is removed. */
void contents_remove_damaged(struct contents *contents, const struct sha256 *hash);

/* Removes those that are not needed(needs, hash), and that nobody brought or asked for lately. */
void contents_collect_garbage(struct contents *contents,
    bool (*is_referenced)(
        const struct content_references *content_references, const struct sha256 *hash),
    const struct content_references *content_references);

/* ---- an upload that is whole, and takes its name ---- */

/* Its file is still being removed: the upload waits, and begins when go(user) is called. */
struct contents_wait {
    struct contents_wait *next;
    void (*go)(void *user);
    void *user;
};
bool contents_is_removing(const struct contents *contents, const struct sha256 *hash);
void contents_wait(struct contents *contents, struct contents_wait *wait);

/* Before a thread gives the file its name; nothing is removed under it until the end. */
cadre_status contents_upload_begin(
    struct contents *contents, const struct sha256 *hash, struct cadre_error *error);
/* `came`: it has its name, with so many bytes. */
void contents_upload_end(
    struct contents *contents, const struct sha256 *hash, bool came, uint64_t bytes);

/* ---- names on the disk ---- */

/* In a thread, for it knows nothing of the index: what came in until now is found again after a
 * loss of power. Before anything durable counts on it. */
cadre_status contents_sync(const char *folder, struct cadre_error *error);
/* Counts what came; who syncs the folder takes the number before and gives it back afterwards. */
uint64_t contents_added_count(const struct contents *contents);
void contents_note_synced(struct contents *contents, uint64_t came);
/* Its name is found again after a loss of power. */
bool contents_is_synced(const struct contents *contents, const struct sha256 *hash);

#endif
