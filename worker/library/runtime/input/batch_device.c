/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/input/input.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/device_open.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"

/* The copies for each replica: a use of them waits for its event. */
struct batch_copies {
    struct batch_stage stage; /* first: the part for the input */
    uint32_t count;
    struct {
        struct device *device;
        void *event;
    } of[];
};

/* From now on the tensors are used, and their memory freed, in the order of compute. */
static void batch_device_finish(struct batch_stage *stage)
{
    struct batch_copies *copies = (struct batch_copies *)(void *)stage;
    for (uint32_t i = 0; i < copies->count; i++) {
        struct device *device = copies->of[i].device;
        struct cadre_error ignored; /* the failure of a device is returned at the end of the step */
        device->ops->stream_wait(device->compute, copies->of[i].event, &ignored);
        device_event_give(device, copies->of[i].event);
    }
    free(copies);
}

/* What is not page-locked (what a dataset keeps, not what it reads) is copied by way of memory that
 * is, because the driver would wait for earlier copies before it takes any other. */
static cadre_status copy_from(
    struct device *device, void *to, const cadre_tensor *from, struct cadre_error *error)
{
    const void *data = cadre_tensor_const_data(from);
    size_t bytes = cadre_tensor_bytes(from);
    CADRE_ASSERT(bytes > 0);
    bool on_host = tensor_device(from) == NULL;
    if (on_host && tensor_kind(from) != TENSOR_MEMORY_PINNED && bytes <= DEVICE_COPY_ENQUEUE_MAX) {
        return device_copy_enqueue(device, device->copy, to, data, bytes, error);
    }
    CADRE_TRY(device->ops->copy(to, data, bytes, device->copy, error));
    return device_lend(device, device->copy, from, error);
}

static cadre_status begin_copy(
    struct device *device, cadre_tensor **tensor, struct cadre_error *error)
{
    const cadre_tensor *from = *tensor;
    CADRE_ASSERT(tensor_device(from) != device);
    cadre_tensor *to = NULL;
    CADRE_TRY(tensor_create_on(device, device->copy, cadre_tensor_dtype(from),
        cadre_tensor_rank(from), cadre_tensor_dims(from), &to, error));
    tensor_set_composite(to, tensor_composite(from));
    cadre_status status = CADRE_OK;
    if (cadre_tensor_bytes(from) > 0) {
        status = copy_from(device, cadre_tensor_data(to), from, error);
    }
    if (status != CADRE_OK) {
        struct cadre_error ignored;
        device_order(device, device->copy, device->compute, &ignored);
        device_wait_stream(device, device->copy, 0, NULL, NULL, &ignored);
        cadre_tensor_release(to);
        return status;
    }
    cadre_tensor_release(*tensor);
    *tensor = to;
    return CADRE_OK;
}

static cadre_status begin_element(
    struct device *device, cadre_element *element, struct cadre_error *error)
{
    for (uint32_t i = 0; i < element->count; i++) {
        cadre_tensor **tensor = &element->tensors[i];
        bool stays =
            cadre_tensor_dtype(*tensor) == CADRE_STRING || tensor_device(*tensor) == device;
        if (!stays) {
            CADRE_TRY(begin_copy(device, tensor, error));
        }
    }
    return CADRE_OK;
}

static cadre_status batch_device_record(
    struct batch_copies *copies, struct device *device, struct cadre_error *error)
{
    void *event = NULL;
    CADRE_TRY(device_event_take(device, &event, error));
    copies->of[copies->count].device = device;
    copies->of[copies->count++].event = event;
    return device->ops->event_record(event, device->copy, error);
}

cadre_status batch_to_devices(
    void *user, struct distributed_batch *batch, struct cadre_error *error)
{
    const cadre_distributed_dataset *distributed = user;
    const cadre_strategy *strategy = distributed->strategy;
    CADRE_ASSERT(batch->staged == NULL);
    CADRE_ASSERT(batch->replicas == strategy->local_replicas);
    struct batch_copies *copies =
        calloc(1, sizeof *copies + batch->replicas * sizeof copies->of[0]);
    if (copies == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the copies of a batch");
    }
    copies->stage.finish = batch_device_finish;
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; status == CADRE_OK && i < batch->replicas; i++) {
        struct device *device = strategy->replicas[i].device;
        if (device == NULL) {
            continue;
        }
        status = begin_element(device, &batch->elements[i], error);
        struct cadre_error other;
        cadre_status recorded =
            batch_device_record(copies, device, status == CADRE_OK ? error : &other);
        status = status == CADRE_OK ? recorded : status;
    }
    if (status != CADRE_OK) { /* what is copied stays; the rest is tried again */
        batch_device_finish(&copies->stage);
        return cadre_error_wrap(error, status,
            "dataset '%s': bring a batch to the GPUs; fewer "
            "batches ahead (per_replica_buffer) take less of their memory",
            distributed->name);
    }
    batch->staged = &copies->stage;
    return CADRE_OK;
}
