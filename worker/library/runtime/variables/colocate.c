/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/colocate.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"

cadre_status colocate_with(const struct variable_plan *plan, const cadre_variable **ret_variable,
    struct cadre_error *error)
{
    const cadre_variable *with = plan->options->colocate_with;
    *ret_variable = with;
    if (with == NULL) {
        return CADRE_OK;
    }
    if (!variable_is_registered(with)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' cannot share the devices of one whose strategy has ended; "
            "colocate with one that exists",
            plan->name);
    }
    if (with->strategy != plan->strategy) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' cannot share the devices of '%s', which is of another strategy; "
            "colocate with one of the same",
            plan->name, with->name);
    }
    return CADRE_OK;
}

/* --- public --- */

/* A variable is on its replicas' devices; a value that is stored once is on the parameter
 * device. */
const char *cadre_variable_device(const cadre_variable *variable, uint32_t component)
{
    if (component >= cadre_variable_components(variable)) {
        return NULL;
    }
    if (variable->served != NULL) {
        return remote_variable_ops()->shard(variable, component).device;
    }
    if (variable->kind == CADRE_VARIABLE_REGULAR) {
        return "/job:localhost/replica:0/task:0/device:CPU:0";
    }
    const cadre_strategy *strategy = variable->strategy;
    const struct device_list *list =
        variable->kind == CADRE_VARIABLE_AGGREGATING ? &strategy->parameter : &strategy->devices;
    CADRE_ASSERT(component < list->count);
    const char *name = list->pointers[component];
    bool on_host =
        variable->dtype == CADRE_STRING || variable->components[component].device == NULL;
    return on_host && strstr(name, "GPU") != NULL ? strategy->devices_part->host_name : name;
}
