/* SPDX-License-Identifier: Apache-2.0
 * Answers the other tasks of the job that ask for bytes of objects. It answers with bytes of its
 * own segments alone, which come from this task's memory, its disk, or the store, and never from
 * another task: so no two tasks wait for each other. All else is refused.
 *
 * A listener that admits tasks of the generation (worker/library/ps/link), one thread that waits
 * for questions, and up to 16 that answer, with 256 KiB each. */
#ifndef CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_SERVER_H
#define CADRE_WORKER_NEIGHBOURS_NEIGHBOUR_SERVER_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/ps/link/link.h"

struct neighbour_server;

/* Listens on the first free port of `ports` (NULL: any) at `host`, a number. On success it is the
 * caller's to close. */
cadre_status neighbour_server_open(const char *host, const struct port_range *ports,
    struct neighbour_server **ret_server, char ret_address[LIMIT_ADDRESS_BYTES],
    struct cadre_error *error);

/* The members of a generation, copied: who proves `terms` is answered from now on, of what
 * neighbour_owner gives to `own`, one of `ids`. The incarnation in `terms` is the generation's
 * number on both sides. One thread at a time. */
cadre_status neighbour_server_set(struct neighbour_server *server, const struct link_terms *terms,
    const uint64_t ids[], uint32_t count, uint64_t own, struct cadre_error *error);

/* No question is answered any more. An answer for which the store is being asked ends in the
 * background. NULL is allowed. */
void neighbour_server_close(struct neighbour_server *server);

#endif
