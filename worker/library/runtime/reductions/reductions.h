/* SPDX-License-Identifier: Apache-2.0
 * The hooks of reductions in a strategy, and its state. */
#ifndef CADRE_RUNTIME_REDUCTIONS_H
#define CADRE_RUNTIME_REDUCTIONS_H

#include "cadre/cross_device.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

struct reductions_part {
    cadre_cross_device_ops cross_device;            /* how values are combined and copied between
                                                     * devices */
    char reduce_to_device[CADRE_DEVICE_NAME_BYTES]; /* the string that cross_device points to */
    bool custom_runs; /* functions of the program's own run, those in cross_device */
};

extern const struct strategy_hooks reductions_hooks;

#endif
