/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/reductions/destinations.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/local_device.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/variable.h"

static bool has_device(const cadre_strategy *strategy, const char *name)
{
    bool has = false;
    for (uint32_t i = 0; i < strategy->devices.count && !has; i++) {
        has = strcmp(strategy->devices.pointers[i], name) == 0;
    }
    return has;
}

/* The canonical name of a device of this task: one of the replicas', or its processor. */
static cadre_status name_device(const cadre_strategy *strategy, const char *device,
    char name[CADRE_DEVICE_NAME_BYTES], struct cadre_error *error)
{
    cadre_device_spec spec;
    cadre_device_spec own;
    CADRE_TRY(argument_require(device, "cadre_reduce_to", "destinations", error));
    CADRE_TRY(device_name_parse(device, &spec, error));
    CADRE_TRY(device_name_parse(strategy->devices.pointers[0], &own, error));
    own.index = 0;
    bool typed = spec.type[0] != '\0';
    device_name_fill(&spec, &own);
    device_name_text(&spec, name);
    bool processor = strcmp(spec.type, "CPU") == 0 && spec.index == 0 && spec.task == own.task &&
                     strcmp(spec.job, own.job) == 0;
    if (!has_device(strategy, name) && !processor) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "device %s%s%s is none of this task's; the first that it has is %s", device,
            typed ? "" : ", which is ", typed ? "" : name, strategy->devices.pointers[0]);
    }
    return CADRE_OK;
}

cadre_status destinations_count(const cadre_strategy *strategy,
    const cadre_destinations *destinations, uint32_t *ret_targets, struct cadre_error *error)
{
    const cadre_destinations everywhere = {0};
    destinations = destinations == NULL ? &everywhere : destinations;
    *ret_targets = strategy->local_replicas;
    if (destinations->variable != NULL && destinations->device_count > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a variable and %u devices were given as destinations; give one of the two",
            destinations->device_count);
    }
    if (destinations->variable != NULL) {
        if (!variable_is_registered(destinations->variable)) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "the variable that was given as a destination has ended with its strategy; give "
                "one "
                "that lives");
        }
        CADRE_TRY(variable_require_local(destinations->variable, "cadre_destinations",
            "the names of devices as destinations", error));
        if (destinations->variable->strategy != strategy) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "variable '%s' is of another strategy; name a destination of this one",
                destinations->variable->name);
        }
        *ret_targets = destinations->variable->component_count;
    } else if (destinations->device_count > 0) {
        CADRE_TRY(
            argument_require(destinations->devices, "cadre_reduce_to", "destinations", error));
        for (uint32_t i = 0; i < destinations->device_count; i++) {
            char name[CADRE_DEVICE_NAME_BYTES];
            CADRE_TRY(name_device(strategy, destinations->devices[i], name, error));
        }
        *ret_targets = destinations->device_count;
    }
    *ret_targets = *ret_targets == 0 ? 1 : *ret_targets;
    return CADRE_OK;
}

/* The canonical name of one destination; they were counted. */
static cadre_status name_destination(const cadre_strategy *strategy,
    const cadre_destinations *destinations, uint32_t target, char name[CADRE_DEVICE_NAME_BYTES],
    struct cadre_error *error)
{
    if (destinations->device_count > 0) {
        return name_device(strategy, destinations->devices[target], name, error);
    }
    const char *device = destinations->variable != NULL
                             ? cadre_variable_device(destinations->variable, target)
                             : strategy->devices.pointers[target];
    CADRE_ASSERT(device != NULL);
    snprintf(name, CADRE_DEVICE_NAME_BYTES, "%s", device);
    return CADRE_OK;
}

cadre_status destinations_list(const cadre_strategy *strategy,
    const cadre_destinations *destinations, struct device_list *ret_list, struct cadre_error *error)
{
    const cadre_destinations everywhere = {0};
    uint32_t targets = 0;
    *ret_list = (struct device_list){0};
    CADRE_TRY(destinations_count(strategy, destinations, &targets, error));
    CADRE_TRY(device_list_make(targets, ret_list, error));
    for (uint32_t i = 0; i < targets; i++) {
        cadre_status status = name_destination(strategy,
            destinations == NULL ? &everywhere : destinations, i, ret_list->names[i], error);
        if (status != CADRE_OK) {
            device_list_clear(ret_list);
            return status;
        }
    }
    return CADRE_OK;
}

bool destinations_are(const cadre_strategy *strategy, const cadre_destinations *destinations)
{
    struct cadre_error ignored;
    uint32_t targets = 0;
    char name[CADRE_DEVICE_NAME_BYTES];
    const cadre_destinations everywhere = {0};
    return destinations_count(strategy, destinations, &targets, &ignored) == CADRE_OK &&
           targets == 1 &&
           name_destination(strategy, destinations == NULL ? &everywhere : destinations, 0, name,
               &ignored) == CADRE_OK &&
           strcmp(name, strategy->devices.pointers[0]) == 0;
}

cadre_status destinations_fill(uint32_t targets, uint32_t components, cadre_tensor *tensors[],
    cadre_per_replica **ret_value, struct cadre_error *error)
{
    *ret_value = per_replica_new(targets, components);
    for (uint32_t c = 0; c < components; c++) {
        for (uint32_t i = 0; *ret_value != NULL && i < targets; i++) {
            *per_replica_at(*ret_value, c, i) = cadre_tensor_retain(tensors[c]);
        }
        cadre_tensor_release(tensors[c]);
        tensors[c] = NULL;
    }
    if (*ret_value != NULL) {
        per_replica_show(*ret_value);
    }
    return *ret_value != NULL
               ? CADRE_OK
               : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a value");
}
