/* SPDX-License-Identifier: Apache-2.0
 * Collectives as a part of a strategy. */
#ifndef CADRE_RUNTIME_COLLECTIVES_H
#define CADRE_RUNTIME_COLLECTIVES_H

#include "worker/library/runtime/strategy/participant.h"

extern const struct participant collectives_participant;

#endif
