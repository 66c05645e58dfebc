/* SPDX-License-Identifier: Apache-2.0
 * Collectives as a part of a strategy, and what the strategy keeps for them. */
#ifndef CADRE_RUNTIME_COLLECTIVES_H
#define CADRE_RUNTIME_COLLECTIVES_H

#include "cadre/collective.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

struct collectives_part {
    cadre_collective_options communication; /* of collectives without options */
};

extern const struct strategy_hooks collectives_hooks;

#endif
