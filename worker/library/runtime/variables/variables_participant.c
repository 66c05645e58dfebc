/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variables_participant.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/variables/variable.h"

static void close_part(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->variable_count; i++) {
        variable_free(strategy->variables[i]);
    }
    strategy->variable_count = 0;
}

static void free_part(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->variable_count == 0);
    free(strategy->variables);
    strategy->variables = NULL;
}

static void returned(cadre_replica *replica, const struct cadre_error *failure)
{
    (void)replica;
    (void)failure;
    caching_scope_end();
}

static void commit(struct step_order *order)
{
    variables_commit(order->strategy);
}

static bool undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    (void)cause;
    variables_restore(strategy);
    return true;
}

const struct participant variables_participant = {
    .name = "variables",
    .close = close_part,
    .free = free_part,
    .returned = returned,
    .complete = on_read_fold,
    .commit = commit,
    .undo = undo,
};
