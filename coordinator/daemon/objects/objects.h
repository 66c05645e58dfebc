/* SPDX-License-Identifier: Apache-2.0
 * The object store of --contents s3://BUCKET/PREFIX, in which what the coordinator keeps of jobs
 * lies; a folder in unit tests. The calls wait, and are made by threads of the pools. A store that
 * does not answer, or refuses the coordinator, is *away*: until it is back calls fail at once with
 * UNAVAILABLE, and one thread at a time tries it. */
#ifndef CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECTS_H
#define CADRE_COORDINATOR_DAEMON_OBJECTS_OBJECTS_H

#include <stdarg.h>

#include "common/storage/storage.h"

struct objects;

struct objects_options {
    const char *root;     /* copied */
    uint64_t deadline_us; /* of a request, with what it repeats; 0: 10 s; of large ones 6 times as
                             long */
    unsigned connections; /* 0: storage.h's */
};

/* No network. */
cadre_status objects_open(
    const struct objects_options *options, struct objects **ret_objects, struct cadre_error *error);
/* Whether the store takes the coordinator: it may be away, but the bucket is there and the
 * credentials are good for a list. */
cadre_status objects_check(struct objects *objects, struct cadre_error *error);
/* Calls that wait end soon, and others fail, with CANCELLED. NULL is allowed. */
void objects_stop(struct objects *objects);
/* No call may be in progress. NULL is allowed. */
void objects_close(struct objects *objects);

/* Bytes of bodies that came and went, also of calls that failed. Any thread. */
uint64_t objects_moved_bytes(struct objects *objects);

/* The path of an object below the root; malloc'ed, NULL: no memory. */
char *objects_path(const struct objects *objects, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What a path that was listed has below `folder`, a path of objects_path(). */
const char *objects_name_beneath(const char *folder, const char *path);

/* Whether the store is away; *ret_why (may be NULL): a sentence that says so. Any thread. */
bool objects_are_away(struct objects *objects, struct cadre_error *ret_why);
/* Tries the store, if it is away and no other thread does. */
void objects_try(struct objects *objects);
/* Waits until it is not away. False: objects_stop() was called. */
bool objects_wait(struct objects *objects);

/* As the functions of storage.h. A NULL path is RESOURCE_EXHAUSTED. */
cadre_status objects_put(struct objects *objects, const char *path, const void *bytes, size_t size,
    struct cadre_error *error);
cadre_status objects_get(struct objects *objects, const char *path, size_t limit, char **ret_bytes,
    size_t *ret_size, struct cadre_error *error);
cadre_status objects_remove(struct objects *objects, const char *path, struct cadre_error *error);
cadre_status objects_list(struct objects *objects, const char *folder, bool deep,
    bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error);
/* It is the caller's to close; read it by objects_read(). */
cadre_status objects_look(struct objects *objects, const char *path,
    struct storage_object **ret_object, struct cadre_error *error);

/* Puts the bytes of a file that is open for reading. */
cadre_status objects_put_file(
    struct objects *objects, const char *path, int fd, struct cadre_error *error);
/* Appends all bytes of the object to a file that is open for writing, and was empty. */
cadre_status objects_fetch(
    struct objects *objects, const char *path, int fd, struct cadre_error *error);

/* The status of a call of storage.h that the caller made itself: notes whether the store is away.
 * Returns what the caller is to return: UNAVAILABLE if it is. */
cadre_status objects_judge(struct objects *objects, cadre_status status, struct cadre_error *error);

/* Removes all objects below the folder, as long as `may(user)`; UNAVAILABLE: it may not any more.
 */
cadre_status objects_remove_all(struct objects *objects, const char *folder,
    bool (*may)(const void *user), const void *user, struct cadre_error *error);

/* Ends uploads of writers that are dead, which began more than a day ago. */
void objects_clear_uploads(struct objects *objects);

#endif
