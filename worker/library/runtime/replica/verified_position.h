/* SPDX-License-Identifier: Apache-2.0
 * What is known to be equal: the newest position whose states all replicas of the generation were
 * found to hold alike. */
#ifndef CADRE_RUNTIME_VERIFIED_POSITION_H
#define CADRE_RUNTIME_VERIFIED_POSITION_H

#include <stdint.h>

#include "cadre/strategy.h"

/* They were, by digests that are all `digest`: kept, and told to the coordinator. No replica runs,
 * or this is the thread of the first. */
void verified_position_record(cadre_strategy *strategy, uint64_t position, uint64_t digest);

#endif
