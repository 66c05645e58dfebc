/* SPDX-License-Identifier: Apache-2.0
 * The slots of a variable: which variables can be updated, making slots, looking them up. Called by
 * optimizer.c, gradients.c and apply.c. */
#include <stdio.h>
#include <string.h>

#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/optimizers/optimizer.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"

#define UPDATES "updates"

cadre_status optimizer_variable_create(const cadre_optimizer *optimizer,
    const struct optimizer_variable *what, const char *function, cadre_variable **ret_variable,
    struct cadre_error *error)
{
    const cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = what->initial},
        .colocate_with = what->beside,
        .keep_on_host = what->beside == NULL || what->beside->keep_on_host,
        .placement = CADRE_PLACEMENT_REPLICAS};
    const struct variable_plan plan = {.strategy = optimizer->strategy,
        .name = what->name,
        .dtype = what->dtype,
        .rank = what->rank,
        .dims = what->dims,
        .options = &options,
        .may_lack = what->may_lack,
        .counts = what->counts,
        .slot = what->slot};
    return variable_create(&plan, function, ret_variable, error);
}

/* --- which variables can be updated --- */

cadre_status optimizer_check_variable(const cadre_optimizer *optimizer,
    const cadre_variable *variable, size_t index, const char *function, struct cadre_error *error)
{
    if (variable == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given no variable at index %zu; give a list without gaps", function, index);
    }
    CADRE_TRY(variable_require_registered(variable, function, error));
    /* A variable on servers belongs to the chief's strategy, and is looked up in closures, whose
     * strategy is the worker's. */
    bool found = variable->served != NULL &&
                 (optimizer->strategy == NULL || optimizer->strategy->worker != NULL);
    if (!found && variable->strategy != optimizer->strategy) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' is %s, and optimizer '%s' is %s; create both in one scope", function,
            variable->name, variable->strategy == NULL ? "regular" : "of a strategy",
            optimizer->name,
            optimizer->strategy == NULL  ? "for regular variables"
            : variable->strategy == NULL ? "of a strategy"
                                         : "of another strategy");
    }
    if (variable->dtype != CADRE_F32 && variable->dtype != CADRE_F64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' is %s, and optimizers need f32 or f64; leave it out, and assign it",
            function, variable->name, cadre_dtype_name(variable->dtype));
    }
    if (variable->on_read) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: variable '%s' is combined when read, and each replica has its own; create it "
            "with CADRE_SYNC_AUTO",
            function, variable->name);
    }
    return CADRE_OK;
}

/* --- making them --- */

static cadre_status slot_make(const cadre_optimizer *optimizer, const cadre_variable *variable,
    uint32_t slot, const char *function, cadre_variable **ret_slot, struct cadre_error *error)
{
    char name[LIMIT_NAME_BYTES + 24];
    snprintf(
        name, sizeof name, "%s/%s", variable->name, optimizer_slot_name(&optimizer->rule, slot));
    const struct optimizer_variable what = {.name = name,
        .dtype = variable->dtype,
        .rank = variable->rank,
        .dims = variable->dims,
        .initial = optimizer_slot_initial(&optimizer->rule, slot),
        .beside = variable,
        .slot = true};
    return optimizer_variable_create(optimizer, &what, function, ret_slot, error);
}

static cadre_status updates_make(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *function, cadre_variable **ret_updates, struct cadre_error *error)
{
    static const int64_t dims[1] = {1};
    char name[LIMIT_NAME_BYTES + 24];
    snprintf(name, sizeof name, "%s/" UPDATES, variable->name);
    const struct optimizer_variable what = {.name = name,
        .dtype = CADRE_I64,
        .rank = 1,
        .dims = dims,
        .may_lack = !optimizer_counts(&optimizer->rule),
        .counts = true,
        .slot = true};
    return optimizer_variable_create(optimizer, &what, function, ret_updates, error);
}

static cadre_status make_on_replica(const cadre_optimizer *optimizer, struct optimized *made,
    const char *function, struct cadre_error *error)
{
    for (uint32_t slot = 0; slot < optimizer_slots(&optimizer->rule); slot++) {
        CADRE_TRY(slot_make(optimizer, made->variable, slot, function, &made->slots[slot], error));
    }
    return updates_make(optimizer, made->variable, function, &made->updates, error);
}

cadre_status optimizer_slots_make(cadre_optimizer *optimizer, cadre_variable *variable,
    const char *function, struct cadre_error *error)
{
    bool put = false;
    struct optimized made = {.variable = variable};
    CADRE_TRY(optimizer_list_room(optimizer, 1, error));
    if (variable->served != NULL) {
        CADRE_TRY(remote_variable_ops()->train(variable, &optimizer->rule, error));
        return optimizer_put(optimizer, &made, &put, error);
    }
    made.attempt = optimizer_attempt(optimizer);
    made.position = made.attempt == 0 ? 0 : strategy_position(optimizer->strategy);
    cadre_status status = make_on_replica(optimizer, &made, function, error);
    if (status == CADRE_OK) {
        status = optimizer_put(optimizer, &made, &put, error);
    }
    if (!put) {
        optimized_release(optimizer, &made);
    }
    return status;
}

/* --- finding them --- */

/* Of a variable on servers it is looked up there. */
static cadre_status slot_give(const struct optimized *of, cadre_variable *slot, const char *name,
    cadre_variable **ret_slot, struct cadre_error *error)
{
    *ret_slot = slot;
    return of->variable->served == NULL
               ? CADRE_OK
               : remote_variable_ops()->slot(of->variable, name, ret_slot, error);
}

cadre_status optimizer_slot_find(const cadre_optimizer *optimizer, const cadre_variable *variable,
    const char *name, cadre_variable **ret_slot, struct cadre_error *error)
{
    char names[128] = "";
    const struct optimized *of =
        optimizer_find(optimizer, variable, 0, optimizer_attempt(optimizer));
    if (of == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "optimizer '%s' has no slots of that variable; apply a gradient to it first, or give "
            "it to "
            "cadre_optimizer_build",
            optimizer->name);
    }
    for (uint32_t i = 0; i < optimizer_slots(&optimizer->rule); i++) {
        const char *one = optimizer_slot_name(&optimizer->rule, i);
        if (strcmp(name, one) == 0) {
            return slot_give(of, of->slots[i], name, ret_slot, error);
        }
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "'%s', ", one);
    }
    if (strcmp(name, UPDATES) == 0) {
        return slot_give(of, of->updates, name, ret_slot, error);
    }
    return cadre_error_set(error, CADRE_NOT_FOUND,
        "optimizer '%s' has no slot '%.48s' of variable '%s'; there %s %s'" UPDATES "'",
        optimizer->name, name, of->variable->name, names[0] == '\0' ? "is" : "are", names);
}
