/* SPDX-License-Identifier: Apache-2.0
 * GPUs of strategies: whether they are the default, and the devices that replicas are on. */
#ifndef CADRE_RUNTIME_GPUS_H
#define CADRE_RUNTIME_GPUS_H

#include <stdbool.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/runtime/api/environment.h"

struct device;

/* Whether the program has called cadre_enable_gpus. */
bool gpus_enabled(void);

/* Warns, once, that a program which was started by hand on a terminal leaves GPUs idle. Opens no
 * driver. */
void gpus_hint_idle(const struct environment *environment);

/* Opens the devices of the strategy's list and gives them to its replicas. Its effect on sums when
 * some of them are CPUs is in regroup/connect_devices.c. */
cadre_status gpus_open(cadre_strategy *strategy, struct cadre_error *error);

/* A tensor of zeros in the memory of `device` (NULL: the host's), in the order of its compute
 * stream; the caller's. */
cadre_status gpus_tensor_zeros(struct device *device, cadre_dtype dtype, uint32_t rank,
    const int64_t *dims, cadre_tensor **ret_tensor, struct cadre_error *error);
/* A copy of `tensor` in the memory of `device`, in the same order; the caller's. */
cadre_status gpus_tensor_copy(struct device *device, const cadre_tensor *tensor,
    cadre_tensor **ret_tensor, struct cadre_error *error);

#endif
