/* SPDX-License-Identifier: Apache-2.0
 * Which devices a strategy's replicas are on: by a list of names, by a count, or by default.
 * lifecycle/ calls it in the constructors. */
#include "worker/library/runtime/devices/devices.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/limits.h"
#include "common/pure/assert.h"
#include "worker/library/device/device.h"

struct device_inventory devices_inventory(void)
{
    return (struct device_inventory){.gpus = device_count()};
}

struct device_inventory devices_inventory_default(void)
{
    return gpus_enabled() ? devices_inventory() : (struct device_inventory){.gpus = 0};
}

bool devices_name_gpus(const char *const names[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] != NULL && strcasestr(names[i], "gpu") != NULL) {
            return true;
        }
    }
    return false;
}

uint32_t devices_default(const struct device_inventory *inventory)
{
    return inventory->gpus > 0 ? inventory->gpus : 1;
}

static cadre_device_spec spec_of(const struct device_host *host)
{
    cadre_device_spec spec = {.replica = 0, .task = host->task, .index = -1};
    CADRE_ASSERT(host->task >= 0);
    memcpy(spec.job, host->job, sizeof spec.job);
    return spec;
}

static cadre_status check_count(size_t count, struct cadre_error *error)
{
    if (count > LIMIT_REPLICAS_PER_TASK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%zu replicas were requested; a task has at most %d", count, LIMIT_REPLICAS_PER_TASK);
    }
    return CADRE_OK;
}

cadre_status devices_of_count(const struct device_inventory *inventory,
    const struct device_host *host, uint32_t count, struct device_list *ret_list,
    struct cadre_error *error)
{
    *ret_list = (struct device_list){0};
    CADRE_TRY(check_count(count, error));
    if (inventory->gpus > 0 && count > inventory->gpus) {
        char gpus[32] = "is one GPU";
        if (inventory->gpus > 1) {
            snprintf(gpus, sizeof gpus, "are %u GPUs", inventory->gpus);
        }
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u replicas were requested, and there %s; request as many at most, or name the "
            "devices",
            count, gpus);
    }
    CADRE_TRY(device_list_make(count, ret_list, error));
    cadre_device_spec spec = spec_of(host);
    snprintf(spec.type, sizeof spec.type, "%s", inventory->gpus > 0 ? "GPU" : "CPU");
    for (uint32_t i = 0; i < count; i++) {
        spec.index = (int32_t)i;
        device_name_text(&spec, ret_list->names[i]);
    }
    return CADRE_OK;
}

static cadre_status check_device(const struct device_inventory *inventory,
    const struct device_host *host, const cadre_device_spec *spec, const char *name,
    struct cadre_error *error)
{
    if (strcmp(spec->job, host->job) != 0 || spec->task != host->task || spec->replica != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the device '%s' is of another task than this one, /job:%s/task:%d; a strategy for "
            "several is cadre_strategy_multi_worker_mirrored, with one process for each",
            name, host->job, host->task);
    }
    bool gpu = strcmp(spec->type, "GPU") == 0;
    if (!gpu && strcmp(spec->type, "CPU") != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the device '%s' is neither a CPU nor a GPU; name one as CPU:0 or GPU:0", name);
    }
    if (gpu && inventory->gpus == 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no device '%s'; %s; use CPU:0", name, device_absence_reason());
    }
    if (gpu && (uint32_t)spec->index >= inventory->gpus) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "there is no device '%s': this process can use %u GPU%s, from GPU:0 on; name one of "
            "them, or CPU:0",
            name, inventory->gpus, inventory->gpus == 1 ? "" : "s");
    }
    if (!gpu && spec->index >= LIMIT_REPLICAS_PER_TASK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the device '%s' is beyond CPU:%d, the last virtual one", name,
            LIMIT_REPLICAS_PER_TASK - 1);
    }
    return CADRE_OK;
}

/* Puts the name at index `at` into the list, which has those before it already. */
static cadre_status take_name(const struct device_inventory *inventory,
    const struct device_host *host, const char *name, struct device_list *list, uint32_t at,
    struct cadre_error *error)
{
    CADRE_ASSERT(at < list->count);
    if (name == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "device %u of the list is NULL; name it as CPU:0 or GPU:0", at);
    }
    cadre_device_spec spec;
    CADRE_TRY(device_name_parse(name, &spec, error));
    const cadre_device_spec here = spec_of(host);
    device_name_fill(&spec, &here);
    device_name_text(&spec, list->names[at]);
    CADRE_TRY(device_name_parse(list->names[at], &spec, error)); /* with all defaults */
    CADRE_TRY(check_device(inventory, host, &spec, list->names[at], error));
    for (uint32_t i = 0; i < at; i++) {
        if (strcmp(list->names[i], list->names[at]) == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the device '%s' is in the list twice, at %u and %u; each replica needs one of its "
                "own, as CPU:0, CPU:1",
                list->names[at], i, at);
        }
    }
    return CADRE_OK;
}

cadre_status devices_of_names(const struct device_inventory *inventory,
    const struct device_host *host, const char *function, const char *const names[], size_t count,
    struct device_list *ret_list, struct cadre_error *error)
{
    *ret_list = (struct device_list){0};
    if (count == 0 || names == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given an empty list of devices; name at least one, as CPU:0", function);
    }
    CADRE_TRY(check_count(count, error));
    CADRE_TRY(device_list_make((uint32_t)count, ret_list, error));
    for (uint32_t i = 0; i < ret_list->count; i++) {
        cadre_status status = take_name(inventory, host, names[i], ret_list, i, error);
        if (status != CADRE_OK) {
            device_list_clear(ret_list);
            return cadre_error_wrap(error, status, "%s", function);
        }
    }
    return CADRE_OK;
}

const char *devices_text(const struct device_list *list, char text[DEVICES_TEXT_BYTES])
{
    enum { MOST = 8 }; /* names of at most 8 bytes, as GPU:255 */
    uint32_t shown = list->count > MOST ? MOST : list->count;
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < shown; i++) {
        const char *device = strstr(list->pointers[i], "/device:");
        CADRE_ASSERT(device != NULL);
        used += (size_t)snprintf(text + used, DEVICES_TEXT_BYTES - used, "%s%s", i == 0 ? "" : ", ",
            device + strlen("/device:"));
        CADRE_ASSERT(used < DEVICES_TEXT_BYTES);
    }
    if (shown < list->count) {
        snprintf(text + used, DEVICES_TEXT_BYTES - used, " and %u others", list->count - shown);
    }
    return text;
}
