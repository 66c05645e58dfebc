/* SPDX-License-Identifier: Apache-2.0
 * Merge calls: the replica threads of this task meet in the middle of a step, and one function runs
 * for all of them, in cross-replica context.
 *
 *     replica 0 (the program's thread)  ──▶ arrives ─ waits ─ runs the function ─┐
 *     replica 1                         ──▶ arrives ─ waits ─────────────────────┼─▶ each goes on
 *     replica 2                         ──────▶ arrives ─ waits ─────────────────┘   with its part
 *
 * A meeting to which one does not come must not be a wait: a replica that returns, fails, or begins
 * a collective that one in the meeting has not made, ends it for all local replicas; other tasks
 * meet in collectives. */
#ifndef CADRE_RUNTIME_MERGE_CALL_H
#define CADRE_RUNTIME_MERGE_CALL_H

#include "cadre/replica.h"
#include "common/base/error.h"

/* Makes what a strategy needs for them. */
cadre_status merge_open(cadre_strategy *strategy, struct cadre_error *error);
/* Frees it; nothing where it was not opened. */
void merge_close(cadre_strategy *strategy);

/* Before the replicas of a step start. */
void merge_begin(cadre_strategy *strategy);

/* The replica's function is over: with `failure`, or NULL. INVALID_ARGUMENT when it returned OK
 * although another one waits for it. */
cadre_status merge_returned(
    cadre_replica *replica, const struct cadre_error *failure, struct cadre_error *error);

#endif
