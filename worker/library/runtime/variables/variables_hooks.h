/* SPDX-License-Identifier: Apache-2.0
 * The hooks of variables in a strategy: what is written in a step counts when the step does. */
#ifndef CADRE_RUNTIME_VARIABLES_HOOKS_H
#define CADRE_RUNTIME_VARIABLES_HOOKS_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

extern const struct strategy_hooks variables_hooks;

#endif
