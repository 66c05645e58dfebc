/* SPDX-License-Identifier: Apache-2.0
 * Copies all items, several at a time, and shows how far it is: on a terminal as a line that is
 * redrawn, else as an event every ten seconds. */
#ifndef CADRE_COORDINATOR_DAEMON_MOVING_MOVE_RUN_H
#define CADRE_COORDINATOR_DAEMON_MOVING_MOVE_RUN_H

#include "coordinator/daemon/moving/move_one.h"

struct move_result {
    size_t copied;
    size_t there; /* it was there already */
    size_t damaged;
    uint64_t copied_bytes;
    uint64_t there_bytes;
};

/* Ends with the first error but for damaged items, which are logged and counted. UNAVAILABLE: the
 * store has been away for too long, or answers and does not give or take one of them. */
cadre_status move_run(struct move *move, struct move_result *ret_result, struct cadre_error *error);

#endif
