/* SPDX-License-Identifier: Apache-2.0
 * Creating a parameter, on the chief: checked, cut, placed, created on its servers, filled, and
 * only then noted, so that nobody finds one that is not whole. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/border/border.h"
#include "worker/library/runtime/border/name.h"
#include "worker/library/runtime/parameters/parameter_call.h"
#include "worker/library/runtime/parameters/parameter_note.h"
#include "worker/library/runtime/parameters/parameter_values.h"
#include "worker/library/runtime/state/state_part.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/state/checkpoint.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define MIN_SIZE_BYTES ((uint64_t)256 << 10) /* TensorFlow's MinSizePartitioner's */

/* What is to be made. */
struct creation {
    cadre_strategy *strategy;
    struct parameters *parameters;
    struct parameter_plan plan;
    const cadre_parameter_options *options;
    struct store_training training;
};

/* --- what may be created --- */

static cadre_status check_chief(const struct parameters *parameters, struct cadre_error *error)
{
    const struct crew_state *thread = crew_current(); /* by hand a worker is a thread */
    enum role role = thread != NULL ? thread->role : parameters->crew->role;
    return role == ROLE_CHIEF
               ? CADRE_OK
               : cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                     "parameters are created by the chief, and this task is a %s; look them up "
                     "with cadre_parameter_find",
                     role_name(role));
}

/* What it will stand as in checkpoints; part 0 is its value. False: there is no such part. */
static bool stands_as(
    const struct creation *creation, uint32_t part, char ret_name[SAFETENSORS_NAME_BYTES])
{
    if (part >= parameter_parts(&creation->training)) {
        return false;
    }
    parameter_part_name(creation->plan.name, &creation->training, part, ret_name);
    return true;
}

static cadre_status check_name(const struct creation *creation, struct cadre_error *error)
{
    const char *name = creation->plan.name;
    char part[SAFETENSORS_NAME_BYTES];
    CADRE_TRY(name_check("parameter", name, error));
    if (strncmp(name, PARAMETER_RESERVED, strlen(PARAMETER_RESERVED)) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name '%s' begins with '" PARAMETER_RESERVED
            "', which is kept for Cadre itself; give the parameter another one",
            name);
    }
    if (parameters_known(creation->parameters, name) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "a parameter '%s' exists in this strategy; give the new one another name", name);
    }
    for (uint32_t i = 0; stands_as(creation, i, part); i++) {
        if (cadre_variable_find(creation->strategy, part) != NULL ||
            registered_stands_as(creation->strategy, part) ||
            streamed_stands_as(creation->strategy, part)) {
            return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                "parameter '%s' would stand in checkpoints as '%s', and something else does "
                "already; give it another name",
                name, part);
        }
    }
    return CADRE_OK;
}

static cadre_status check_creation(struct creation *creation, struct cadre_error *error)
{
    const struct parameter_plan *plan = &creation->plan;
    int64_t count;
    size_t bytes;
    CADRE_TRY(training_of(&creation->options->optimizer, plan->dtype, &creation->training, error));
    CADRE_TRY(check_name(creation, error));
    if (plan->dtype == CADRE_STRING) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "parameter '%s' is to hold strings; servers hold numbers and truth values only",
            plan->name);
    }
    cadre_status status =
        tensor_shape_check(plan->dtype, plan->rank, plan->dims, &count, &bytes, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "parameter '%s'", plan->name);
}

/* --- how many shards --- */

static cadre_status ask_function(const cadre_partitioner *partitioner,
    const struct parameter_plan *plan, uint64_t *ret_shards, struct cadre_error *error)
{
    int64_t pieces[CADRE_RANK_MAX] = {0};
    if (partitioner->function == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "its partitioner has no function; set partitioner.function");
    }
    cadre_error_publish(&(struct cadre_error){.code = CADRE_OK});
    cadre_status status = argument_status(
        partitioner->function(plan->dtype, plan->rank, plan->dims, pieces, partitioner->user));
    if (status != CADRE_OK) {
        const char *message = cadre_error_message();
        return cadre_error_set(error, status, "its partitioner failed: %s",
            message[0] != '\0' ? message : "it left no message; say why with cadre_fail");
    }
    return partition_take(pieces, plan->rank, plan->dims, plan->rank, ret_shards, error);
}

static cadre_status cut(const cadre_partitioner *partitioner, const struct parameter_plan *plan,
    uint64_t *ret_shards, struct cadre_error *error)
{
    CADRE_ASSERT(plan->rank <= CADRE_RANK_MAX);
    struct partition_rule rule = {.shards = partitioner->shards, .bytes = partitioner->bytes};
    *ret_shards = 1;
    switch (partitioner->kind) {
    case CADRE_PARTITIONER_NONE:
        return CADRE_OK;
    case CADRE_PARTITIONER_FUNCTION:
        return plan->rank == 0 ? CADRE_OK : ask_function(partitioner, plan, ret_shards, error);
    case CADRE_PARTITIONER_FIXED:
        rule.kind = PARTITION_FIXED;
        break;
    case CADRE_PARTITIONER_MIN_SIZE:
        rule.kind = PARTITION_MIN_SIZE;
        rule.bytes = rule.bytes == 0 ? MIN_SIZE_BYTES : rule.bytes;
        rule.shards = rule.shards == 0 ? 1 : rule.shards;
        break;
    case CADRE_PARTITIONER_MAX_SIZE:
        rule.kind = PARTITION_MAX_SIZE;
        break;
    default:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%d is no kind of partitioner; use one of cadre_partitioner_kind",
            (int)partitioner->kind);
    }
    CADRE_TRY(partition_rule_check(&rule, error));
    *ret_shards = partition_count(&rule, plan->dims, plan->rank, 0, cadre_dtype_bytes(plan->dtype));
    return CADRE_OK;
}

/* One that is colocated is whole. */
static cadre_status choose_shards(struct creation *creation, struct cadre_error *error)
{
    const cadre_parameter_options *options = creation->options;
    const cadre_partitioner *partitioner = options->partitioner != NULL
                                               ? options->partitioner
                                               : &creation->parameters->crew->options.partitioner;
    creation->plan.shards = 1;
    if (options->colocate_with != NULL) {
        return parameter_enter(options->colocate_with, "cadre_parameter_create", error);
    }
    CADRE_TRY(cut(partitioner, &creation->plan, &creation->plan.shards, error));
    if (creation->plan.shards > UINT32_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%llu shards are too many; make them larger",
            (unsigned long long)creation->plan.shards);
    }
    return CADRE_OK;
}

/* --- on the servers --- */

static void place(const struct creation *creation, cadre_parameter *parameter)
{
    struct parameters *parameters = creation->parameters;
    const cadre_parameter *with = creation->options->colocate_with;
    uint32_t servers = directory_self(parameters->crew->directory)->crew.servers;
    CADRE_ASSERT(servers > 0); /* as in each crew */
    for (uint64_t shard = 0; shard < parameter->layout.shards; shard++) {
        parameter->shards[shard].server =
            with != NULL ? with->shards[0].server : partition_place(&parameters->placed, servers);
    }
}

static cadre_status create_shards(cadre_parameter *parameter, struct cadre_error *error)
{
    size_t shards = (size_t)parameter->layout.shards;
    CADRE_FREE_AT_EXIT struct store_spec *specs = calloc(shards, sizeof *specs);
    CADRE_FREE_AT_EXIT struct request *requests = calloc(shards, sizeof *requests);
    if (specs == NULL || requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to create the %zu shards of parameter '%s'", shards, parameter->name);
    }
    for (size_t i = 0; i < shards; i++) {
        specs[i] = (struct store_spec){.shard = (uint32_t)i,
            .dtype = parameter->dtype,
            .rows = partition_rows(parameter->layout, i),
            .row_elements = parameter->row_elements,
            .training = parameter->training};
        memcpy(specs[i].name, parameter->name, sizeof parameter->name);
        requests[i] = (struct request){
            .kind = REQUEST_CREATE, .server = parameter->shards[i].server, .spec = &specs[i]};
    }
    cadre_status status = parameter_send(parameter, requests, shards, error);
    for (size_t i = 0; i < shards; i++) {
        parameter->shards[i].number = requests[i].ret_shard;
    }
    return status;
}

static cadre_status note(const cadre_parameter *parameter, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT void *bytes = NULL;
    size_t size = 0;
    CADRE_TRY(parameter_note_encode(parameter, &bytes, &size, error));
    struct request request = {
        .kind = REQUEST_NOTE, .name = parameter->name, .values = bytes, .rows = size};
    return parameter_send(parameter, &request, 1, error);
}

static cadre_status make_whole(
    const struct creation *creation, cadre_parameter *parameter, struct cadre_error *error)
{
    bool restored = false;
    CADRE_TRY(create_shards(parameter, error));
    CADRE_TRY(parameter_restore(creation->strategy, parameter, &restored, error));
    if (!restored) {
        CADRE_TRY(parameter_initialize(parameter, &creation->options->initializer, error));
    }
    return note(parameter, error);
}

static cadre_status create(
    struct creation *creation, cadre_parameter **ret_parameter, struct cadre_error *error)
{
    struct parameters *parameters = creation->parameters;
    cadre_strategy *strategy = creation->strategy;
    cadre_parameter *parameter = NULL;
    uint64_t placed = parameters->placed;
    CADRE_TRY(check_creation(creation, error));
    cadre_status status = choose_shards(creation, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "parameter '%s'", creation->plan.name);
    }
    CADRE_ASSERT(creation->plan.shards > 0);
    if (parameters_at(parameters, 0) == NULL && strategy->variables->count == 0) {
        CADRE_TRY(checkpoint_probe(strategy, error)); /* better than after hours of training */
    }
    CADRE_TRY(parameter_new(parameters, &creation->plan, &parameter, error));
    parameter->training = creation->training;
    place(creation, parameter);
    status = make_whole(creation, parameter, error);
    if (status != CADRE_OK) {
        /* Made again, it comes to the same servers; what they have of it is not zero perhaps. */
        parameters->placed = placed;
        parameters->unfinished = true;
        parameter_free(parameter);
        return status;
    }
    CADRE_TRY(parameters_add(parameters, &parameter, error));
    parameters->streamed.ops = &parameters_streamed_ops;
    strategy->state_part->streamed = &parameters->streamed;
    *ret_parameter = parameter;
    return CADRE_OK;
}

cadre_status cadre_parameter_create(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_parameter_options *options,
    cadre_parameter **ret_parameter)
{
    STRATEGY_CALL call = {0};
    static const cadre_parameter_options defaults = {0};
    struct cadre_error error = {0};
    struct creation creation = {.strategy = strategy != NULL ? strategy : scope_current(),
        .plan = {.name = name, .dtype = dtype, .rank = rank, .dims = dims},
        .options = options == NULL ? &defaults : options};
    cadre_status status = argument_require(ret_parameter, __func__, "ret_parameter", &error);
    if (status == CADRE_OK) {
        *ret_parameter = NULL;
        status = parameters_require(__func__, &creation.parameters, &error);
    }
    if (status == CADRE_OK) {
        status = check_chief(creation.parameters, &error);
    }
    if (status == CADRE_OK) {
        status = strategy_enter(creation.strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = create(&creation, ret_parameter, &error);
    }
    return border(status, &error);
}
