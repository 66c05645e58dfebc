/* SPDX-License-Identifier: Apache-2.0
 * What lies in a root of contents, a folder or a path of an object store, as the things that a
 * coordinator keeps: one of them may be several files or objects. The caller waits. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_MOVE_LIST_H
#define CADRE_COORDINATOR_DAEMON_MOVING_MOVE_LIST_H

#include "common/model/ids.h"
#include "coordinator/daemon/objects/objects.h"

enum move_kind {
    MOVE_CONTENT,   /* name: the hash */
    MOVE_LOG,       /* number: the slot */
    MOVE_SERIES,    /* what the job's program reported */
    MOVE_OUTPUT,    /* name: SLOT/PATH */
    MOVE_REFERENCE, /* likewise; an output that is a checkpoint's file */
    MOVE_SETTLED,   /* number: of the job's file */
    MOVE_OTHER,     /* name: below the root; snapshots of the ledger, and what names the cluster */
    MOVE_KINDS
};

struct move_item {
    enum move_kind kind;
    struct job_id job;
    uint32_t number;
    char *name; /* NULL: the kind has none */
    uint64_t bytes;
    uint64_t changed_us; /* of a file when its inode changed, of an object when it was put */
};

/* Sorted. */
struct move_list {
    struct move_item *items;
    size_t count;
    size_t capacity;
    uint64_t bytes;
    bool short_of_memory;
};

cadre_status move_list_folder(
    const char *folder, struct move_list *ret_list, struct cadre_error *error);
cadre_status move_list_store(
    struct objects *objects, struct move_list *ret_list, struct cadre_error *error);
/* Also after an error. */
void move_list_free(struct move_list *list);

/* The same thing in the list; NULL: it is not there. */
const struct move_item *move_list_find(const struct move_list *list, const struct move_item *item);
/* Others are left out. */
void move_list_keep(struct move_list *list, enum move_kind kind);
/* How many of the kind, and *ret_bytes of them. */
size_t move_list_count(const struct move_list *list, enum move_kind kind, uint64_t *ret_bytes);

#endif
