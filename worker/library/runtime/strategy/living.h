/* SPDX-License-Identifier: Apache-2.0
 * The strategies that live in this process. By hand there may be several, each with a coordinator
 * of its own; under a daemon or in a job of several tasks the process is one task of one job, and
 * there is one. The table is read by any thread without a lock: whether a pointer that a program
 * hands in is a strategy is asked in every call. */
#ifndef CADRE_RUNTIME_LIVING_H
#define CADRE_RUNTIME_LIVING_H

#include <stdint.h>

#include "worker/library/runtime/strategy/strategy.h"

#define LIVING_MAX 64

/* Gives the strategy its number and makes it one that lives. RESOURCE_EXHAUSTED: LIVING_MAX do. */
cadre_status living_add(cadre_strategy *strategy, struct cadre_error *error);

/* How many strategies were ever made. */
uint64_t living_numbered(void);

/* Before it is freed. Its rank stays what this process's is, until there is another one. */
void living_remove(cadre_strategy *strategy);

/* One after the other, in no order: *at is 0 at first. NULL: no more. */
cadre_strategy *living_next(uint32_t *at);

/* The only one that lives; NULL: none, or several. */
cadre_strategy *living_only(void);

#endif
