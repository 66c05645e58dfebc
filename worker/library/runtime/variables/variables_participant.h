/* SPDX-License-Identifier: Apache-2.0
 * Variables as a part of a strategy: what is written in a step counts when the step does. */
#ifndef CADRE_RUNTIME_VARIABLES_PARTICIPANT_H
#define CADRE_RUNTIME_VARIABLES_PARTICIPANT_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant variables_participant;

#endif
