/* SPDX-License-Identifier: Apache-2.0
 * A worker forgets how a task ended with the STOP_TASK that acknowledges it, and what it keeps of a
 * job with FORGET_JOB. From then on only the ledger has it, so the record is on the disk before.
 * Records of ends are not synced themselves, because the ends of many tasks of one turn, and those
 * that a later record syncs, then cost no fsync of their own. Pure. */
#ifndef CADRE_COORDINATOR_ENGINE_SYNCED_FIRST_H
#define CADRE_COORDINATOR_ENGINE_SYNCED_FIRST_H

#include "coordinator/core/core.h"

/* The turn records the end of a task, or that a job is queued again. */
bool synced_first_records(const struct core_actions *turn);
/* The turn has a message with which a worker forgets one. */
bool synced_first_tells(const struct core_actions *turn);

#endif
