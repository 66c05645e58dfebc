/* SPDX-License-Identifier: Apache-2.0
 * The functions of the plugin's table, by file; see device_ops.h. plugin_cuda.c fills the table. */
#ifndef CADRE_WORKER_CUDA_PLUGIN_CUDA_H
#define CADRE_WORKER_CUDA_PLUGIN_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/device_ops.h"

/* --- The devices of this process. See device_ops.h. --- */

/* device_ops.count. */
uint32_t devices_count(char ret_reason[256]);
/* device_ops.describe. */
cadre_status devices_describe(
    uint32_t device, struct device_info *ret_info, struct cadre_error *error);
/* device_ops.bind. */
cadre_status devices_bind(uint32_t device, struct cadre_error *error);

/* The texts of struct device_driver. */
void devices_driver(char *ret_driver, size_t driver_bytes, char *ret_runtime, size_t runtime_bytes);

/* --- Events: marks in a stream that others wait for. See device_ops.h. --- */

/* device_ops.event_open. */
cadre_status order_open(uint32_t device, void **ret_event, struct cadre_error *error);
/* device_ops.event_close. */
void order_close(void *event);
/* device_ops.event_record. */
cadre_status order_record(void *event, void *stream, struct cadre_error *error);
/* device_ops.stream_wait. */
cadre_status order_wait(void *stream, void *event, struct cadre_error *error);
/* device_ops.event_test. */
cadre_status order_test(void *event, struct cadre_error *error);

/* --- Memory of devices, and of the host for them. See device_ops.h.
 *
 * A device's memory comes from CUDA's own pool of the device, which keeps what was freed;
 * memory_blocks_cuda.h where a device has no pools (some virtual GPUs). --- */

/* device_ops.memory_get. */
cadre_status memory_get(
    uint32_t device, size_t bytes, void *stream, void **ret_memory, struct cadre_error *error);
/* device_ops.memory_give. */
void memory_give(uint32_t device, void *memory, void *stream);

/* device_ops.pinned_get. */
void *memory_pinned_get(size_t bytes);
/* device_ops.pinned_give. */
void memory_pinned_give(void *memory, size_t bytes);

/* --- What is enqueued on a stream: copies, and the plugin's own kernels. See device_ops.h. --- */

/* device_ops.copy. */
cadre_status work_copy(
    void *to, const void *from, size_t bytes, void *stream, struct cadre_error *error);
/* device_ops.fill. */
cadre_status work_fill(
    void *to, uint8_t byte, size_t bytes, void *stream, struct cadre_error *error);
/* device_ops.scale. */
cadre_status work_scale(cadre_dtype dtype, void *data, size_t count, double factor, void *stream,
    struct cadre_error *error);
/* device_ops.arithmetic. */
cadre_status work_arithmetic(enum device_arithmetic how, cadre_dtype dtype, void *to,
    const void *from, size_t count, void *stream, struct cadre_error *error);
/* device_ops.update. */
cadre_status work_update(
    const struct device_update *update, void *stream, struct cadre_error *error);
/* device_ops.pack. */
cadre_status work_pack(const struct device_piece pieces[], size_t count, void *pack, void *stream,
    struct cadre_error *error);
/* device_ops.unpack. */
cadre_status work_unpack(const struct device_piece pieces[], size_t count, const void *pack,
    void *stream, struct cadre_error *error);
/* device_ops.hash. */
cadre_status work_hash(
    const struct device_chunks pieces[], size_t count, void *stream, struct cadre_error *error);

#endif
