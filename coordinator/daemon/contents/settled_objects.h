/* SPDX-License-Identifier: Apache-2.0
 * What a file of a job is to be, in an object store: <folder>/<term>-<number>, once. Not every
 * store has a condition on a put, and a put of a coordinator that was replaced may arrive at any
 * time: so each put has a name of its own, and of several the one with the highest name counts.
 * What was answered is never overtaken: the answer came while its coordinator led, so a later
 * leader finds it, and puts nothing. Lists may be old: <folder>/newest, put before the answer,
 * names the one that counts, too. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_SETTLED_OBJECTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_SETTLED_OBJECTS_H

#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/objects/objects.h"

#define SETTLED_BYTES 1024 /* at most */

struct settled_put {
    const char *folder; /* a path of objects_path() */
    uint64_t term;      /* of this coordinator */
    uint64_t number;    /* no other put of the term has it */
    const void *bytes;
    size_t size;
};

/* Puts the bytes, unless some are there. *ret_settled is what counts, and the caller's to free().
 * In a thread; one call at a time looks and puts. UNAVAILABLE: the store is away, or this
 * coordinator may have been replaced. */
cadre_status settled_objects_settle(struct objects *objects, const struct leading *leading,
    const struct settled_put *put, char **ret_settled, size_t *ret_size, struct cadre_error *error);

/* What counts beneath the folder, likewise the caller's. NOT_FOUND: nothing is settled. */
cadre_status settled_objects_get(struct objects *objects, const char *folder, char **ret_settled,
    size_t *ret_size, struct cadre_error *error);
/* Of contents that are copied to there: before all that a coordinator puts. */
cadre_status settled_objects_put_first(struct objects *objects, const char *folder,
    const void *bytes, size_t size, struct cadre_error *error);

#endif
