/* SPDX-License-Identifier: Apache-2.0
 * Asks the task whose segment it is for bytes of an object, over links that stay open from one
 * question to the next, a few to each task. A task that does not answer is passed over for some
 * seconds, and the store is asked. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_CLIENT_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/neighbours/neighbour_wire.h"

struct neighbour_client;

/* A member of the generation that answers. */
struct neighbour_member {
    uint64_t id; /* its slot */
    const char *address;
};

/* NULL: no memory. */
struct neighbour_client *neighbour_client_open(void);

/* The members from now on, copied; `own` is this task's among them. Questions to the former ones
 * that are on their way go on. The key of `terms` is proved to those who are asked. One thread at a
 * time. */
cadre_status neighbour_client_set(struct neighbour_client *client, const struct link_terms *terms,
    const struct neighbour_member members[], uint32_t count, uint64_t own,
    struct cadre_error *error);

/* Reads the bytes of a question, each NEIGHBOUR_PIECE_BYTES from its offset on to a place of their
 * own. False: they are this task's own to ask the store for, or did not come; the places may have
 * been written to. At most a minute. Any thread. */
bool neighbour_client_read(
    struct neighbour_client *client, const struct neighbour_ask *ask, void *const places[]);

/* Calls that are in progress fail soon, and those that follow at once. */
void neighbour_client_stop(struct neighbour_client *client);
/* No call may be in progress. NULL is allowed. */
void neighbour_client_close(struct neighbour_client *client);

#endif
