/* SPDX-License-Identifier: Apache-2.0
 * Reductions as a part of a strategy, and what it keeps for them. */
#ifndef CADRE_RUNTIME_REDUCTIONS_H
#define CADRE_RUNTIME_REDUCTIONS_H

#include "cadre/cross_device.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

struct reductions_part {
    cadre_cross_device_ops cross_device;            /* how values get from device to device */
    char reduce_to_device[CADRE_DEVICE_NAME_BYTES]; /* that cross_device refers to */
    bool custom_runs; /* functions of the program's own, that cross_device has */
};

extern const struct strategy_hooks reductions_hooks;

#endif
