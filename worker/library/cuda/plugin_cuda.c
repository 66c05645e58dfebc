/* SPDX-License-Identifier: Apache-2.0
 * The entry of libcadre-cuda.so, and its table. */
#include <pthread.h>

#include "worker/library/cuda/comm.h"
#include "worker/library/cuda/plugin_cuda.h"
#include "worker/library/cuda/streams_cuda.h"
#include "worker/library/device/device_ops.h"

#ifndef CADRE_CUDA_NAME
#define CADRE_CUDA_NAME "cuda"
#endif

static void plugin_cuda_driver(struct device_driver *ret_driver)
{
    devices_driver(ret_driver->driver, sizeof ret_driver->driver, ret_driver->runtime,
        sizeof ret_driver->runtime);
    ret_driver->collectives =
        comm_library(ret_driver->collectives_from, sizeof ret_driver->collectives_from);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device_ops table = {
    .abi = DEVICE_ABI,
    .name = CADRE_CUDA_NAME,
    .type = "GPU",
    .count = devices_count,
    .describe = devices_describe,
    .driver = plugin_cuda_driver,
    .bind = devices_bind,
    .memory_get = memory_get,
    .memory_give = memory_give,
    .pinned_get = memory_pinned_get,
    .pinned_give = memory_pinned_give,
    .stream_open = streams_open,
    .stream_close = streams_close,
    .stream_test = streams_test,
    .event_open = order_open,
    .event_close = order_close,
    .event_record = order_record,
    .stream_wait = order_wait,
    .event_test = order_test,
    .copy = work_copy,
    .fill = work_fill,
    .scale = work_scale,
    .arithmetic = work_arithmetic,
    .update = work_update,
    .pack = work_pack,
    .unpack = work_unpack,
    .hash = work_hash,
};

static void plugin_cuda_complete(void)
{
    table.comm = comm_ops();
}

CADRE_API const struct device_ops *cadre_device_plugin(uint32_t abi);

const struct device_ops *cadre_device_plugin(uint32_t abi)
{
    if (abi != DEVICE_ABI) {
        return NULL;
    }
    pthread_once(&once, plugin_cuda_complete);
    return &table;
}
