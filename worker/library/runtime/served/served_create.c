/* SPDX-License-Identifier: Apache-2.0
 * Creates a variable, on the chief: checks, shards, servers, creation on them, values, and only
 * then its note, so that no task finds an incomplete one. Called through the table of
 * remote_variable.h. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/served/served_call.h"
#include "worker/library/runtime/served/served_note.h"
#include "worker/library/runtime/served/served_values.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define MIN_SIZE_BYTES ((uint64_t)256 << 10) /* TensorFlow's MinSizePartitioner's */

/* A variable in creation. */
struct creation {
    struct served_variables *all;
    const struct variable_plan *plan;
    uint64_t shards;
};

/* --- what may be created --- */

/* The name itself was checked before; here the names that it would have in checkpoints. */
static cadre_status check_name(const struct creation *creation, struct cadre_error *error)
{
    const char *name = creation->plan->name;
    if (strncmp(name, SERVED_RESERVED, strlen(SERVED_RESERVED)) == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the name '%s' begins with '" SERVED_RESERVED
            "', which is kept for Cadre itself; give the variable another one",
            name);
    }
    return served_checkpoint_parts_check(creation->plan->strategy, name, NULL, error);
}

static cadre_status check_creation(struct creation *creation, struct cadre_error *error)
{
    const struct variable_plan *plan = creation->plan;
    int64_t count;
    size_t bytes;
    bool on_read = plan->options->synchronization == CADRE_SYNC_ON_READ;
    if (plan->dtype == CADRE_STRING || on_read) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_variable_create: variable '%s' is to %s, and parameter servers hold no such "
            "one; use CADRE_PLACEMENT_REPLICAS, where it is the chief's own",
            plan->name, on_read ? "be combined when read" : "hold strings");
    }
    CADRE_TRY(check_name(creation, error));
    cadre_status status =
        tensor_shape_check(plan->dtype, plan->rank, plan->dims, &count, &bytes, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "variable '%s'", plan->name);
}

/* --- how many shards --- */

static cadre_status ask_function(const cadre_partitioner *partitioner,
    const struct variable_plan *plan, uint64_t *ret_shards, struct cadre_error *error)
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
    return partition_from_counts(pieces, plan->rank, plan->dims, plan->rank, ret_shards, error);
}

static cadre_status served_create_cut(const cadre_partitioner *partitioner,
    const struct variable_plan *plan, uint64_t *ret_shards, struct cadre_error *error)
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

/* A colocated variable has one shard. */
static cadre_status choose_shards(struct creation *creation, struct cadre_error *error)
{
    const cadre_variable_options *options = creation->plan->options;
    const cadre_partitioner *partitioner = options->partitioner != NULL
                                               ? options->partitioner
                                               : &creation->all->ps_job->options.partitioner;
    creation->shards = 1;
    if (options->colocate_with != NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(served_create_cut(partitioner, creation->plan, &creation->shards, error));
    if (creation->shards > UINT32_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%llu shards are too many; make them larger", (unsigned long long)creation->shards);
    }
    return CADRE_OK;
}

/* --- on the servers --- */

static void served_create_assign_servers(const struct creation *creation, cadre_variable *variable)
{
    const cadre_variable *with = creation->plan->options->colocate_with;
    uint32_t servers = directory_self(creation->all->ps_job->directory)->ps_job.servers;
    CADRE_ASSERT(servers > 0); /* as in each ps job */
    for (uint64_t shard = 0; shard < creation->shards; shard++) {
        served_set_shard(variable->served, shard,
            with != NULL ? with->served->shards[0].server
                         : partition_next_server(&creation->all->placed, servers));
    }
}

static cadre_status create_shards(cadre_variable *variable, struct cadre_error *error)
{
    size_t shards = (size_t)variable->served->layout.shards;
    CADRE_FREE_AT_EXIT struct store_spec *specs = calloc(shards, sizeof *specs);
    CADRE_FREE_AT_EXIT struct request *requests = calloc(shards, sizeof *requests);
    if (specs == NULL || requests == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to create the %zu shards of variable '%s'", shards, variable->name);
    }
    for (size_t i = 0; i < shards; i++) {
        specs[i] = (struct store_spec){.shard = (uint32_t)i,
            .dtype = variable->dtype,
            .rows = partition_rows(variable->served->layout, i),
            .row_elements = variable->served->row_elements};
        memcpy(specs[i].name, variable->name, sizeof variable->name);
        requests[i] = (struct request){.kind = REQUEST_CREATE,
            .server = variable->served->shards[i].server,
            .spec = &specs[i]};
    }
    cadre_status status = served_send(variable, requests, shards, error);
    for (size_t i = 0; i < shards; i++) {
        variable->served->shards[i].number = requests[i].ret_shard;
    }
    return status;
}

static cadre_status served_create_note(const cadre_variable *variable, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT void *bytes = NULL;
    size_t size = 0;
    CADRE_TRY(served_note_encode(variable, &bytes, &size, error));
    struct request request = {
        .kind = REQUEST_NOTE, .name = variable->name, .values = bytes, .rows = size};
    return served_send(variable, &request, 1, error);
}

static cadre_status make_whole(
    const struct creation *creation, cadre_variable *variable, struct cadre_error *error)
{
    bool restored = false;
    CADRE_TRY(create_shards(variable, error));
    CADRE_TRY(served_restore(creation->plan->strategy, variable, &restored, error));
    variable->served->restored = restored;
    if (!restored) {
        CADRE_TRY(served_initialize(variable, &creation->plan->options->initializer, error));
    }
    return served_create_note(variable, error);
}

static cadre_status served_create_create(
    struct creation *creation, cadre_variable **ret_variable, struct cadre_error *error)
{
    struct served_variables *all = creation->all;
    cadre_strategy *strategy = creation->plan->strategy;
    cadre_variable *variable = NULL;
    uint64_t placed = all->placed;
    CADRE_TRY(check_creation(creation, error));
    cadre_status status = choose_shards(creation, error);
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "variable '%s'", creation->plan->name);
    }
    CADRE_ASSERT(creation->shards > 0);
    if (served_at(all, 0) == NULL && strategy->variables->count == 0) {
        CADRE_TRY(checkpoint_probe(strategy, error)); /* fails now instead of after hours of
                                                       * training */
    }
    CADRE_TRY(served_new(all, creation->plan, creation->shards, &variable, error));
    served_create_assign_servers(creation, variable);
    status = make_whole(creation, variable, error);
    if (status != CADRE_OK) {
        /* Created again, its shards go to the same servers, whose rows are maybe not zero. */
        all->placed = placed;
        all->unfinished = true;
        variable_free(variable);
        return status;
    }
    CADRE_TRY(served_add(all, &variable, error));
    CADRE_TRY(served_checkpoint_parts_add(variable, false, error));
    all->streamed.ops = &served_streamed_ops;
    strategy->state_part->streamed = &all->streamed;
    *ret_variable = variable;
    return CADRE_OK;
}

/* In a closure: returns the chief's variable, if it is as the program describes it. */
static cadre_status take_over(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    char is[TENSOR_SHAPE_TEXT_BYTES];
    char wanted[TENSOR_SHAPE_TEXT_BYTES];
    cadre_variable *variable = NULL;
    cadre_status status = served_find(plan->name, &variable, error);
    if (status == CADRE_NOT_FOUND) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_variable_create: variable '%s' is on no parameter server; create it on the "
            "chief, before closures that use it are scheduled",
            plan->name);
    }
    if (status != CADRE_OK) {
        return status;
    }
    if (variable->dtype != plan->dtype || variable->rank != plan->rank ||
        (plan->rank > 0 &&
            memcmp(variable->dims, plan->dims, plan->rank * sizeof plan->dims[0]) != 0)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the chief has created variable '%s' as %s, and this closure creates "
            "it as %s; create the same",
            plan->name, tensor_shape_text(variable->dtype, variable->rank, variable->dims, is),
            tensor_shape_text(plan->dtype, plan->rank, plan->dims, wanted));
    }
    *ret_variable = variable;
    return CADRE_OK;
}

cadre_status served_create(
    const struct variable_plan *plan, cadre_variable **ret_variable, struct cadre_error *error)
{
    struct creation creation = {.all = served_current(), .plan = plan};
    CADRE_ASSERT(creation.all != NULL); /* the strategy has servers, or a closure runs */
    return served_role(creation.all) == ROLE_CHIEF
               ? served_create_create(&creation, ret_variable, error)
               : take_over(plan, ret_variable, error);
}
