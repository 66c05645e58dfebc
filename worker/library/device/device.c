/* SPDX-License-Identifier: Apache-2.0
 * The open devices, one of each number, for the rest of the process. */
#include "worker/library/device/device.h"

#include <pthread.h>
#include <stdlib.h>

#include "worker/library/device/device_open.h"
#include "worker/library/device/tensor_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_device *devices[DEVICES_MAX]; /* under the lock */

/* Read-locked by launches, write-locked by calls that may wait for all devices. */
static pthread_rwlock_t launches = PTHREAD_RWLOCK_INITIALIZER;

void device_launch_begin(void)
{
    pthread_rwlock_rdlock(&launches);
}

void device_launch_end(void)
{
    pthread_rwlock_unlock(&launches);
}

static void *pinned_get(size_t bytes)
{
    pthread_rwlock_wrlock(&launches);
    void *memory = device_plugin()->pinned_get(bytes);
    pthread_rwlock_unlock(&launches);
    return memory;
}

static void pinned_give(void *memory, size_t bytes)
{
    pthread_rwlock_wrlock(&launches);
    device_plugin()->pinned_give(memory, bytes);
    pthread_rwlock_unlock(&launches);
}

static const struct tensor_memory_ops pinned_ops = {
    .name = "page-locked", .get = pinned_get, .give = pinned_give};

static void close_half(struct open_device *open)
{
    const struct device_ops *ops = open->device.ops;
    ops->stream_close(open->device.compute);
    ops->stream_close(open->device.comm);
    ops->stream_close(open->device.copy);
    pthread_mutex_destroy(&open->lock);
    free(open);
}

static cadre_status open_streams(struct device *device, struct cadre_error *error)
{
    const struct device_ops *ops = device->ops;
    CADRE_TRY(ops->describe(device->index, &device->info, error));
    CADRE_TRY(ops->stream_open(device->index, false, &device->compute, error));
    CADRE_TRY(ops->stream_open(device->index, true, &device->comm, error));
    return ops->stream_open(device->index, false, &device->copy, error);
}

static cadre_status open_new(
    uint32_t index, struct open_device **ret_open, struct cadre_error *error)
{
    CADRE_TRY(tensor_memory_register(TENSOR_MEMORY_PINNED, &pinned_ops, error));
    struct open_device *open = calloc(1, sizeof *open);
    if (open == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a device");
    }
    open->device.ops = device_plugin();
    open->device.index = index;
    pthread_mutex_init(&open->lock, NULL);
    cadre_status status = open_streams(&open->device, error);
    if (status != CADRE_OK) {
        close_half(open);
        return cadre_error_wrap(
            error, status, "%s:%u cannot be opened", device_plugin()->type, index);
    }
    *ret_open = open;
    return CADRE_OK;
}

cadre_status device_open(uint32_t index, struct device **ret_device, struct cadre_error *error)
{
    *ret_device = NULL;
    uint32_t count = device_count();
    if (count == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "there is no GPU:%u; %s", index,
            device_absence_reason());
    }
    if (index >= count) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no GPU:%u: this process can use %u, from GPU:0 on", index, count);
    }
    cadre_status status = CADRE_OK;
    pthread_mutex_lock(&lock);
    if (devices[index] == NULL) {
        status = open_new(index, &devices[index], error);
    }
    if (status == CADRE_OK) {
        *ret_device = &devices[index]->device;
    }
    pthread_mutex_unlock(&lock);
    return status;
}
