/* SPDX-License-Identifier: Apache-2.0
 * Copies one thing that a coordinator keeps between a folder and an object store, under the names
 * and in the form that coordinators use there. In threads. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_MOVE_ONE_H
#define CADRE_COORDINATOR_DAEMON_MOVING_MOVE_ONE_H

#include <stdatomic.h>

#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/moving/move_list.h"

struct object_cache;
struct log_copies;

/* What all threads of a copy share. */
struct move {
    struct objects *objects; /* the store, on one side */
    const char *folder;      /* the folder, on the other */
    char *contents;          /* its folder of contents */
    bool to_store;
    bool ahead; /* coordinators run, and may remove what is listed */
    struct move_list from;
    struct move_list there;      /* what was there before */
    struct object_cache *cache;  /* to a folder: what makes its contents, and: */
    struct log_copies *copies;   /* its logs */
    struct leading leading;      /* no other coordinator is at work */
    _Atomic unsigned files_made; /* names of files that are not whole yet */
};

/* `move` has objects, folder, to_store and lists; move_close() follows, also after an error. */
cadre_status move_open(struct move *move, struct cadre_error *error);
void move_close(struct move *move);

/* Whether what is there already has the item's bytes, as far as sizes and times say. */
bool move_has(const struct move *move, const struct move_item *item);
/* DATA_LOSS: the item is damaged. */
cadre_status move_one(struct move *move, const struct move_item *item, struct cadre_error *error);
/* Removes what is there and not where it is copied from, of an older copy. */
cadre_status move_remove_others(const struct move *move, struct cadre_error *error);

#endif
