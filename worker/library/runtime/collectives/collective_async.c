/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/collectives/collective_queue.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/runtime/api/api.h"

static cadre_status collective_async_hold(struct cadre_collective *handle,
    cadre_tensor *const tensors[], size_t count, struct cadre_error *error)
{
    if (count > handle->tensor_capacity) {
        cadre_tensor **grown = reallocarray(handle->tensors, count, sizeof *grown);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu tensors", count);
        }
        handle->tensors = grown;
        handle->tensor_capacity = count;
    }
    for (size_t i = 0; i < count; i++) {
        handle->tensors[i] = tensors[i];
    }
    return CADRE_OK;
}

/* Of tensors on a device: comm waits for what is on compute now, not when the thread comes to it,
 * and compute for the result only where the program waits. */
static cadre_status copy_to_device(struct cadre_collective *handle, struct cadre_error *error)
{
    struct device *device = handle->work.device;
    if (device == NULL) {
        return CADRE_OK;
    }
    if (handle->device == NULL) {
        CADRE_TRY(device->ops->event_open(device->index, &handle->begun, error));
        cadre_status status = device->ops->event_open(device->index, &handle->done, error);
        if (status != CADRE_OK) {
            device->ops->event_close(handle->begun);
            return status;
        }
        handle->device = device;
    }
    CADRE_ASSERT(handle->device == device); /* a replica has one */
    handle->work.begun = handle->begun;
    handle->work.done = handle->done;
    return device->ops->event_record(handle->begun, device->compute, error);
}

/* Keeps a reference of each tensor of the list until the handle ends. */
static cadre_status collective_async_fill(struct cadre_collective *handle, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    struct cadre_error *error)
{
    CADRE_TRY(collective_check(tensors, count, error));
    CADRE_TRY(collective_async_hold(handle, tensors, count, error));
    CADRE_TRY(all_reduce_make(&handle->work, handle->replica, op, handle->tensors, handle->tensors,
        count, options, &handle->list, error));
    CADRE_TRY(copy_to_device(handle, error));
    return step_collective_begin(handle->replica, &handle->work.call, &handle->work.note, error);
}

/* --- the replica --- */

cadre_status collective_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle, struct cadre_error *error)
{
    struct cadre_collective *handle = NULL;
    CADRE_TRY(argument_require(ret_handle, "cadre_all_reduce_start", "ret_handle", error));
    *ret_handle = NULL;
    CADRE_TRY(step_require_own_thread(replica, "cadre_all_reduce_start", error));
    CADRE_TRY(collective_queue_open(replica, error));
    CADRE_TRY(collective_queue_handle(replica, &handle, error));
    cadre_status status = collective_async_fill(handle, op, tensors, count, options, error);
    if (status != CADRE_OK) {
        collective_queue_give_back(replica, handle);
        return status;
    }
    collective_queue_push(replica, handle);
    *ret_handle = handle;
    return CADRE_OK;
}

cadre_status collective_wait_for(cadre_collective *handle, struct cadre_error *error)
{
    CADRE_TRY(argument_require(handle, "cadre_collective_wait", "handle", error));
    cadre_replica *replica = handle->replica;
    CADRE_ASSERT(replica->queue != NULL); /* each handle belongs to a queue */
    if (context_replica() != replica) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_collective_wait was called outside of the replica function that started the "
            "collective; call it there");
    }
    return collective_queue_take(replica, handle, error);
}

/* --- public --- */

cadre_status cadre_all_reduce_start(cadre_replica *replica, cadre_reduce_op op,
    cadre_tensor *const tensors[], size_t count, const cadre_collective_options *options,
    cadre_collective **ret_handle)
{
    struct cadre_error error;
    cadre_status status =
        collective_start(replica, op, tensors, count, options, ret_handle, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, &error);
    }
    return api_return(status, &error);
}

cadre_status cadre_collective_wait(cadre_collective *handle)
{
    struct cadre_error error;
    cadre_status status = collective_wait_for(handle, &error);
    if (status != CADRE_OK) {
        step_record_refusal(context_replica(), &error);
    }
    return api_return(status, &error);
}

bool cadre_collective_done(const cadre_collective *handle)
{
    return handle == NULL || collective_queue_is_done(handle);
}
