/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variables_participant.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    strategy->variables = calloc(1, sizeof *strategy->variables);
    return strategy->variables != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for variables");
}

static void close_part(cadre_strategy *strategy)
{
    struct variables_part *part = strategy->variables;
    for (uint32_t i = 0; part != NULL && i < part->count; i++) {
        variable_free(part->list[i]);
    }
    if (part != NULL) {
        part->count = 0;
    }
}

static void free_part(cadre_strategy *strategy)
{
    struct variables_part *part = strategy->variables;
    if (part != NULL) {
        CADRE_ASSERT(part->count == 0);
        free(part->list);
        free(part);
        strategy->variables = NULL;
    }
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
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .returned = returned,
    .complete = on_read_fold,
    .commit = commit,
    .undo = undo,
};
