/* SPDX-License-Identifier: Apache-2.0
 * All-reduces that a replica function calls directly. */
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/all_reduce.h"

static cadre_status reduce_now(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const from[], cadre_tensor *const into[], size_t count,
    const cadre_collective_options *options, struct cadre_error *error)
{
    struct all_reduce all_reduce;
    CADRE_TRY(all_reduce_make(
        &all_reduce, replica, op, from, into, count, options, &replica->list, error));
    CADRE_TRY(collective_enter(replica, &all_reduce.call, &all_reduce.note, error));
    return step_collective_end(replica, all_reduce_do(&all_reduce, error), error);
}

static cadre_status reduce_in(cadre_replica *replica, const char *function, cadre_reduce_op op,
    cadre_tensor *const from[], cadre_tensor *const into[], size_t count,
    const cadre_collective_options *options, struct cadre_error *error)
{
    cadre_status status = step_require_own_thread(replica, function, error);
    if (status == CADRE_OK) {
        status = reduce_now(replica, op, from, into, count, options, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}

cadre_status collective_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    struct cadre_error *error)
{
    return reduce_in(replica, "cadre_all_reduce", op, tensors, tensors, count, options, error);
}

cadre_status cadre_all_reduce(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options)
{
    struct cadre_error error;
    return api_return(collective_all_reduce(replica, op, tensors, count, options, &error), &error);
}

cadre_status cadre_all_reduce_into(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const inputs[], size_t count, cadre_tensor *const outputs[],
    const cadre_collective_options *options)
{
    struct cadre_error error;
    return api_return(
        reduce_in(replica, __func__, op, inputs, outputs, count, options, &error), &error);
}
