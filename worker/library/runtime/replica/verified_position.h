/* SPDX-License-Identifier: Apache-2.0
 * The newest position at which the states of all replicas of the generation were found to be equal.
 */
#ifndef CADRE_RUNTIME_VERIFIED_POSITION_H
#define CADRE_RUNTIME_VERIFIED_POSITION_H

#include <stdint.h>

#include "cadre/strategy.h"

/* They were, by digests that are all `digest`: kept, and reported to the coordinator. No replica
 * runs, or this is the thread of the first. */
void verified_position_record(cadre_strategy *strategy, uint64_t position, uint64_t digest);

#endif
