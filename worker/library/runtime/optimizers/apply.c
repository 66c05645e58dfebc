/* SPDX-License-Identifier: Apache-2.0
 * cadre_optimizer_apply, in each context: a replica function, an update, regular variables. */
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/optimizers/gradients.h"
#include "worker/library/runtime/optimizers/push_gradients.h"
#include "worker/library/runtime/optimizers/update_component.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_plain.h"

static const char function[] = "cadre_optimizer_apply";

/* --- in a replica function --- */

static cadre_status optimizer_prepare(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct pending_update *turn, struct cadre_error *error)
{
    bool reduced = options->gradients == CADRE_GRADIENTS_REDUCED;
    if (replica->strategy->worker == NULL) { /* a closure creates no variables */
        CADRE_TRY(gradients_build(optimizer, gradients, error));
    }
    CADRE_TRY(gradients_list(optimizer, gradients, turn, error));
    CADRE_TRY(gradients_reduce(reduced ? NULL : replica, gradients, options, turn, error));
    CADRE_TRY(gradients_clip(optimizer, turn, error));
    return gradients_move(turn, replica->local, error);
}

static cadre_status apply_in_replica(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct cadre_error *error)
{
    struct pending_update *turn = NULL;
    CADRE_TRY(step_require_own_thread(replica, function, error));
    if (replica->strategy != optimizer->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: optimizer '%s' is of another strategy than the replica; use one of its own",
            function, optimizer->name);
    }
    CADRE_TRY(pending_update_acquire(replica, optimizer, gradients->count, &turn, error));
    cadre_status status = optimizer_prepare(replica, optimizer, gradients, options, turn, error);
    if (status != CADRE_OK) {
        pending_update_release(turn);
        return status;
    }
    pending_update_schedule(replica, turn);
    return CADRE_OK;
}

/* --- at once --- */

/* Updates one local component of each variable, by gradients that are reduced. `keep`: old values
 * are kept, because the update may be undone. */
static cadre_status apply_now(cadre_optimizer *optimizer, const struct gradients *gradients,
    uint32_t local, bool keep, struct cadre_error *error)
{
    static const cadre_apply_options reduced = {.gradients = CADRE_GRADIENTS_REDUCED};
    struct pending_update turn = {.optimizer = optimizer};
    CADRE_TRY(pending_update_open(&turn, gradients->count, error));
    cadre_status status = gradients_list(optimizer, gradients, &turn, error);
    if (status == CADRE_OK) {
        status = gradients_reduce(NULL, gradients, &reduced, &turn, error);
    }
    if (status == CADRE_OK) {
        status = gradients_clip(optimizer, &turn, error);
    }
    if (status == CADRE_OK) {
        status = gradients_move(&turn, local, error);
    }
    for (size_t i = 0; keep && status == CADRE_OK && i < turn.count; i++) {
        status = update_save_old(turn.variables[i].of, local, error);
    }
    for (size_t i = 0; status == CADRE_OK && i < turn.count; i++) {
        status = update_component(optimizer, &turn.variables[i], local, error);
    }
    pending_update_close(&turn);
    return status;
}

static cadre_status apply_plain(
    cadre_optimizer *optimizer, const struct gradients *gradients, struct cadre_error *error)
{
    for (size_t i = 0; i < gradients->count; i++) { /* only the program releases them */
        CADRE_TRY(variable_require_registered(gradients->variables[i], function, error));
    }
    if (context_replica() == NULL && !context_update(&(uint32_t){0})) {
        CADRE_TRY(gradients_build(optimizer, gradients, error));
    }
    plain_lock();
    cadre_status status = apply_now(optimizer, gradients, 0, false, error);
    plain_close();
    return status;
}

static cadre_status apply_in_update(cadre_optimizer *optimizer, const struct gradients *gradients,
    const cadre_apply_options *options, uint32_t local, struct cadre_error *error)
{
    if (context_strategy() != optimizer->strategy) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s: optimizer '%s' is of another strategy than the update; use one of its own",
            function, optimizer->name);
    }
    if (options->gradients != CADRE_GRADIENTS_REDUCED) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in an update, where there is one replica, and nothing can be reduced; "
            "give CADRE_GRADIENTS_REDUCED, or call it in the replica function",
            function);
    }
    return apply_now(optimizer, gradients, local, true, error);
}

/* --- the call --- */

static cadre_status optimizers_apply_apply(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct cadre_error *error)
{
    uint32_t local = 0;
    CADRE_TRY(optimizer_require(optimizer, function, error));
    if (gradients->count > 0) {
        CADRE_TRY(argument_require(gradients->variables, function, "variables", error));
    }
    if ((unsigned)options->gradients > CADRE_GRADIENTS_REDUCED) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no way to reduce gradients; use one of cadre_gradients",
            (int)options->gradients);
    }
    bool served = false;
    CADRE_TRY(gradients_are_served(gradients, &served, error));
    if (served) {
        return push_gradients(
            replica == NULL ? context_replica() : replica, optimizer, gradients, options, error);
    }
    if (optimizer->strategy == NULL) {
        return apply_plain(optimizer, gradients, error);
    }
    replica = replica == NULL ? context_replica() : replica;
    if (replica != NULL) {
        return apply_in_replica(replica, optimizer, gradients, options, error);
    }
    if (context_update(&local)) {
        return apply_in_update(optimizer, gradients, options, local, error);
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "%s was called in cross-replica context, where there is no replica whose gradients these "
        "are; call it in the function given to cadre_run, or to cadre_variable_update",
        function);
}

cadre_status cadre_optimizer_apply(cadre_replica *replica, cadre_optimizer *optimizer,
    cadre_tensor *const gradients[], cadre_variable *const variables[], size_t count,
    const cadre_apply_options *options)
{
    static const cadre_apply_options defaults = {0};
    struct cadre_error error;
    options = options == NULL ? &defaults : options;
    const struct gradients given = {
        .dense = gradients, .sparse = options->sparse, .variables = variables, .count = count};
    cadre_status status = optimizers_apply_apply(replica, optimizer, &given, options, &error);
    if (status != CADRE_OK) {
        step_record_refusal(replica != NULL ? replica : step_current_replica(), &error);
    }
    return api_return(status, &error);
}
