/* SPDX-License-Identifier: Apache-2.0
 * What is enqueued on a stream: copies, and the plugin's own kernels. See device_ops.h. */
#ifndef CADRE_WORKER_CUDA_WORK_CUDA_H
#define CADRE_WORKER_CUDA_WORK_CUDA_H

#include "worker/library/device/device_ops.h"

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
