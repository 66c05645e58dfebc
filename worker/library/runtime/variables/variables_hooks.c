/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/variables_hooks.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_list.h"
#include "worker/library/runtime/variables/variable_reset.h"

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
        part->fresh = NULL;
        variables_free_undone(strategy);
    }
}

static void free_part(cadre_strategy *strategy)
{
    struct variables_part *part = strategy->variables;
    if (part != NULL) {
        CADRE_ASSERT(part->count == 0);
        free(part->list);
        free(part->larger);
        free(part);
        strategy->variables = NULL;
    }
}

static void variables_hooks_returned(cadre_replica *replica, const struct cadre_error *failure)
{
    (void)replica;
    (void)failure;
    caching_scope_end();
}

/* A reset may have been given back here. */
static void loop_point(cadre_strategy *strategy, enum loop_point loop_point, bool reached)
{
    (void)loop_point;
    if (reached && !strategy_is_catching_up(strategy)) {
        variable_resets_settle(strategy);
    }
}

static cadre_status variables_hooks_begin(struct step_order *order, struct cadre_error *error)
{
    (void)error;
    variable_resets_settle(order->strategy);
    return CADRE_OK;
}

static cadre_status variables_hooks_complete(cadre_replica *replica, struct cadre_error *error)
{
    char reset[LIMIT_NAME_BYTES + 32];
    char what[STRATEGY_CALL_TEXT_BYTES];
    uint64_t key = variable_resets_key(replica->strategy, 0, reset);
    snprintf(what, sizeof what, "nothing more, since its function has returned%.80s", reset);
    return on_read_fold(replica, what, key, error);
}

static void variables_hooks_commit(struct step_order *order)
{
    variables_commit(order->strategy);
    variable_resets_applied(order->strategy);
}

static bool variables_hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    (void)cause;
    variables_restore(strategy);
    return true;
}

static cadre_status variables_hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error)
{
    (void)error;
    if (install_mode == INSTALL_ADOPTED_STEP) {
        variable_resets_applied(strategy);
    } else {
        variable_resets_taken_over(strategy);
    }
    return CADRE_OK;
}

const struct strategy_hooks variables_hooks = {
    .name = "variables",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .loop_point = loop_point,
    .begin = variables_hooks_begin,
    .returned = variables_hooks_returned,
    .complete = variables_hooks_complete,
    .commit = variables_hooks_commit,
    .undo = variables_hooks_undo,
    .install = variables_hooks_install,
};
