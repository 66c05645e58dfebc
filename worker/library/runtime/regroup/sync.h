/* SPDX-License-Identifier: Apache-2.0
 * The state at the first position of a generation: members that lack it receive it from the source.
 */
#ifndef CADRE_RUNTIME_SYNC_H
#define CADRE_RUNTIME_SYNC_H

#include "worker/library/runtime/strategy/strategy.h"

/* On the formed mesh of a generation that the task core has: all exchange their statuses; what a
 * member lacks is passed on, into staging; the task core is notified that it is there; and only
 * then it counts (protocol, rule 11). ABORTED when the task was frozen meanwhile: its state is as
 * before. INVALID_ARGUMENT: the programs are not the same. In the program's thread, with no replica
 * running. */
cadre_status sync_state(cadre_strategy *strategy, struct cadre_error *error);

/* The strategy is in a generation that goes on from a checkpoint (STATE_RESTORES), and its program
 * has made all variables: rank 0 loads what they do not hold yet, and passes it to all. Nothing for
 * any other strategy. Peers may be lost meanwhile. */
cadre_status sync_restore(cadre_strategy *strategy, struct cadre_error *error);

#endif
