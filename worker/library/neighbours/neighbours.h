/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job ask the store for each byte of an object once, all together: each segment of
 * an object has one task that asks for it, and the others ask that task. What a task cannot get so
 * it reads from the store itself; no error comes from here but those of neighbours_open.
 *
 * One in a process. All calls but those of threads that read objects come from one thread. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOURS_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOURS_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/port_range.h"
#include "common/model/ids.h"
#include "common/model/limits.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/neighbours/neighbour_client.h"

struct neighbours;

/* Listens on the first free port of `ports` (NULL: any) at `host`; `ret_address` is for the others.
 * Nothing is asked or answered yet. On success it is the caller's to close. */
cadre_status neighbours_open(const char *host, const struct port_range *ports,
    struct neighbours **ret_neighbours, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error);

/* The tasks that answer in a generation, with unique ids below 2^32: all of them have the same
 * list, in whatever order, and the same `key`. `own` is this task's id. With fewer than two all
 * comes from the store. On an error it comes from those of the former generation that still answer,
 * and from the store. */
cadre_status neighbours_set(struct neighbours *neighbours, struct generation generation,
    const uint8_t key[MESH_KEY_BYTES], const struct neighbour_member members[], uint32_t count,
    uint64_t own, struct cadre_error *error);

/* Ends what is in progress. NULL is allowed. */
void neighbours_close(struct neighbours *neighbours);

#endif
