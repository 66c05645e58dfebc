/* SPDX-License-Identifier: Apache-2.0
 * Datasets as a part of a strategy: what a step consumes, and the program's position in them. */
#ifndef CADRE_RUNTIME_INPUT_HOOKS_H
#define CADRE_RUNTIME_INPUT_HOOKS_H

#include "worker/library/runtime/strategy/strategy_hooks.h"

extern const struct strategy_hooks input_hooks;

#endif
