/* SPDX-License-Identifier: Apache-2.0
 * The index of the contents on the disk, in memory. It is filled at the start, and updated by
 * uploads and removals. Called on the loop only, except contents_sync(). An upload and a removal of
 * the same content wait for each other, so that a name in the index has its file. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENTS_H

#include "common/base/sha256.h"
#include "common/rpc/file_work.h"

struct contents;
struct content_references;
struct leading;
struct object_cache;
struct objects;

/* At the start, before any upload: reads the folder, and removes what interrupted uploads left. The
 * folder's name and the pool, whose threads remove files, stay the caller's, and so does `leading`:
 * where other coordinators share the folder, no file is removed once another one may lead, nor one
 * on which an upload at any of them relied lately. On an error *ret_contents has to be closed, too.
 */
cadre_status contents_open(const char *folder, struct file_work_pool *file_pool,
    const struct leading *leading, struct contents **ret_contents, struct cadre_error *error);
/* The same of contents that lie in an object store, of which the cache has copies: a thread lists
 * them, and waits for a store that is away. Until then contents_is_loading(), and none is here.
 * Each counts as one on which an upload relied now, because the store does not say when one did. */
cadre_status contents_open_objects(struct objects *objects, struct object_cache *cache,
    struct file_work_pool *file_pool, const struct leading *leading, struct contents **ret_contents,
    struct cadre_error *error);
/* True: it is not known yet which are here. contents_wait() waits for that, too. */
bool contents_is_loading(const struct contents *contents);
/* OK, or UNAVAILABLE while it is loading. */
cadre_status contents_check_loaded(const struct contents *contents, struct cadre_error *error);
/* NULL is allowed; no thread may be at work. */
void contents_close(struct contents *contents);

/* Whether the content is here; *ret_bytes (may be NULL) is its size. */
bool contents_find(const struct contents *contents, const struct sha256 *hash, uint64_t *ret_bytes);
/* With an object store: whether an upload or a look at its object said since the start that it is
 * here. A list alone may be old: it lacks what was put lately, and shows what was removed. */
bool contents_is_certain(const struct contents *contents, const struct sha256 *hash);
struct content_look {
    struct sha256 hash;
    uint64_t removed; /* so many had been removed when it began */
    bool there;       /* then: */
    uint64_t bytes;
    uint64_t added_us;
};
/* To be called before a thread looks. */
struct content_look contents_begin_look(const struct contents *contents, const struct sha256 *hash);
/* What it found; an upload, or a removal, since it began is known better. */
void contents_note_look(struct contents *contents, const struct content_look *look);
/* The error for a worker about a content that is not here, or that it may not have: NOT_FOUND with
 * the hash. */
cadre_status contents_not_found(const struct sha256 *hash, struct cadre_error *error);
/* Whether it is here, and came before that time of the wall clock. */
bool contents_is_older(
    const struct contents *contents, const struct sha256 *hash, uint64_t wall_us);
/* The bytes of all that are here. */
uint64_t contents_bytes(const struct contents *contents);

/* An upload relies on it from now on: it stays for an hour also without a reference. False: it is
 * not here. *ret_number differs from that of a later content with the same hash. The caller sets
 * the access time of its file, from which the next start reads this. */
bool contents_touch(struct contents *contents, const struct sha256 *hash, uint64_t *ret_number);

/* The file of that one was removed by another program. */
void contents_file_lost(struct contents *contents, const struct sha256 *hash, uint64_t number);

/* Removes one that is not referenced any more; with `unless_touched` not if it was requested
 * lately, because it may be part of a submission in progress. It is not here from now on; a thread
 * of the pool removes the file. One that is being uploaded stays. */
void contents_remove(struct contents *contents, const struct sha256 *hash, bool unless_touched);

/* Its bytes do not have its hash: it is not here from now on, and its file is removed. */
void contents_remove_damaged(struct contents *contents, const struct sha256 *hash);

/* Removes those that are not referenced, and that were not uploaded or requested lately. */
void contents_collect_garbage(struct contents *contents,
    bool (*is_referenced)(
        const struct content_references *content_references, const struct sha256 *hash),
    const struct content_references *content_references);

/* ---- renaming a finished upload ---- */

/* What waits for a removal, or for the list: go(user) is called after it. */
struct contents_wait {
    struct contents_wait *next;
    void (*go)(void *user);
    void *user;
};
/* Whether a thread removes the file of this hash now. */
bool contents_is_removing(const struct contents *contents, const struct sha256 *hash);
/* Adds `wait`, which must stay valid until its go() is called. */
void contents_wait(struct contents *contents, struct contents_wait *wait);

/* Before a thread renames the file; it is not removed until contents_upload_end(). */
cadre_status contents_upload_begin(
    struct contents *contents, const struct sha256 *hash, struct cadre_error *error);
/* `came`: it was renamed, and has so many bytes. */
void contents_upload_end(
    struct contents *contents, const struct sha256 *hash, bool came, uint64_t bytes);

/* ---- names on the disk ---- */

/* Syncs the folder; in a thread, because it does not use the index. To be called before a durable
 * record refers to a content. */
cadre_status contents_sync(const char *folder, struct cadre_error *error);
/* The number of contents that were added; to be passed to contents_note_synced() after a sync that
 * began afterwards. */
uint64_t contents_added_count(const struct contents *contents);
/* All contents up to this number are synced. */
void contents_note_synced(struct contents *contents, uint64_t came);
/* Whether its name survives a loss of power. */
bool contents_is_synced(const struct contents *contents, const struct sha256 *hash);

#endif
