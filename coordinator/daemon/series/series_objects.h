/* SPDX-License-Identifier: Apache-2.0
 * The values of a job in an object store: a snapshot of their file, then what was appended to it,
 * each an object with the term of its coordinator and a number that rises. Records depend on those
 * before them, so a coordinator begins its own chain with a snapshot, and what an older one puts
 * behind that is not read. Lists may lack what is new: the object "newest" has the name of the
 * newest snapshot, and what follows that is asked for by its name, number after number. In threads,
 * one at a time. */
#ifndef CADRE_COORDINATOR_DAEMON_SERIES_SERIES_OBJECTS_H
#define CADRE_COORDINATOR_DAEMON_SERIES_SERIES_OBJECTS_H

#include "common/model/ids.h"
#include "coordinator/daemon/base/leading.h"
#include "coordinator/daemon/objects/objects.h"

/* The chain of one job. `objects` NULL: the file is where the values lie, and each function does
 * nothing, with OK. */
struct series_objects {
    struct objects *objects;
    const struct leading *leading;
    uint64_t term;
    struct job_id job;
    bool is_fetched;   /* the file has what the store has */
    bool snapshot_due; /* the next object is to be one */
    uint64_t number;   /* of the next object */
};

/* Makes the file at `path` from the objects, once. */
cadre_status series_objects_fetch(
    struct series_objects *series, const char *path, struct cadre_error *error);

/* Puts the next object, before its bytes are in the file. A snapshot is the whole file. On an error
 * it may be there or not, and the next one is to be a snapshot. */
cadre_status series_objects_put(struct series_objects *series, bool is_snapshot,
    const uint8_t *bytes, size_t size, struct cadre_error *error);

#endif
