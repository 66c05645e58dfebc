/* SPDX-License-Identifier: Apache-2.0
 * Which devices a strategy's replicas are on. A GPU requires the plugin; a CPU is always there, and
 * as many virtual ones of it as a program names. */
#ifndef CADRE_RUNTIME_DEVICES_H
#define CADRE_RUNTIME_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/device/local_device.h"
#include "worker/library/device/device_name.h"
#include "worker/library/runtime/strategy/device_list.h"

/* The devices that this process can use. */
struct device_inventory {
    uint32_t gpus;
};

/* All devices that a list may name; the first call opens the plugin. */
struct device_inventory devices_inventory(void);

/* The devices of strategies without a list: GPUs once the program has enabled them; before that the
 * plugin is not opened. */
struct device_inventory devices_inventory_default(void);

/* Whether one of a list's names may be a GPU's: all others require no inventory. */
bool devices_name_gpus(const char *const names[], size_t count);

/* How many replicas there are by default: one on each GPU, else one on the CPU. */
uint32_t devices_default(const struct device_inventory *inventory);

/* The devices of so many replicas without names: GPUs where there are any, else CPUs.
 * INVALID_ARGUMENT: more than LIMIT_REPLICAS_PER_TASK, or than there are GPUs. */
cadre_status devices_of_count(const struct device_inventory *inventory,
    const struct device_host *host, uint32_t count, struct device_list *ret_list,
    struct cadre_error *error);

/* The devices of a program's list, for `function`. INVALID_ARGUMENT: an empty list, a malformed
 * name, a device twice, one of another type. FAILED_PRECONDITION: a device of another task, or a
 * GPU that does not exist. */
cadre_status devices_of_names(const struct device_inventory *inventory,
    const struct device_host *host, const char *function, const char *const names[], size_t count,
    struct device_list *ret_list, struct cadre_error *error);

#define DEVICES_TEXT_BYTES 128
/* The devices for people, without the task, which is this one: "CPU:0, CPU:1"; of many the first
 * few. Returns `text`. */
const char *devices_text(const struct device_list *list, char text[DEVICES_TEXT_BYTES]);

#endif
