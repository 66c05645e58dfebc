/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/create/variable_create.h"

#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/state/create/variable_name.h"
#include "worker/library/runtime/variables/change.h"

/* --- between steps --- */

static cadre_status create_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    cadre_variable *variable = NULL;
    struct cadre_error error = {0};
    cadre_status status = variable_in_step_create(replica, user, false, &variable, &error);
    return api_return(status, &error);
}

static cadre_status create_in_a_step(const struct variable_plan *plan, struct cadre_error *error)
{
    struct variable_plan own = *plan;
    struct cadre_error cause = {0};
    cadre_status status = change_run_step(plan->strategy, create_step, &own, 0, NULL, &cause);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_set(error, status,
                                    "cadre_variable_create: variable '%s' was not created: %s",
                                    plan->name, cause.text);
}

cadre_status variable_create_late(const struct variable_plan *plan, cadre_variable *existing,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    cadre_strategy *strategy = plan->strategy;
    cadre_variable *variable = existing;
    if (existing != NULL) {
        CADRE_TRY(creation_fits(plan, existing, error));
    } else {
        CADRE_TRY(create_in_a_step(plan, error)); /* here, or at the source of the state */
        variable = variable_lookup(strategy, plan->name);
    }
    if (variable == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_variable_create: variable '%s' was not created by the other tasks, which had "
            "done another step here; all tasks must make the same calls in the same order",
            plan->name);
    }
    variable->origin.handed = true;
    strategy->variables->created++;
    *ret_variable = variable;
    return CADRE_OK;
}

/* --- in a replica function --- */

/* A slot of a checkpoint, that its program made between steps; or of parameter servers. */
static cadre_variable *slot_of_the_job(const struct variable_plan *plan)
{
    cadre_variable *there = plan->slot ? variable_lookup(plan->strategy, plan->name) : NULL;
    bool came = there != NULL && !there->origin.in_function && !there->origin.handed;
    return came ? there : NULL;
}

cadre_status variable_create_in_function(cadre_replica *replica, const struct variable_plan *plan,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    struct variable_plan named = *plan;
    char name[LIMIT_NAME_BYTES];
    cadre_variable *existing = slot_of_the_job(plan);
    if (existing != NULL) {
        CADRE_TRY(creation_fits(plan, existing, error));
        *ret_variable = existing;
        return CADRE_OK;
    }
    CADRE_TRY(variable_name_in_function(replica, plan->name, name, &existing, error));
    named.name = name;
    if (existing != NULL) {
        CADRE_TRY(creation_fits(&named, existing, error));
        *ret_variable = existing;
        return CADRE_OK;
    }
    return variable_in_step_create(replica, &named, true, ret_variable, error);
}
