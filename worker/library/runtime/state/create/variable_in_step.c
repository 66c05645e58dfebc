/* SPDX-License-Identifier: Apache-2.0
 * A variable that a step creates: made by local replica 0, agreed on and shared in two collectives.
 * variable_create_late.c calls it, state_hooks.c at the end of the step. */
#include "worker/library/runtime/state/create/variable_create.h"

#include <stdlib.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/restore/initial_value.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_list.h"

void variable_in_step_end(struct variable_in_step *in_step)
{
    cadre_tensor_release(in_step->value.strings);
    if (in_step->staged) {
        free(in_step->values);
    }
    *in_step = (struct variable_in_step){0};
}

/* --- before they meet: local replica 0 --- */

static cadre_status variable_in_step_evaluate(
    struct variable_in_step *in_step, cadre_variable *variable, struct cadre_error *error)
{
    CADRE_TRY(initial_value_find(variable, &in_step->value, error));
    if (variable->component_count > 0) {
        CADRE_TRY(
            component_edit_begin(variable, &variable->components[0], &in_step->values, error));
        in_step->staged = variable->components[0].device != NULL;
    }
    if (initial_value_evaluate(variable, &in_step->value, in_step->values) != CADRE_OK) {
        *error = in_step->value.own;
    }
    return in_step->value.own.code;
}

/* The initializer may be a function of the program: no collectives meanwhile. */
static cadre_status variable_in_step_make(cadre_replica *replica, const struct variable_plan *plan,
    bool in_function, struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct variable_in_step *in_step = &strategy->state_part->in_step;
    cadre_variable *variable = NULL;
    variable_in_step_end(in_step);
    in_step->value.initializer = &plan->options->initializer;
    in_step->value.may_lack = plan->may_lack;
    CADRE_TRY(variables_room(strategy, error));
    CADRE_TRY(variable_new(plan, &variable, error));
    variable_mark_fresh(strategy, variable);
    variable->origin.late = true;
    variable->origin.in_function = in_function;
    in_step->variable = variable;
    if (strategy->roster.rank != 0) {
        return CADRE_OK;
    }
    replica->active = false;
    cadre_status status = variable_in_step_evaluate(in_step, variable, error);
    replica->active = true;
    return status;
}

/* --- they meet --- */

/* A task could not create it: all receive the reason. */
static cadre_status share_reason(
    cadre_replica *replica, const struct cadre_error *own, struct cadre_error *error)
{
    struct cadre_error theirs = {0};
    CADRE_TRY(collective_share_first_error(replica->strategy, replica->local, own, &theirs, error));
    if (own->code != CADRE_OK) {
        *error = *own;
    } else if (replica->local == 0) {
        *error = theirs;
    } else {
        cadre_error_set(error, CADRE_ABORTED, "the first replica of this task has the reason");
    }
    return error->code;
}

static cadre_status share_values(cadre_replica *replica, const struct step_call *call,
    cadre_variable *variable, struct cadre_error *error)
{
    struct variable_in_step *in_step = &replica->strategy->state_part->in_step;
    struct mesh *mesh = replica->strategy->mesh;
    struct variable_component *component = variable_component(variable, replica->local);
    bool chief = replica->id == 0;
    struct step_note note;
    void *values = chief ? in_step->values : NULL;
    if (!chief) {
        CADRE_TRY(component_edit_begin(variable, component, &values, error));
    }
    cadre_status status = collective_enter(replica, call, &note, error);
    if (status == CADRE_OK) {
        struct mesh_buffer value = {.data = values, .bytes = variable->bytes, .dtype = MESH_U8};
        status = collective_explain(
            mesh->ops->broadcast(mesh, replica->local, 0, &value, 1, &note.mesh, error), error);
        step_collective_end(replica, status, error);
    }
    if (chief) { /* its end frees them */
        in_step->staged = false;
        in_step->values = NULL;
    }
    return component_edit_end(variable, component, values, status, error);
}

/* A collective also without a value to share, so that the variable is in the list on all. */
static cadre_status variable_in_step_share(cadre_replica *replica, const struct step_call *call,
    cadre_variable *variable, bool restored, struct cadre_error *error)
{
    const struct variable_in_step *in_step = &replica->strategy->state_part->in_step;
    if (initial_value_is_shared(variable)) {
        return share_values(replica, call, variable, error);
    }
    if (restored && variable->dtype == CADRE_STRING) {
        CADRE_TRY(restore_share_strings(
            replica->strategy, replica->local, variable, in_step->value.strings, error));
    }
    return collective_meet_in_step(replica, call, NULL, 0, error);
}

/* With the value that all have. */
static void variable_in_step_begin(
    const cadre_replica *replica, cadre_variable *variable, bool restored)
{
    if (!variable->on_read) {
        return;
    }
    if (replica->local == 0) {
        on_read_begin(variable, restored ? 1 : replica->strategy->replica_count);
    }
    if (restored) {
        on_read_take_part(variable, variable->components[replica->local].value, replica->id);
    }
}

static cadre_status variable_in_step_attend(cadre_replica *replica,
    const struct variable_plan *plan, bool in_function, cadre_variable **ret_variable,
    struct cadre_error *error)
{
    cadre_strategy *strategy = replica->strategy;
    struct variable_in_step *in_step = &strategy->state_part->in_step;
    struct cadre_error own = {0};
    char text[STRATEGY_CALL_TEXT_BYTES];
    const struct step_call call = {
        .function = creation_text(plan, 0, text), .key = creation_key(plan), .root = -1};
    cadre_status made =
        replica->local == 0 ? variable_in_step_make(replica, plan, in_function, &own) : CADRE_OK;
    int64_t failures = made != CADRE_OK ? 1 : 0;
    int64_t restored = replica->id == 0 && in_step->value.restored ? 1 : 0;
    const struct mesh_buffer sums[] = {
        {.data = &failures, .bytes = sizeof failures, .dtype = MESH_I64},
        {.data = &restored, .bytes = sizeof restored, .dtype = MESH_I64},
    };
    CADRE_TRY(collective_meet_in_step(replica, &call, sums, 2, error));
    if (failures != 0) {
        return share_reason(replica, &own, error);
    }
    cadre_variable *variable = in_step->variable;
    if (replica->local == 0) {
        variables_put(strategy, variable);
    }
    CADRE_TRY(variable_in_step_share(replica, &call, variable, restored != 0, error));
    variable_in_step_begin(replica, variable, restored != 0);
    *ret_variable = variable;
    return CADRE_OK;
}

cadre_status variable_in_step_create(cadre_replica *replica, const struct variable_plan *plan,
    bool in_function, cadre_variable **ret_variable, struct cadre_error *error)
{
    CADRE_ASSERT(replica->active);
    if (replica->collective_failed.code != CADRE_OK) { /* others may be in another creation still */
        *error = replica->collective_failed;
        return error->code;
    }
    cadre_status status = variable_in_step_attend(replica, plan, in_function, ret_variable, error);
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}
