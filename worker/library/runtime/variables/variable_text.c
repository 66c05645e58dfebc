/* SPDX-License-Identifier: Apache-2.0
 * Variables as TensorFlow prints them. */
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_text.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/device/tensor.h"
#include "worker/library/runtime/variables/remote_variable.h"
#include "worker/library/runtime/variables/variable.h"
#include "worker/library/runtime/variables/variable_device.h"

/* `values`: of the component, on the host; the caller releases them. */
static cadre_status write_one(const cadre_variable *variable, uint32_t component,
    cadre_tensor *values, FILE *to, struct cadre_error *error)
{
    char name[LIMIT_NAME_BYTES + 32];
    cadre_variable_component_name(variable, component, name, sizeof name);
    fprintf(to, "<cadre_variable '%s:0' ", name);
    cadre_status status = tensor_text(values, TENSOR_FORM_MEMBERS, to, error);
    fputc('>', to);
    cadre_tensor_release(values);
    return status;
}

/* The value that cadre_variable_read returns here. */
static cadre_status write_read(
    const cadre_variable *variable, uint32_t component, FILE *to, struct cadre_error *error)
{
    const cadre_replica *replica = context_replica();
    const void *values = cadre_variable_read(NULL, variable);
    if (values == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION, "%s", cadre_error_message());
    }
    cadre_tensor *tensor = NULL;
    if (replica == NULL || variable->components[0].device == NULL) {
        CADRE_TRY(tensor_from_data(
            variable->dtype, variable->rank, variable->dims, values, &tensor, error));
    } else {
        CADRE_TRY(variable_component_tensor(variable, replica->local, &tensor, error));
    }
    return write_one(variable, component, tensor, to, error);
}

static cadre_status write_all(const cadre_variable *variable, FILE *to, struct cadre_error *error)
{
    fprintf(to, "%s:{\n", variable->on_read ? "SyncOnReadVariable" : "MirroredVariable");
    for (uint32_t i = 0; i < variable->component_count; i++) {
        cadre_tensor *tensor = NULL;
        CADRE_TRY(variable_component_tensor(variable, i, &tensor, error));
        fprintf(to, "%s  %u: ", i == 0 ? "" : ",\n", i);
        CADRE_TRY(write_one(variable, i, tensor, to, error));
    }
    fputs("\n}", to);
    return CADRE_OK;
}

/* Each shard as a component; one alone is the whole. */
static cadre_status write_shards(
    const cadre_variable *variable, FILE *to, struct cadre_error *error)
{
    cadre_tensor *whole = NULL;
    uint32_t shards = remote_variable_ops()->shards(variable);
    CADRE_TRY(variable_read_remote(variable, &whole, error));
    if (shards == 1) {
        return write_one(variable, 0, whole, to, error);
    }
    cadre_status status = CADRE_OK;
    fputs("ShardedVariable:{\n", to);
    for (uint32_t i = 0; status == CADRE_OK && i < shards; i++) {
        const struct variable_shard shard = remote_variable_ops()->shard(variable, i);
        cadre_tensor *rows = NULL;
        status = tensor_view_rows(whole, shard.first, shard.rows, &rows, error);
        if (status == CADRE_OK) {
            fprintf(to, "%s  %u: ", i == 0 ? "" : ",\n", i);
            status = write_one(variable, i, rows, to, error);
        }
    }
    fputs("\n}", to);
    cadre_tensor_release(whole);
    return status;
}

static cadre_status write_variable(const void *of, FILE *to, struct cadre_error *error)
{
    const cadre_variable *variable = of;
    if (variable->served != NULL) {
        return write_shards(variable, to, error);
    }
    const cadre_replica *replica = context_replica();
    uint32_t local = replica != NULL ? replica->local : 0;
    bool own = replica != NULL || context_update(&local);
    bool wrapped = variable->kind == CADRE_VARIABLE_MIRRORED || variable->on_read;
    if (own || !wrapped || variable->dtype == CADRE_STRING) {
        return write_read(variable, variable->component_count > 1 ? local : 0, to, error);
    }
    return write_all(variable, to, error);
}

cadre_status cadre_variable_print(const cadre_variable *variable, FILE *file)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = argument_require(file, __func__, "file", &error);
    bool remote = variable_is_registered(variable) && variable->served != NULL;
    if (status == CADRE_OK && !remote) {
        status = context_replica() == NULL
                     ? variable_enter(variable, __func__, &call, &error)
                     : variable_require_own(context_replica(), variable, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = text_print(write_variable, variable, file, &error);
    }
    return api_return(status, &error);
}
