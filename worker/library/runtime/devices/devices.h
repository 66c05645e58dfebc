/* SPDX-License-Identifier: Apache-2.0
 * Which devices a strategy's replicas are on. A GPU requires the plugin; a CPU is always there, and
 * as many virtual ones of it as a program names. */
#ifndef CADRE_RUNTIME_DEVICES_H
#define CADRE_RUNTIME_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/strategy/device_list.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"

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

/* --- gpus.c --- */

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

/* --- devices_hooks.c: the replicas' devices as a part of a strategy --- */

struct logical_devices;

struct devices_part {
    char host_name[CADRE_DEVICE_NAME_BYTES]; /* for what is not on its replica's GPU */
    struct logical_devices *logical;         /* of the replicas; NULL: one each */
};

extern const struct strategy_hooks devices_hooks;

#endif
