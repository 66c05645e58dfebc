/* SPDX-License-Identifier: Apache-2.0
 * Replicas at one position with different states, and the workers of those that differ. */
#ifndef CADRE_COORDINATOR_CORE_FACTS_DIVERGENCE_H
#define CADRE_COORDINATOR_CORE_FACTS_DIVERGENCE_H

#include "coordinator/core/state/state.h"

/* ---- divergence.c ---- */

/* A member reported that states differ (REPORT_DIVERGED). */
void divergence_reported(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);
/* After a start of the coordinator: ends the generation if its states are recorded as different. */
void divergence_restored(struct core *core, struct job *job);
/* When all members are frozen and have reported: compares their digests, and at an end or stop that
 * of the chief's part of that position. True: they differ, and the consequences are noted. */
bool divergence_compare(struct core *core, struct job *job);
/* Whether all members and the part are at their end or at a stop, and no known digest differs. */
bool divergence_excluded(const struct core *core, const struct job *job);

/* ---- culprits.c ---- */

/* Counts the worker of a task that had another state; the second time the worker drains. */
void culprit_note(struct core *core, const struct job *job, uint32_t slot, uint32_t worker);
/* After a start of the coordinator: an entry of the store. */
void culprit_restore(struct core *core, const struct core_culprit *culprit);

#endif
