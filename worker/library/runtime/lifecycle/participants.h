/* SPDX-License-Identifier: Apache-2.0
 * The parts of every strategy (participant.h). */
#ifndef CADRE_RUNTIME_LIFECYCLE_PARTICIPANTS_H
#define CADRE_RUNTIME_LIFECYCLE_PARTICIPANTS_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant *const strategy_participants[];
extern const uint32_t strategy_participant_count;

#endif
