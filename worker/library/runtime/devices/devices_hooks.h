/* SPDX-License-Identifier: Apache-2.0
 * The replicas' devices as a part of a strategy, and what the strategy keeps for them. */
#ifndef CADRE_RUNTIME_DEVICES_HOOKS_H
#define CADRE_RUNTIME_DEVICES_HOOKS_H

#include "worker/library/device/local_device.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

struct logical_devices;

struct devices_part {
    char host_name[CADRE_DEVICE_NAME_BYTES]; /* for what is not on its replica's GPU */
    struct logical_devices *logical;         /* of the replicas; NULL: one each */
};

extern const struct strategy_hooks devices_hooks;

#endif
