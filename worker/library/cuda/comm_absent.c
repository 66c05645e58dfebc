/* SPDX-License-Identifier: Apache-2.0
 * Replaces comm_nccl.c where the plugin is built without NCCL's header. */
#include "worker/library/cuda/comm.h"

#include <stdio.h>

const struct device_comm_ops *comm_ops(void)
{
    return NULL;
}

uint32_t comm_library(char *ret_from, size_t bytes)
{
    snprintf(ret_from, bytes, "the plugin was built without NCCL's header (2.18 or newer)");
    return 0;
}
