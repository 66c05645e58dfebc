/* SPDX-License-Identifier: Apache-2.0
 * Communicators of NCCL. See struct device_comm_ops. */
#ifndef CADRE_WORKER_CUDA_COMM_H
#define CADRE_WORKER_CUDA_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "worker/library/device/device_ops.h"

/* The table; NULL when there is no library that can be used. The first call searches for it, and
 * calls no driver. Any thread. */
const struct device_comm_ops *comm_ops(void);

/* Its version, and the file it is from; 0 and why there is none. */
uint32_t comm_library(char *ret_from, size_t bytes);

#endif
