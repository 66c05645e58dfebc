/* SPDX-License-Identifier: Apache-2.0
 * A strategy of the unit tests with servers that are plain memory. */
#ifndef CADRE_TESTS_SERVED_FAKE_STRATEGY_H
#define CADRE_TESTS_SERVED_FAKE_STRATEGY_H

#include "fake_servers.h"
#include "memory.h"
#include "tests/unit/runtime/training.h"

static inline cadre_strategy *fake_begin(uint32_t servers, const cadre_partitioner *partitioner)
{
    cadre_strategy *strategy = training_strategy(1);
    fake_attach(strategy, servers, partitioner);
    return strategy;
}

static inline void fake_end(cadre_strategy *strategy)
{
    fake_release(strategy);
}

#endif
