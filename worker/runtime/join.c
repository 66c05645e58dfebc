/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/join.h"

#include "worker/runtime/generation.h"
#include "worker/runtime/sync.h"

cadre_status join_job(cadre_strategy *strategy, uint32_t stream, struct cadre_error *error)
{
    if (strategy->state == STATE_WARM) {
        task_join(strategy->task, stream);
        cadre_status status = generation_next(strategy, error);
        if (status != CADRE_OK) {
            return strategy_end(strategy, error);
        }
    }
    return sync_restore(strategy, error);
}
