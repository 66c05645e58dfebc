/* SPDX-License-Identifier: Apache-2.0
 * See push_gradients.h. */
#include "worker/library/runtime/optimizers/push_gradients.h"

#include "worker/library/device/device.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/remote_variable.h"

cadre_status gradients_are_served(
    const struct gradients *gradients, bool *ret_served, struct cadre_error *error)
{
    size_t served = 0;
    for (size_t i = 0; i < gradients->count; i++) {
        const cadre_variable *variable = gradients->variables[i];
        served += variable != NULL && variable_is_registered(variable) && variable->served != NULL;
    }
    *ret_served = served > 0;
    return served == 0 || served == gradients->count
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "cadre_optimizer_apply was given %zu variables on parameter servers and %zu "
                     "in "
                     "this process; call it once for each kind",
                     served, gradients->count - served);
}

/* The current value of the rate's variable, or NaN when it is the rate of the servers' rule. */
static double rate_of(const cadre_optimizer *optimizer)
{
    if (optimizer->learning_rate == NULL) {
        return 0;
    }
    double rate = optimizer_rate(optimizer, 0, 0);
    return rate == optimizer->rule.rate ? 0 : rate;
}

static cadre_status push_part(const struct pending_update_part *part,
    const cadre_push_options *options, struct cadre_error *error)
{
    cadre_tensor *gradient = NULL;
    struct variable_rows rows = {0};
    CADRE_TRY(tensor_on_host(part->gradient, &gradient, error));
    if (part->rows != NULL) {
        rows.ids = cadre_tensor_const_data(part->rows);
        rows.count = (uint64_t)cadre_tensor_count(part->rows);
    }
    const struct variable_push push = {.how = CADRE_ASSIGN_UPDATE,
        .values = cadre_tensor_const_data(gradient),
        .rows = part->rows != NULL ? &rows : NULL,
        .options = options};
    cadre_status status = remote_variable_ops()->push(part->of->variable, &push, error);
    cadre_tensor_release(gradient);
    return status;
}

static cadre_status push_all(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct pending_update *turn, struct cadre_error *error)
{
    cadre_push_options push = {0};
    bool reduced = options->gradients == CADRE_GRADIENTS_REDUCED;
    CADRE_TRY(gradients_build(optimizer, gradients, error));
    CADRE_TRY(gradients_list(optimizer, gradients, turn, error));
    CADRE_TRY(gradients_reduce(reduced ? NULL : replica, gradients, options, turn, error));
    CADRE_TRY(gradients_clip(optimizer, turn, error));
    if (replica != NULL && replica->id != 0) {
        return CADRE_OK;
    }
    if (options->push != NULL) {
        push = *options->push;
        push.into = NULL;
    }
    push.rate = push.rate == 0 ? rate_of(optimizer) : push.rate;
    for (size_t i = 0; i < turn->count; i++) {
        CADRE_TRY(push_part(&turn->variables[i], &push, error));
    }
    return CADRE_OK;
}

cadre_status push_gradients(cadre_replica *replica, cadre_optimizer *optimizer,
    const struct gradients *gradients, const cadre_apply_options *options,
    struct cadre_error *error)
{
    struct pending_update turn = {.optimizer = optimizer};
    CADRE_TRY(pending_update_open(&turn, gradients->count, error));
    cadre_status status = push_all(replica, optimizer, gradients, options, &turn, error);
    pending_update_close(&turn);
    return status;
}
