/* SPDX-License-Identifier: Apache-2.0
 * Which task of its job a program is, whether it has a strategy or is a plain one. */
#include "cadre/program.h"
#include "worker/library/runtime/plain/plain.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy/strategy.h"

uint32_t cadre_rank(void)
{
    struct plain_ranks plain;
    return plain_get_ranks(&plain) ? plain.rank : strategy_rank();
}

uint32_t cadre_world_size(void)
{
    uint32_t at = 0;
    struct plain_ranks plain;
    if (plain_get_ranks(&plain)) {
        return plain.tasks;
    }
    const cadre_strategy *strategy = strategy_registry_next(&at); /* by hand each has one task */
    if (strategy != NULL) {
        return strategy_tasks(strategy);
    }
    const struct environment *environment = program_environment();
    return environment != NULL ? environment->tasks : 1;
}
