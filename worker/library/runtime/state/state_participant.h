/* SPDX-License-Identifier: Apache-2.0
 * The state as a part of a strategy: when it is copied for a checkpoint, and how it gets to a task
 * that lacks it. */
#ifndef CADRE_RUNTIME_STATE_PARTICIPANT_H
#define CADRE_RUNTIME_STATE_PARTICIPANT_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant state_participant;

#endif
