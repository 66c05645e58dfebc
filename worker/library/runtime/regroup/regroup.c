/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/regroup.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/hooks.h"

cadre_status regroup_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->regroup == NULL);
    strategy->regroup = calloc(1, sizeof *strategy->regroup);
    return strategy->regroup != NULL
               ? between_steps_open(&strategy->regroup->between_steps, error)
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for generations");
}

void regroup_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->mesh == NULL);
    if (strategy->regroup != NULL) {
        between_steps_close(strategy->regroup->between_steps);
        free(strategy->regroup);
        strategy->regroup = NULL;
    }
}

cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    struct cadre_error other;
    if (!strategy->environment->attached && generation_repair(strategy, &other) == CADRE_OK) {
        return error->code;
    }
    return strategy_set_failed(strategy, error);
}

cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    hooks_generation_end(strategy);
    task_peer_error(strategy->task, strategy->roster.generation, cause->text);
    cadre_status status = generation_next(strategy, error);
    return status == CADRE_OK ? CADRE_OK : strategy_set_failed(strategy, error);
}
