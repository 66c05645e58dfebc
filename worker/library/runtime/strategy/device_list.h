/* SPDX-License-Identifier: Apache-2.0
 * The names of the devices that a strategy's replicas are on. */
#ifndef CADRE_RUNTIME_DEVICE_LIST_H
#define CADRE_RUNTIME_DEVICE_LIST_H

#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/local_device.h"

/* Canonical names, in order of the replicas. */
struct device_list {
    uint32_t count;
    char (*names)[CADRE_DEVICE_NAME_BYTES]; /* owned */
    const char **pointers;                  /* owned; to them */
};

/* Room for so many names, each empty. RESOURCE_EXHAUSTED. */
cadre_status device_list_make(
    uint32_t count, struct device_list *ret_list, struct cadre_error *error);

/* Frees it; an empty one is allowed. */
void device_list_clear(struct device_list *list);

#endif
