/* SPDX-License-Identifier: Apache-2.0
 * The state as a part of a strategy: when it is copied for a checkpoint, and how it is sent to a
 * task that lacks it. */
#ifndef CADRE_RUNTIME_STATE_HOOKS_H
#define CADRE_RUNTIME_STATE_HOOKS_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

extern const struct strategy_hooks state_hooks;

#endif
