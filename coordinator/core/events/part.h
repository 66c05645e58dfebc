/* SPDX-License-Identifier: Apache-2.0
 * The chief's part of a checkpoint is durable. */
#ifndef CADRE_COORDINATOR_CORE_EVENTS_PART_H
#define CADRE_COORDINATOR_CORE_EVENTS_PART_H

#include "coordinator/core/state/state.h"

/* The chief reports a durable checkpoint. */
void part_handle(struct core *core, struct job *job, uint32_t slot, const struct task_part *part);

#endif
