/* SPDX-License-Identifier: Apache-2.0
 * Datasets as a part of a strategy: what a step is fed, and where the program stands in them. */
#ifndef CADRE_RUNTIME_INPUT_PARTICIPANT_H
#define CADRE_RUNTIME_INPUT_PARTICIPANT_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant input_participant;

#endif
