/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/variables/colocate.h"

#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/devices/devices_participant.h"
#include "worker/library/runtime/strategy/strategy.h"

#define COLOCATE_DEPTH_MAX 64

static _Thread_local struct {
    const cadre_variable *variables[COLOCATE_DEPTH_MAX];
    uint32_t depth;
} entered;

static cadre_status require_living(
    const cadre_variable *variable, const char *function, struct cadre_error *error)
{
    return variable_lives(variable)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s: the variable whose devices are to be shared is gone, with its strategy; "
                     "colocate with one that lives",
                     function);
}

cadre_status colocate_with(const struct variable_plan *plan, const cadre_variable **ret_variable,
    struct cadre_error *error)
{
    const cadre_variable *with = plan->options->colocate_with;
    if (with == NULL && entered.depth > 0) {
        with = entered.variables[entered.depth - 1];
    }
    *ret_variable = with;
    if (with == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(require_living(with, "cadre_variable_create", error));
    if (with->strategy != plan->strategy) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s' cannot share the devices of '%s', which is of another strategy; "
            "colocate with one of the same",
            plan->name, with->name);
    }
    return CADRE_OK;
}

/* --- public --- */

cadre_status cadre_colocate_enter(const cadre_variable *variable)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(variable, __func__, "variable", &error);
    if (status == CADRE_OK) {
        status = require_living(variable, __func__, &error);
    }
    if (status == CADRE_OK && entered.depth == COLOCATE_DEPTH_MAX) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "cadre_colocate_enter was called %d times without a leave; leave each once",
            COLOCATE_DEPTH_MAX);
    }
    if (status == CADRE_OK) {
        entered.variables[entered.depth++] = variable;
    }
    return border(status, &error);
}

cadre_status cadre_colocate_leave(void)
{
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    if (entered.depth == 0) {
        status = cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "cadre_colocate_leave was called without cadre_colocate_enter in this thread");
    } else {
        entered.depth--;
    }
    return border(status, &error);
}

/* A variable is where its replicas are; what is stored once is where parameters are. */
const char *cadre_variable_device(const cadre_variable *variable, uint32_t component)
{
    if (component >= cadre_variable_components(variable)) {
        return NULL;
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
