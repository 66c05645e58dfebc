/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes components, and commits or restores them at the end of a step. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/variables/caching_scope.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_list.h"
#include "worker/library/runtime/variables/variable_memory.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable_view.h"

/* --- reading --- */

/* A replica function or an update may use variables of its own strategy, and regular ones. */
static cadre_status check_strategy(const cadre_strategy *strategy, const cadre_variable *variable,
    const char *function, struct cadre_error *error)
{
    if (variable->strategy == strategy || variable->kind == CADRE_VARIABLE_REGULAR) {
        return CADRE_OK;
    }
    CADRE_TRY(variable_require_registered(variable, function, error));
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s: variable '%s' is of another strategy than the replica; use one of its own, or read it "
        "before the step",
        function, variable->name);
}

static cadre_status look_at_total(
    const cadre_variable *variable, const void **ret_value, struct cadre_error *error)
{
    *ret_value = variable->total.value;
    return variable->aggregation != CADRE_AGGREGATION_NONE
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "variable '%s' is of each replica its own (CADRE_SYNC_ON_READ without "
                     "aggregation), and cross-replica context has no one value of it; read it in a "
                     "replica function, or create it with an aggregation",
                     variable->name);
}

static cadre_status variable_write_look(const cadre_replica *replica,
    const cadre_variable *variable, struct variable_view *ret_view, struct cadre_error *error)
{
    uint32_t local = 0;
    ret_view->on_device = NULL;
    if (variable->kind == CADRE_VARIABLE_AGGREGATING &&
        (ret_view->value = caching_scope_read(variable)) != NULL) {
        return CADRE_OK;
    }
    if (variable->dtype == CADRE_STRING) {
        ret_view->value = cadre_tensor_const_data(variable->strings);
        return CADRE_OK;
    }
    bool own = replica != NULL || context_update(&local);
    if (!own && variable->on_read) {
        return look_at_total(variable, &ret_view->value, error);
    }
    if (!own) {
        ret_view->value = variable_host_value(variable, error);
        return ret_view->value != NULL ? CADRE_OK : error->code;
    }
    local = replica == NULL ? local : replica->local;
    const struct variable_component *component =
        &variable->components[variable->component_count == 1 ? 0 : local];
    ret_view->value = component->value;
    ret_view->on_device = component->device != NULL ? component : NULL;
    return CADRE_OK;
}

cadre_status variable_view_get(const cadre_replica *replica, const cadre_variable *variable,
    const char *function, struct variable_view *ret_view, struct cadre_error *error)
{
    replica = replica == NULL ? context_replica() : replica;
    const cadre_strategy *inside = replica != NULL ? replica->strategy : context_strategy();
    CADRE_TRY(argument_require(variable, function, "variable", error));
    if (replica == NULL) { /* in a step there are all of them */
        CADRE_TRY(variable_require_registered(variable, function, error));
    }
    CADRE_TRY(variable_require_local(variable, function, "cadre_variable_value", error));
    if (inside != NULL) {
        cadre_status status = check_strategy(inside, variable, function, error);
        if (status != CADRE_OK) {
            step_record_refusal(step_current_replica(), error);
            return status;
        }
    }
    return variable_write_look(replica, variable, ret_view, error);
}

const void *cadre_variable_read(const cadre_replica *replica, const cadre_variable *variable)
{
    struct cadre_error error = {0};
    struct variable_view view;
    cadre_status status = variable_view_get(replica, variable, __func__, &view, &error);
    api_return(status, &error);
    return status == CADRE_OK ? view.value : NULL;
}

/* --- writing --- */

cadre_status component_open_write(
    cadre_variable *variable, struct variable_component *component, struct cadre_error *error)
{
    CADRE_ASSERT(component->value != NULL);
    if (!component->written) {
        if (component->kept == NULL) {
            cadre_status status = value_new(variable, component->device, &component->kept, error);
            if (status != CADRE_OK) {
                return cadre_error_wrap(error, status,
                    "variable '%s': no memory to keep its value from before the step",
                    variable->name);
            }
        }
        CADRE_TRY(component_copy(variable, component, component->kept, component->value, error));
        component->written = true;
        component->undone = false;
    }
    return CADRE_OK;
}

cadre_status variable_open_write(
    cadre_variable *variable, uint32_t local, void **ret_value, struct cadre_error *error)
{
    struct variable_component *component = variable_component(variable, local);
    cadre_status status = component_open_write(variable, component, error);
    *ret_value = status == CADRE_OK ? component->value : NULL;
    return status;
}

void variable_set_strings(cadre_variable *variable, cadre_tensor *strings)
{
    CADRE_ASSERT(variable->dtype == CADRE_STRING);
    CADRE_ASSERT(strings != NULL);
    if (variable->strings_kept == NULL) {
        variable->strings_kept = variable->strings;
    } else {
        cadre_tensor_release(variable->strings);
    }
    variable->strings = strings;
}

/* In a function that cadre_on_apply calls: nothing that is written is undone. */
static bool is_applying(const cadre_replica *replica)
{
    return replica != NULL && replica->apply.running;
}

/* Whether the thread may write through a pointer, and to the component of which local replica. */
static cadre_status check_write(const cadre_replica *replica, const cadre_variable *variable,
    uint32_t *ret_local, struct cadre_error *error)
{
    bool updates = replica == NULL && context_update(ret_local);
    bool applies = is_applying(replica);
    if (!updates && !applies && (replica == NULL || !replica->active)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' was opened for writing outside of a replica function; use "
            "cadre_variable_assign there",
            variable->name);
    }
    CADRE_TRY(check_strategy(
        updates ? context_strategy() : replica->strategy, variable, "cadre_variable_write", error));
    if (variable->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' holds strings, which are assigned between steps only; use "
            "cadre_variable_assign in cross-replica context",
            variable->name);
    }
    if (!updates && variable->kind == CADRE_VARIABLE_AGGREGATING &&
        replica->strategy->replica_count > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' has one component that the replicas share, and cannot be written by "
            "each of them; use cadre_variable_assign, which combines what they assign",
            variable->name);
    }
    if (applies && variable->on_read) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' is combined when read, and cannot be written by what cadre_on_apply "
            "calls, when its total has been made; write it in the replica function",
            variable->name);
    }
    *ret_local = updates ? *ret_local : replica->local;
    return CADRE_OK;
}

void *cadre_variable_write(cadre_replica *replica, cadre_variable *variable)
{
    struct cadre_error error = {0};
    void *value = NULL;
    uint32_t local = 0;
    cadre_status status = argument_require(variable, __func__, "variable", &error);
    if (status == CADRE_OK) {
        status = variable_require_local(variable, __func__,
            "cadre_variable_assign, cadre_variable_scatter or cadre_variable_push", &error);
    }
    if (status == CADRE_OK && variable->kind == CADRE_VARIABLE_REGULAR &&
        variable->dtype != CADRE_STRING) {
        return variable->components[0].value;
    }
    if (status == CADRE_OK) {
        status = check_write(replica, variable, &local, &error);
    }
    if (status == CADRE_OK && is_applying(replica)) {
        struct variable_component *component = variable_component(variable, local);
        variable_mark_written(variable);
        component->writes++; /* because the function may write through the pointer until it
                              * returns */
        value = component->value;
    } else if (status == CADRE_OK) {
        status = variable_open_write(variable, local, &value, &error);
    } else if (variable != NULL) {
        step_record_refusal(replica != NULL ? replica : step_current_replica(), &error);
    }
    api_return(status, &error);
    return value;
}

/* Pointers to values stay valid, so the bytes are swapped. */
static void swap_bytes(char *a, char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char of_a = a[i];
        a[i] = b[i];
        b[i] = of_a;
    }
}

/* When a device cannot take the old value back the replicas differ: the strategy ends. */
static void put_back(const cadre_variable *variable, const struct variable_component *component)
{
    CADRE_ASSERT(component->kept != NULL);
    struct cadre_error error = {0};
    cadre_status status =
        component_copy(variable, component, component->value, component->kept, &error);
    if (status != CADRE_OK && variable->strategy->failed.code == CADRE_OK) {
        cadre_error_wrap(&error, status, "the value from before the step cannot be put back");
        strategy_set_failed(variable->strategy, &error);
    }
}

static void end_component(
    const cadre_variable *variable, struct variable_component *component, bool restore)
{
    CADRE_ASSERT(!component->written || component->kept != NULL);
    if (component->written && restore && variable->on_read) {
        swap_bytes(component->value, component->kept, variable->bytes);
    } else if (component->written && restore) {
        put_back(variable, component);
    } else if (component->written) {
        variable_mark_written(variable);
    }
    component->undone = restore && (component->undone || (component->written && variable->on_read));
    component->writes += component->written ? 1 : 0;
    component->written = false;
    component->settled = false;
    component->rebased = false;
}

static void end_strings(cadre_variable *variable, bool restore)
{
    if (variable->strings_kept == NULL) {
        return;
    }
    cadre_tensor *dropped = restore ? variable->strings : variable->strings_kept;
    variable->strings = restore ? variable->strings_kept : variable->strings;
    variable->strings_kept = NULL;
    cadre_tensor_release(dropped);
}

static void end_step(cadre_strategy *strategy, bool restore)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        for (uint32_t local = 0; local < variable->component_count; local++) {
            end_component(variable, &variable->components[local], restore);
        }
        end_component(variable, &variable->total, restore);
        end_strings(variable, restore);
    }
    variables_end_fresh(strategy, restore);
}

void variables_commit(cadre_strategy *strategy)
{
    end_step(strategy, false);
}

void variables_restore(cadre_strategy *strategy)
{
    end_step(strategy, true);
    caching_scope_forget_step(strategy);
}
