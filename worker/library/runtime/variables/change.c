/* SPDX-License-Identifier: Apache-2.0
 * See change.h. Called by assign_cross_replica.c, update.c and scatter.c. */
#include "worker/library/runtime/variables/change.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/step/run.h"
#include "worker/library/runtime/values/values.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_status no_memory(const struct change *change, struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_RESOURCE_EXHAUSTED, "no memory for the outputs of %s", change->function);
}

/* With central storage variables have one component, and their only task never adopts a step. */
static bool is_single(const struct change *change)
{
    return change->strategy->kind == STRATEGY_CENTRAL_STORAGE;
}

static uint32_t change_pieces(const struct change *change)
{
    return is_single(change) ? 1 : change->strategy->local_replicas;
}

/* --- at once --- */

/* Each local component in turn. */
static cadre_status change_on_replica(
    const struct change *change, cadre_per_replica *outputs, struct cadre_error *error)
{
    CADRE_ASSERT(change->each != NULL);
    cadre_status status = change->once == NULL ? CADRE_OK : change->once(change, error);
    for (uint32_t local = 0; status == CADRE_OK && local < change_pieces(change); local++) {
        cadre_tensor *unasked = NULL;
        cadre_tensor **output = outputs == NULL ? &unasked : per_replica_at(outputs, 0, local);
        status = change->each(change, local, output, error);
        cadre_tensor_release(unasked);
    }
    return status;
}

/* Keeps the values that tasks may still get from this one, before they change. Restored values
 * count as changed from the first step on. */
static void change_settle(const struct change *change)
{
    cadre_strategy *strategy = change->strategy;
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    if (change->variable != NULL) {
        between_steps_settle(strategy, change->variable->components[0].value);
        change->variable->restored = false;
    }
    for (uint32_t i = 0; change->goes_on && i < strategy->variables->count; i++) {
        between_steps_settle(strategy, strategy->variables->list[i]->components[0].value);
        strategy->variables->list[i]->restored = false;
    }
}

/* Folds the totals of the components that were written. A function of the program may have written
 * to any variable, on any replica: all tasks fold the same ones. */
static cadre_status change_fold(const struct change *change, struct cadre_error *error)
{
    cadre_strategy *strategy = change->strategy;
    for (uint32_t i = 0; i < strategy->variables->count; i++) {
        cadre_variable *variable = strategy->variables->list[i];
        bool changed = variable == change->variable ? change->once == NULL : change->goes_on;
        if (changed && variable->on_read) {
            CADRE_TRY(on_read_fold_between_steps(variable, error));
        }
    }
    return CADRE_OK;
}

/* Before the first step the program initializes its variables, and a task that joins does the same
 * again: neither is a step. */
static cadre_status change_at_once(
    const struct change *change, cadre_per_replica *outputs, struct cadre_error *error)
{
    cadre_strategy *strategy = change->strategy;
    change_settle(change);
    cadre_status status = change_on_replica(change, outputs, error);
    if (status == CADRE_OK) {
        status = change_fold(change, error);
    }
    if (status == CADRE_OK) {
        variables_commit(strategy);
    } else {
        variables_restore(strategy);
    }
    return status;
}

/* --- as a step --- */

struct stepping {
    const struct change *change;
    bool outputs;         /* the caller takes them */
    cadre_tensor *single; /* that of the only component */
};

/* The function of the ledger step for a change between steps. */
static cadre_status change_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    struct stepping *stepping = user;
    const struct change *change = stepping->change;
    struct cadre_error error = {0};
    cadre_tensor *output = NULL;
    char text[CHANGE_TEXT_BYTES];
    change_text(change->function, change->variable, change->value, text);
    cadre_status status = variables_sum_in_step(replica, text, change->key, NULL, 0, &error);
    if (status == CADRE_OK && change->once != NULL && replica->local == 0) {
        status = change->once(change, &error);
    }
    if (status == CADRE_OK && (replica->local == 0 || !is_single(change))) {
        status = change->each(change, replica->local, &output, &error);
    }
    if (!stepping->outputs) {
        cadre_tensor_release(output);
    } else if (!is_single(change)) {
        outputs[0] = output;
    } else if (replica->local == 0) {
        cadre_tensor_release(stepping->single); /* of a step that runs again */
        stepping->single = output;
    }
    return api_return(status, &error);
}

cadre_status change_run_step(cadre_strategy *strategy, cadre_replica_function function, void *user,
    uint32_t n_outputs, cadre_per_replica *ret_outputs[], struct cadre_error *error)
{
    CADRE_ASSERT(!strategy->changes);
    strategy->changes = true;
    cadre_status status =
        run_program_step(strategy, function, user, NULL, n_outputs, ret_outputs, error);
    strategy->changes = false;
    return status;
}

static cadre_status change_in_a_step(
    const struct change *change, cadre_per_replica **ret_outputs, struct cadre_error *error)
{
    cadre_per_replica *outputs = NULL;
    struct stepping stepping = {.change = change, .outputs = ret_outputs != NULL};
    uint32_t n_outputs = ret_outputs == NULL || is_single(change) ? 0 : 1;
    struct cadre_error cause = {0};
    cadre_status status =
        change_run_step(change->strategy, change_step, &stepping, n_outputs, &outputs, &cause);
    if (status != CADRE_OK) {
        cadre_tensor_release(stepping.single);
        return change->variable == NULL
                   ? cadre_error_set(
                         error, status, "%s: nothing was changed: %s", change->function, cause.text)
                   : cadre_error_set(error, status, "%s: variable '%s' was not changed: %s",
                         change->function, change->variable->name, cause.text);
    }
    if (ret_outputs != NULL && is_single(change)) {
        *ret_outputs = per_replica_new(1, 1);
        if (*ret_outputs == NULL) {
            cadre_tensor_release(stepping.single);
            return no_memory(change, error);
        }
        *per_replica_at(*ret_outputs, 0, 0) = stepping.single;
        per_replica_show(*ret_outputs);
    } else if (ret_outputs != NULL) {
        *ret_outputs = cadre_per_replica_retain(outputs);
    }
    return CADRE_OK;
}

cadre_status change_make(
    const struct change *change, cadre_per_replica **ret_outputs, struct cadre_error *error)
{
    cadre_strategy *strategy = change->strategy;
    CADRE_ASSERT(strategy != NULL);
    CADRE_ASSERT(change->variable != NULL || change->goes_on);
    cadre_per_replica *outputs = NULL;
    if (ret_outputs != NULL) {
        *ret_outputs = NULL;
    }
    if (strategy_is_catching_up(strategy)) {
        return CADRE_OK;
    }
    bool at_once = strategy_position(strategy) == 0 || strategy_is_warm(strategy);
    if (!context_merging() && !at_once) {
        return change_in_a_step(change, ret_outputs, error);
    }
    if (ret_outputs != NULL && (outputs = per_replica_new(change_pieces(change), 1)) == NULL) {
        return no_memory(change, error);
    }
    cadre_status status = context_merging() ? change_on_replica(change, outputs, error)
                                            : change_at_once(change, outputs, error);
    if (status != CADRE_OK) {
        cadre_per_replica_release(outputs);
        return status;
    }
    if (ret_outputs != NULL) {
        per_replica_show(outputs);
        *ret_outputs = outputs;
    }
    return CADRE_OK;
}
