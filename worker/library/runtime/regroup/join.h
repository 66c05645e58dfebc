/* SPDX-License-Identifier: Apache-2.0
 * How a task enters a job that is under way, or that goes on from a checkpoint. */
#ifndef CADRE_RUNTIME_JOIN_H
#define CADRE_RUNTIME_JOIN_H

#include "worker/library/runtime/strategy/strategy.h"

/* Whether a program that waits for a step need not wait, because the others have done it. */
typedef bool (*join_passes)(const void *user);

/* The program comes to a step of `stream` (0: one without a batch): a warm task reports it and
 * waits until it is in a generation with the job's state, or `passes` (NULL: never; called first,
 * and when the others have gone on) returns that it is not to wait: then it is warm still. A
 * restored one loads the state. Nothing for all others. An error is final. */
cadre_status join_job(cadre_strategy *strategy, uint32_t stream, join_passes passes,
    const void *user, bool *ret_passed, struct cadre_error *error);

#endif
