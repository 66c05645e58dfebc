/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/checkpoint/first_task.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status first_task_run(struct cadre_strategy *strategy, uint32_t local,
    struct first_task *first, cadre_status *ret_code, struct cadre_error *error)
{
    int64_t code = CADRE_OK;
    CADRE_ASSERT(local < strategy->local_replicas);
    if (local == 0) {
        first->own = (struct cadre_error){0};
    }
    if (local == 0 && strategy->roster.rank == 0) {
        code = (int64_t)first->function(strategy, first->user, &first->own);
    }
    const struct mesh_buffer flag = {.data = &code, .bytes = sizeof code, .dtype = MESH_I64};
    CADRE_TRY(collective_sum(strategy, local, &flag, 1, first->key, error));
    if (local == 0) {
        first->code = code;
    }
    *ret_code = (cadre_status)code;
    return code == CADRE_OK
               ? CADRE_OK
               : collective_share_error(strategy, local, 0, &first->own, &first->theirs, error);
}

cadre_status first_task_result(const struct first_task *first, struct cadre_error *error)
{
    if (first->code == CADRE_OK) {
        return CADRE_OK;
    }
    *error = first->own.code != CADRE_OK ? first->own : first->theirs;
    error->code = (cadre_status)first->code;
    return error->code;
}
