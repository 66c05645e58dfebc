/* SPDX-License-Identifier: Apache-2.0
 * Creating variables: the checks, and the initial value that all replicas get. The program calls
 * it, in every context. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/state/create/variable_name.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/restore/initial_value.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/colocate.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"
#include "worker/library/runtime/variables/variable_list.h"
#include "worker/library/runtime/variables/variable_plain.h"

/* --- the checks --- */

static cadre_status check_strings(
    const char *name, const cadre_variable_options *options, struct cadre_error *error)
{
    bool plain = options->synchronization != CADRE_SYNC_ON_READ &&
                 options->aggregation == CADRE_AGGREGATION_NONE &&
                 options->initializer.kind == CADRE_INITIALIZER_ZEROS;
    return plain ? CADRE_OK
                 : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                       "variable '%s': strings are mirrored, begin empty and cannot be combined; "
                       "leave the options at their zeros and assign it in cross-replica context",
                       name);
}

static cadre_status check_on_read(const char *name, cadre_dtype dtype,
    const cadre_variable_options *options, struct cadre_error *error)
{
    if (options->aggregation == CADRE_AGGREGATION_SUM && dtype == CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': truth values cannot be summed; use a number type", name);
    }
    return CADRE_OK;
}

static cadre_status check_options(const char *name, cadre_dtype dtype,
    const cadre_variable_options *options, struct cadre_error *error)
{
    if (options->synchronization != CADRE_SYNC_AUTO &&
        options->synchronization != CADRE_SYNC_ON_WRITE &&
        options->synchronization != CADRE_SYNC_ON_READ) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': synchronization %d is not one a distributed variable can have; use "
            "CADRE_SYNC_AUTO",
            name, (int)options->synchronization);
    }
    if (options->aggregation < CADRE_AGGREGATION_NONE ||
        options->aggregation > CADRE_AGGREGATION_ONLY_FIRST_REPLICA) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': %d is no aggregation; use one of enum cadre_aggregation", name,
            (int)options->aggregation);
    }
    if (dtype == CADRE_STRING) {
        return check_strings(name, options, error);
    }
    if (options->aggregation == CADRE_AGGREGATION_MEAN && dtype > CADRE_BF16) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "variable '%s': CADRE_AGGREGATION_MEAN requires a floating type, not %s", name,
            cadre_dtype_name(dtype));
    }
    return options->synchronization == CADRE_SYNC_ON_READ
               ? check_on_read(name, dtype, options, error)
               : CADRE_OK;
}

cadre_status variable_require_kept(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    return !strategy_is_default(strategy)
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "%s: the default strategy has no variables, those that are created in it are "
                     "the program's own; make a strategy, such as cadre_strategy_mirrored",
                     function);
}

static cadre_status check_shape(const struct variable_plan *plan, struct cadre_error *error)
{
    int64_t count = 0;
    size_t bytes = 0;
    cadre_status status =
        tensor_shape_check(plan->dtype, plan->rank, plan->dims, &count, &bytes, error);
    return status == CADRE_OK ? status
                              : cadre_error_wrap(error, status, "variable '%s'", plan->name);
}

cadre_status variable_check_plan(const struct variable_plan *plan, struct cadre_error *error)
{
    const cadre_strategy *strategy = plan->strategy;
    const cadre_variable *with = NULL;
    bool remote = false;
    const char *name = plan->name;
    CADRE_TRY(name_check("variable", name, error));
    CADRE_TRY(check_shape(plan, error));
    CADRE_TRY(check_options(name, plan->dtype, plan->options, error));
    CADRE_TRY(colocate_with(plan, &with, error));
    CADRE_TRY(variable_is_remote(plan, &remote, error));
    return strategy == NULL ? CADRE_OK : variable_name_check(strategy, name, error);
}

/* --- the initial value --- */

struct sharing {
    cadre_variable *variable;
    const struct variable_plan *plan;
    uint32_t nth; /* variable of the program; 0: it existed before */
    struct initial_value value;
    struct cadre_error theirs; /* why the chief could not, as received; of local replica 0 */
    int64_t failures;          /* over all replicas; of local replica 0 */
    int64_t replicas;          /* that the variable was created on; likewise */
};

/* The chief's first replica evaluates the initial value; then all agree on what is created and
 * whether the chief could, and get its value. Called again from the beginning, perhaps with another
 * chief, when a task is lost meanwhile. */
static cadre_status share_value(cadre_strategy *strategy, uint32_t local, struct sharing *sharing,
    void *values, struct cadre_error *error)
{
    CADRE_ASSERT(local < strategy->local_replicas);
    cadre_variable *variable = sharing->variable;
    bool chief = strategy->roster.rank == 0 && local == 0;
    int64_t failures =
        chief && initial_value_evaluate(variable, &sharing->value, values) != CADRE_OK ? 1 : 0;
    int64_t replicas = 1;
    struct mesh_buffer sums[] = {
        {.data = &failures, .bytes = sizeof failures, .dtype = MESH_I64},
        {.data = &replicas, .bytes = sizeof replicas, .dtype = MESH_I64},
    };
    cadre_status status =
        collective_sum(strategy, local, sums, 2, creation_key(sharing->plan), error);
    if (status == CADRE_INVALID_ARGUMENT) {
        return cadre_error_wrap(error, status,
            "variable '%s': the tasks do not create the same variables in the same order",
            variable->name);
    }
    if (local == 0) {
        sharing->failures = failures;
        sharing->replicas = replicas;
    }
    if (status == CADRE_OK && failures != 0) {
        return collective_share_error(
            strategy, local, 0, &sharing->value.own, &sharing->theirs, error);
    }
    if (status == CADRE_OK && variable->dtype == CADRE_STRING && sharing->value.restored) {
        return restore_share_strings(strategy, local, variable, sharing->value.strings, error);
    }
    if (status != CADRE_OK || !initial_value_is_shared(variable)) {
        return status;
    }
    struct mesh_buffer value = {.data = values, .bytes = variable->bytes, .dtype = MESH_U8};
    return strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &value, 1, NULL, error);
}

/* It is sent through the host, also to components on devices, because it is done once. */
static cadre_status share_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct sharing *sharing = user;
    cadre_variable *variable = sharing->variable;
    if (variable->component_count == 0) {
        return share_value(strategy, local, sharing, NULL, error);
    }
    struct variable_component *component = variable_component(variable, local);
    void *values = NULL;
    CADRE_TRY(component_edit_begin(variable, component, &values, error));
    cadre_status status = share_value(strategy, local, sharing, values, error);
    return component_edit_end(variable, component, values, status, error);
}

/* A task that joins a job that is under way evaluates for itself; the job's values come later. */
static cadre_status evaluate_alone(struct sharing *sharing, struct cadre_error *error)
{
    cadre_variable *variable = sharing->variable;
    CADRE_FREE_AT_EXIT void *values = malloc(variable->bytes + 1);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the initial value of variable '%s'", variable->name);
    }
    cadre_status status = initial_value_evaluate(variable, &sharing->value, values);
    if (status != CADRE_OK) {
        *error = sharing->value.own;
    }
    for (uint32_t i = 0; status == CADRE_OK && i < variable->component_count; i++) {
        status = variable_from_host(
            variable, &variable->components[i], 0, values, variable->bytes, error);
    }
    return status;
}

static cadre_status share_out(
    cadre_strategy *strategy, struct sharing *sharing, struct cadre_error *error)
{
    char what[STRATEGY_CALL_TEXT_BYTES];
    creation_text(sharing->plan, sharing->nth, what);
    return strategy_between_steps(strategy, what, share_on_replica, sharing, error);
}

/* The reason that the first task had, if it could not. */
static cadre_status variable_create_verdict(
    const struct sharing *sharing, struct cadre_error *error)
{
    CADRE_ASSERT(sharing->value.own.code != CADRE_OK || sharing->theirs.code != CADRE_OK);
    *error = sharing->value.own.code != CADRE_OK ? sharing->value.own : sharing->theirs;
    return error->code;
}

/* The variable begins with the value that all have shared. */
static cadre_status variable_create_begin(cadre_strategy *strategy, cadre_variable *variable,
    const struct sharing *sharing, struct cadre_error *error)
{
    if (sharing->value.own.code != CADRE_OK || sharing->failures != 0) {
        cadre_status status = variable_create_verdict(sharing, error);
        /* What a checkpoint lacks, no further attempt finds. */
        return strategy->state == STATE_RESTORES ? strategy_fail(strategy, error) : status;
    }
    variable->restored = strategy->state == STATE_RESTORES;
    if (variable->on_read) {
        on_read_begin(variable, sharing->value.restored ? 1 : (uint32_t)sharing->replicas);
    }
    if (variable->on_read && sharing->value.restored) {
        on_read_spread(variable);
    }
    return CADRE_OK;
}

static cadre_status variable_create_initialize(
    const struct variable_plan *plan, cadre_variable *variable, struct cadre_error *error)
{
    cadre_strategy *strategy = plan->strategy;
    cadre_status status = CADRE_OK;
    struct sharing sharing = {.variable = variable,
        .plan = plan,
        .nth = strategy->variables->created,
        .value = {.initializer = &plan->options->initializer, .may_lack = plan->may_lack},
        .replicas = strategy->replica_count};
    CADRE_TRY(initial_value_find(variable, &sharing.value, error));
    if (strategy->variables->count == 0) {
        status = checkpoint_probe(strategy, error); /* now, not after hours of training */
    }
    if (status == CADRE_OK && strategy->state == STATE_WARM) {
        status = evaluate_alone(&sharing, error);
    } else if (status == CADRE_OK) {
        bool refers = variable->kind == CADRE_VARIABLE_MIRRORED && variable->host == NULL;
        between_steps_share(
            strategy, refers ? variable->components[0].value : NULL, variable->bytes);
        status = share_out(strategy, &sharing, error);
    }
    if (sharing.value.own.code != CADRE_OK || status == CADRE_OK) {
        status = variable_create_begin(strategy, variable, &sharing, error);
    }
    cadre_tensor_release(sharing.value.strings);
    return status;
}

cadre_status variable_take_restored(cadre_variable *variable, struct cadre_error *error)
{
    cadre_strategy *strategy = variable->strategy;
    const cadre_variable_options options = {.aggregation = variable->aggregation,
        .synchronization = variable->on_read ? CADRE_SYNC_ON_READ : CADRE_SYNC_AUTO};
    const struct variable_plan plan = {.strategy = strategy,
        .name = variable->name,
        .dtype = variable->dtype,
        .rank = variable->rank,
        .dims = variable->dims,
        .options = &options};
    struct sharing sharing = {
        .variable = variable, .plan = &plan, .replicas = strategy->replica_count};
    CADRE_ASSERT(strategy->state == STATE_PRESENT);
    CADRE_TRY(initial_value_find(variable, &sharing.value, error));
    if (!sharing.value.restored) {
        return CADRE_OK;
    }
    bool refers = variable->kind == CADRE_VARIABLE_MIRRORED && variable->host == NULL;
    between_steps_settle(strategy, variable->components[0].value);
    between_steps_share(strategy, refers ? variable->components[0].value : NULL, variable->bytes);
    cadre_status status = share_out(strategy, &sharing, error);
    if (sharing.value.own.code != CADRE_OK || status == CADRE_OK) {
        status = variable_create_begin(strategy, variable, &sharing, error);
    }
    for (uint32_t i = 0; i < variable->component_count; i++) {
        variable->components[i].writes++; /* so a kept hash of it is out of date */
    }
    variable->total.writes++;
    cadre_tensor_release(sharing.value.strings);
    return status;
}

/* --- creating one --- */

cadre_status variable_create_in(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    cadre_strategy *strategy = plan->strategy;
    cadre_variable *variable = NULL;
    bool remote = false;
    CADRE_TRY(variable_is_remote(plan, &remote, error));
    if (remote) {
        return remote_variable_ops()->create(plan, ret_variable, error);
    }
    CADRE_TRY(variable_new(plan, &variable, error));
    strategy->variables->created++;
    cadre_status status = variable_create_initialize(plan, variable, error);
    if (status == CADRE_OK) {
        status = variables_room(strategy, error);
    }
    if (status != CADRE_OK) {
        strategy->variables->created--;
        between_steps_drop(strategy, variable->components[0].value);
        variable_discard(variable);
        return status;
    }
    variables_put(strategy, variable);
    variable->origin.handed = true;
    *ret_variable = variable;
    return CADRE_OK;
}

/* In cross-replica context, under the first of its names that is free. */
static cadre_status create_across(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    const cadre_strategy *strategy = plan->strategy;
    struct variable_plan named = *plan;
    char name[LIMIT_NAME_BYTES];
    cadre_variable *existing = NULL;
    bool remote = false;
    CADRE_TRY(variable_is_remote(plan, &remote, error));
    if (remote && variable_lookup(strategy, plan->name) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a variable '%s' exists in this strategy; give the new one another name", plan->name);
    }
    if (remote) {
        return variable_create_in(plan, ret_variable, error);
    }
    CADRE_TRY(variable_name_next(strategy, plan->name, name, &existing, error));
    named.name = name;
    bool begun = strategy_position(strategy) > 0 && !strategy_is_warm(strategy);
    return begun ? variable_create_late(&named, existing, ret_variable, error)
                 : variable_create_in(&named, ret_variable, error);
}

/* --- public --- */

/* In the function of a replica. */
static cadre_status create_asked(cadre_replica *replica, const struct variable_plan *plan,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    bool remote = false;
    cadre_status status = step_require_own_thread(replica, "cadre_variable_create", error);
    if (status == CADRE_OK && plan->strategy != replica->strategy) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_variable_create: variable '%.64s' was to be created in another strategy than "
            "that of the replica whose function runs; create it between steps",
            plan->name == NULL ? "" : plan->name);
    }
    if (status == CADRE_OK) {
        status = variable_check_plan(plan, error);
    }
    if (status == CADRE_OK) {
        status = variable_is_remote(plan, &remote, error);
    }
    if (status == CADRE_OK && remote) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "variable '%s' is on parameter servers, and is no part of a step; create it between "
            "steps",
            plan->name);
    }
    if (status == CADRE_OK) {
        status = variable_create_in_function(replica, plan, ret_variable, error);
    }
    if (status != CADRE_OK) {
        step_record_refusal(replica, error);
    }
    return status;
}

/* A variable that a closure has made before must be the same. */
static cadre_status check_same(
    const struct variable_plan *plan, const cadre_variable *variable, struct cadre_error *error)
{
    bool same = plan->dtype == variable->dtype && plan->rank == variable->rank;
    for (uint32_t axis = 0; same && axis < plan->rank; axis++) {
        same = plan->dims[axis] == variable->dims[axis];
    }
    return same ? CADRE_OK
                : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                      "the worker has a variable '%s' of another type or shape; create it alike "
                      "each time, or under another name",
                      plan->name);
}

/* A variable of the worker itself: found, or made the first time. */
static cadre_status create_own(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    cadre_variable *known = variable_lookup(plan->strategy, plan->name);
    if (known != NULL) {
        *ret_variable = known;
        return check_same(plan, known, error);
    }
    CADRE_TRY(strategy_enter(plan->strategy, "cadre_variable_create", &call, error));
    CADRE_TRY(variable_check_plan(plan, error));
    return variable_create_in(plan, ret_variable, error);
}

/* In a function that a worker runs: a variable on servers is looked up there, in any context, and
 * the rest is the worker's own; in threads that run nothing for it, the program's. */
static cadre_status create_in_closure(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    cadre_variable_options options = *plan->options;
    struct variable_plan own = *plan;
    bool remote = false;
    options.colocate_with = NULL; /* the chief has placed it */
    own.options = &options;
    own.strategy = NULL;
    CADRE_TRY(variable_check_plan(&own, error));
    cadre_strategy *current = strategy_current(); /* in threads of its replicas, too */
    own.strategy = current != NULL && current->worker != NULL ? current : NULL;
    CADRE_TRY(variable_is_remote(&own, &remote, error));
    if (remote) {
        own.strategy = NULL;
        return remote_variable_ops()->create(&own, ret_variable, error);
    }
    return own.strategy != NULL ? create_own(&own, ret_variable, error)
                                : plain_create(&own, ret_variable, error);
}

cadre_status variable_create(const struct variable_plan *plan, const char *function,
    cadre_variable **ret_variable, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    const struct remote_variable_ops *remote = remote_variable_ops();
    if (remote != NULL && remote->in_closure()) {
        return create_in_closure(plan, ret_variable, error);
    }
    struct variable_plan placed = *plan;
    cadre_replica *replica = context_replica();
    placed.strategy = strategy_is_default(plan->strategy) ? NULL : plan->strategy;
    if (replica != NULL && placed.strategy != NULL) {
        return create_asked(replica, &placed, ret_variable, error);
    }
    CADRE_TRY(plan->strategy == NULL ? context_require_cross(function, error)
                                     : strategy_enter(plan->strategy, function, &call, error));
    CADRE_TRY(variable_check_plan(&placed, error));
    return placed.strategy == NULL ? plain_create(&placed, ret_variable, error)
                                   : create_across(&placed, ret_variable, error);
}

cadre_status cadre_variable_create(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_variable_options *options,
    cadre_variable **ret_variable)
{
    static const cadre_variable_options defaults = {0};
    struct cadre_error error = {0};
    const struct variable_plan plan = {.strategy = strategy != NULL ? strategy : scope_current(),
        .name = name,
        .dtype = dtype,
        .rank = rank,
        .dims = dims,
        .options = options == NULL ? &defaults : options};
    cadre_status status = argument_require(ret_variable, __func__, "ret_variable", &error);
    if (status == CADRE_OK) {
        *ret_variable = NULL;
        status = variable_create(&plan, __func__, ret_variable, &error);
    }
    return api_return(status, &error);
}
