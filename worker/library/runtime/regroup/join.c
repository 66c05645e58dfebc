/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/generation.h"


cadre_status join_job(cadre_strategy *strategy, uint32_t stream, join_passes passes,
    const void *user, bool *ret_passed, struct cadre_error *error)
{
    *ret_passed = false;
    if (strategy->state == STATE_WARM) {
        if (passes != NULL && passes(user)) {
            *ret_passed = true;
            return CADRE_OK;
        }
        task_join(strategy->task, stream);
        while (task_await_streams(strategy->task)) {
            if (passes != NULL && passes(user)) {
                *ret_passed = true;
                return CADRE_OK;
            }
        }
        cadre_status status = generation_next(strategy, error);
        if (status != CADRE_OK) {
            /* A task that the job does not use ends alone. */
            return strategy->failed.code != CADRE_OK ? status
                                                     : strategy_set_failed(strategy, error);
        }
    }
    return sync_restore(strategy, error);
}
