/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/reductions/reductions.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->reductions == NULL);
    strategy->reductions = calloc(1, sizeof *strategy->reductions);
    return strategy->reductions != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "no memory for how values of the strategy get from device to device");
}

static void free_part(cadre_strategy *strategy)
{
    free(strategy->reductions);
    strategy->reductions = NULL;
}

const struct strategy_hooks reductions_hooks = {
    .name = "reductions",
    .open = open_part,
    .free = free_part,
};
