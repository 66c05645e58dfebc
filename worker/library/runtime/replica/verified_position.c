/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/replica/step_admission.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/strategy/strategy.h"

void verified_position_record(cadre_strategy *strategy, uint64_t position, uint64_t digest)
{
    CADRE_ASSERT(digest != 0);
    strategy->step.verified = (struct verified){.position = position, .digest = digest};
    task_verified(strategy->task, strategy->roster.generation, &strategy->step.verified);
}
