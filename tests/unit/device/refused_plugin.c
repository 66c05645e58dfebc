/* SPDX-License-Identifier: Apache-2.0
 * Plugins that cannot be used, each built with another KIND. */
#include <stdio.h>

#include "worker/library/device/device_ops.h"

#define KIND_OLDER   1 /* has another ABI */
#define KIND_NONE    2 /* finds no device */
#define KIND_UNNAMED 3 /* has no entry */

CADRE_API const struct device_ops *cadre_device_plugin(uint32_t abi);
CADRE_API const struct device_ops *unnamed_plugin(uint32_t abi);

static uint32_t no_devices(char ret_reason[256])
{
    snprintf(ret_reason, 256, "the driver sees no device");
    return 0;
}

static const struct device_ops ops = {
    .abi = DEVICE_ABI, .name = "none", .type = "GPU", .count = no_devices};

#if KIND == KIND_UNNAMED
const struct device_ops *unnamed_plugin(uint32_t abi)
#else
const struct device_ops *cadre_device_plugin(uint32_t abi)
#endif
{
    return KIND == KIND_OLDER || abi != DEVICE_ABI ? NULL : &ops;
}
