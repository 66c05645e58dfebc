/* SPDX-License-Identifier: Apache-2.0
 * How a task gets into a job that is under way, or that goes on from a checkpoint. */
#ifndef CADRE_RUNTIME_JOIN_H
#define CADRE_RUNTIME_JOIN_H

#include "worker/runtime/strategy.h"

/* The program comes to a step of `stream` (0: one without a batch): a warm task says so and waits
 * until it is in a generation with the job's state; a restored one loads it. Nothing for all
 * others. An error is final. */
cadre_status join_job(cadre_strategy *strategy, uint32_t stream, struct cadre_error *error);

#endif
