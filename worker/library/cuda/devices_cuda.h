/* SPDX-License-Identifier: Apache-2.0
 * The devices of this process. See device_ops.h. */
#ifndef CADRE_WORKER_CUDA_DEVICES_CUDA_H
#define CADRE_WORKER_CUDA_DEVICES_CUDA_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/device/device_ops.h"

/* device_ops.count. */
uint32_t devices_count(char ret_reason[256]);
/* device_ops.describe. */
cadre_status devices_describe(
    uint32_t device, struct device_info *ret_info, struct cadre_error *error);
/* device_ops.bind. */
cadre_status devices_bind(uint32_t device, struct cadre_error *error);

/* The texts of struct device_driver. */
void devices_driver(char *ret_driver, size_t driver_bytes, char *ret_runtime, size_t runtime_bytes);

#endif
