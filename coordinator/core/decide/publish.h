/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints. */
#ifndef CADRE_COORDINATOR_CORE_DECIDE_PUBLISH_H
#define CADRE_COORDINATOR_CORE_DECIDE_PUBLISH_H

#include "coordinator/core/state/state.h"

/* Publishes the part if all members have applied its position and it is verified. */
void publish_decide(struct core *core, struct job *job);

#endif
