/* SPDX-License-Identifier: Apache-2.0
 * Variables that are created from a file of tensors. */
#include <string.h>

#include "cadre/export.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/strategy/strategy.h"

static const cadre_variable_options plain = {0};

static struct variable_plan plan_of(cadre_strategy *strategy, const struct restored_tensor *tensor)
{
    return (struct variable_plan){.strategy = strategy,
        .name = tensor->name,
        .dtype = tensor->dtype,
        .rank = tensor->rank,
        .dims = tensor->dims,
        .options = &plain};
}

/* Registered state is no variable. */
static bool is_registered(const struct restored_tensor *tensor)
{
    return strncmp(tensor->name, REGISTERED_PREFIX, strlen(REGISTERED_PREFIX)) == 0;
}

/* Checks before the first is created: all can be created, or none is. */
static cadre_status check_all(
    cadre_strategy *strategy, const struct restoration *file, struct cadre_error *error)
{
    for (size_t i = 0; i < file->count; i++) {
        const struct variable_plan plan = plan_of(strategy, &file->tensors[i]);
        bool variable = !is_registered(&file->tensors[i]);
        cadre_status status = variable ? variable_check_plan(&plan, error) : CADRE_OK;
        if (variable && status == CADRE_OK && variable_lookup(strategy, plan.name) != NULL) {
            return cadre_error_set(error, CADRE_ALREADY_EXISTS,
                "%s holds '%s', and the program has a variable of that name; give it its value by "
                "cadre_restore, or import before it is created",
                file->path, plan.name);
        }
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "%s", file->path);
        }
    }
    return CADRE_OK;
}

/* They begin with values of the strategy's restoration, which is the file meanwhile. */
static cadre_status create_all(
    cadre_strategy *strategy, struct restoration *file, struct cadre_error *error)
{
    struct restoration *before = strategy->state_part->restoration;
    cadre_status status = CADRE_OK;
    strategy->state_part->restoration = file;
    for (size_t i = 0; status == CADRE_OK && i < file->count; i++) {
        const struct variable_plan plan = plan_of(strategy, &file->tensors[i]);
        cadre_variable *variable = NULL;
        if (!is_registered(&file->tensors[i])) {
            status = variable_create_in(&plan, &variable, error);
        }
    }
    strategy->state_part->restoration = before;
    return status;
}

static cadre_status import_import(
    cadre_strategy *strategy, const char *path, struct cadre_error *error)
{
    struct restoration *file;
    if (!restoration_is_tensors(path)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cadre_import reads a file of tensors, and '%.200s' does not end with .safetensors; "
            "of a checkpoint name that file of it",
            path);
    }
    if (strategy_position(strategy) > 0 && !strategy_is_warm(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cadre_import('%.200s') was called after the first step; create all variables before",
            path);
    }
    CADRE_TRY(restoration_open(strategy, "cadre_import", path, &file, error));
    cadre_status status = check_all(strategy, file, error);
    if (status == CADRE_OK) {
        status = create_all(strategy, file, error);
    }
    restoration_close(file);
    return status;
}

cadre_status cadre_import(cadre_strategy *strategy, const char *path)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = argument_require(path, __func__, "path", &error);
    }
    if (status == CADRE_OK) {
        status = variable_require_kept(strategy, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = import_import(strategy, path, &error);
    }
    return api_return(status, &error);
}
