/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/reductions/destinations.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device_name.h"
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

/* A device of this task: one of the replicas', or its processor. */
static cadre_status check_device(
    const cadre_strategy *strategy, const char *device, struct cadre_error *error)
{
    cadre_device_spec spec;
    cadre_device_spec own;
    char name[CADRE_DEVICE_NAME_BYTES];
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
    const cadre_destinations *destinations, uint32_t *ret_places, struct cadre_error *error)
{
    const cadre_destinations everywhere = {0};
    destinations = destinations == NULL ? &everywhere : destinations;
    *ret_places = strategy->local_replicas;
    if (destinations->variable != NULL && destinations->device_count > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a variable and %u devices were given as destinations; give one of the two",
            destinations->device_count);
    }
    if (destinations->variable != NULL) {
        if (!variable_lives(destinations->variable)) {
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "the variable that was given as a destination is gone, with its strategy; give one "
                "that lives");
        }
        if (destinations->variable->strategy != strategy) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "variable '%s' is of another strategy; name a destination of this one",
                destinations->variable->name);
        }
        *ret_places = destinations->variable->component_count;
    } else if (destinations->device_count > 0) {
        CADRE_TRY(
            argument_require(destinations->devices, "cadre_reduce_to", "destinations", error));
        for (uint32_t i = 0; i < destinations->device_count; i++) {
            CADRE_TRY(check_device(strategy, destinations->devices[i], error));
        }
        *ret_places = destinations->device_count;
    }
    *ret_places = *ret_places == 0 ? 1 : *ret_places;
    return CADRE_OK;
}

cadre_status destinations_place(uint32_t places, uint32_t components, cadre_tensor *tensors[],
    cadre_per_replica **ret_value, struct cadre_error *error)
{
    *ret_value = per_replica_new(places, components);
    for (uint32_t c = 0; c < components; c++) {
        for (uint32_t i = 0; *ret_value != NULL && i < places; i++) {
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
