/* SPDX-License-Identifier: Apache-2.0
 * The strategies that a job can ask for by name (--strategy, CADRE_STRATEGY). */
#ifndef CADRE_MODEL_STRATEGY_NAMES_H
#define CADRE_MODEL_STRATEGY_NAMES_H

/* Ended by NULL. */
extern const char *const strategy_names[];

#endif
