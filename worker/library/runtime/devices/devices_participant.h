/* SPDX-License-Identifier: Apache-2.0
 * The replicas' devices as a part of a strategy. */
#ifndef CADRE_RUNTIME_DEVICES_PARTICIPANT_H
#define CADRE_RUNTIME_DEVICES_PARTICIPANT_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant devices_participant;

#endif
