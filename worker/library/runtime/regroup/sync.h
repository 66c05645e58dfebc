/* SPDX-License-Identifier: Apache-2.0
 * The state at the first position of a generation: who lacks it gets it from one that has it. */
#ifndef CADRE_RUNTIME_SYNC_H
#define CADRE_RUNTIME_SYNC_H

#include "worker/library/runtime/strategy/strategy.h"

/* On the formed mesh of a generation that the task core was told of: all tell where they stand;
 * what somebody lacks is passed on, into staging; the task core is told that it is there; and only
 * then it counts (protocol rule 11). ABORTED when it was frozen meanwhile: everything is as it was.
 * INVALID_ARGUMENT: the programs are not the same. In the program's thread, with no replica
 * running. */
cadre_status sync_state(cadre_strategy *strategy, struct cadre_error *error);

/* The strategy is in a generation that goes on from a checkpoint (STATE_RESTORES), and its program
 * has made all variables: rank 0 loads what they do not hold yet, and all get what it has. Nothing
 * when it is in none. Peers may be lost meanwhile. */
cadre_status sync_restore(cadre_strategy *strategy, struct cadre_error *error);

#endif
