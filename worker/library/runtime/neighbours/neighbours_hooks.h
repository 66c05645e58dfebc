/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job that take bytes of objects from each other, as a part of a strategy. */
#ifndef CADRE_RUNTIME_NEIGHBOURS_HOOKS_H
#define CADRE_RUNTIME_NEIGHBOURS_HOOKS_H

struct strategy_hooks;

extern const struct strategy_hooks neighbours_hooks;

#endif
