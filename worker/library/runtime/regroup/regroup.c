/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/regroup.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/regroup/regroup_part.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/participants.h"

cadre_status regroup_open(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->regroup == NULL);
    strategy->regroup = calloc(1, sizeof *strategy->regroup);
    return strategy->regroup != NULL
               ? outside_open(&strategy->regroup->outside, error)
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for generations");
}

void regroup_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->mesh == NULL);
    if (strategy->regroup != NULL) {
        outside_close(strategy->regroup->outside);
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
    return strategy_end(strategy, error);
}

cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    participants_over(strategy);
    task_peer_error(strategy->task, strategy->roster.generation, cause->text);
    cadre_status status = generation_next(strategy, error);
    return status == CADRE_OK ? CADRE_OK : strategy_end(strategy, error);
}
