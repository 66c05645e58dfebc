/* SPDX-License-Identifier: Apache-2.0
 * The chief's strategy: one replica, and a ps job that begins and ends with it. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/closures/worker_strategy.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/lifecycle/constructors.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/roles/chief.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"

static const char function[] = "cadre_strategy_parameter_server";

/* --- whether there can be one --- */

static cadre_status check_task(const struct environment *environment, struct cadre_error *error)
{
    enum role role = environment->role;
    if (role == ROLE_WORKER || role == ROLE_SERVER) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in %s %" PRIu32
            " of the job, which has no strategy; return cadre_serve() from main when "
            "cadre_task_serves()",
            function, role_name(role), environment->index);
    }
    if (role == ROLE_EVALUATOR) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in the evaluator of the job, which has no strategy; its loop is "
            "cadre_next_evaluation",
            function);
    }
    if (role == ROLE_NONE && environment->attached) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called in a task of a job that has no parameter servers; start it with "
            "`--strategy parameter_server`, or with a \"ps\" job in TF_CONFIG",
            function);
    }
    if (ps_job_current() != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called while another strategy with parameter servers is open in this process; "
            "end that one with cadre_finish or cadre_strategy_release first",
            function);
    }
    return CADRE_OK;
}

static cadre_status check_partitioner(
    const cadre_partitioner *partitioner, struct cadre_error *error)
{
    if ((unsigned)partitioner->kind > CADRE_PARTITIONER_FUNCTION) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: the partitioner's kind is %d; there is no such kind", function,
            (int)partitioner->kind);
    }
    if (partitioner->kind == CADRE_PARTITIONER_FIXED && partitioner->shards == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: a partitioner of a fixed number of shards has 0 of them; give 1 or more",
            function);
    }
    if (partitioner->kind == CADRE_PARTITIONER_MAX_SIZE && partitioner->bytes == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s: a partitioner by the most bytes of a shard has 0 of them; give 1 or more",
            function);
    }
    return partitioner->kind == CADRE_PARTITIONER_FUNCTION && partitioner->function == NULL
               ? cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%s: the partitioner's function is NULL", function)
               : CADRE_OK;
}

/* --- its beginning --- */

static cadre_status shape_of(const cadre_parameter_server_options *options,
    struct strategy_config *ret_shape, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job_current() == NULL);
    static const char *const devices[] = {"CPU:0"};
    const struct device_inventory inventory = devices_inventory();
    const struct device_host host = program_host();
    *ret_shape = (struct strategy_config){.kind = STRATEGY_PARAMETER_SERVER,
        .environment = program_environment(),
        .hook_tables = strategy_hook_tables,
        .hook_table_count = strategy_hook_table_count};
    CADRE_TRY(
        devices_of_names(&inventory, &host, function, devices, 1, &ret_shape->devices, error));
    cadre_status status = ps_job_begin(&ret_shape->ps_job, error);
    if (status != CADRE_OK) {
        device_list_clear(&ret_shape->devices);
        return status;
    }
    if (options != NULL) {
        ret_shape->ps_job->options = *options;
    }
    if (options != NULL && options->server_patience_s > 0) {
        ret_shape->ps_job->wait_timeout_us = options->server_patience_s * CADRE_US_PER_S;
    }
    return CADRE_OK;
}

static cadre_status parameter_server_create(const cadre_parameter_server_options *options,
    cadre_strategy **ret_strategy, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    const struct environment *environment = program_environment();
    struct strategy_config shape;
    cadre_strategy *strategy;
    CADRE_TRY(context_require_cross(function, error));
    CADRE_TRY(strategy_check_program(function, error));
    CADRE_TRY(program_choose_part(CLUSTER_PS_JOB, error));
    CADRE_TRY(check_task(environment, error));
    if (options != NULL) {
        CADRE_TRY(check_partitioner(&options->partitioner, error));
    }
    CADRE_TRY(shape_of(options, &shape, error));
    CADRE_TRY(strategy_create(&shape, function, &call, &strategy, error));
    strategy->worker_replicas = worker_strategy_replicas();
    cadre_status status =
        chief_begin(strategy->ps_job, strategy, environment->role == ROLE_NONE, error);
    if (status != CADRE_OK) {
        strategy_set_failed(strategy, error);
        strategy_close(strategy);
        return status;
    }
    *ret_strategy = strategy;
    return CADRE_OK;
}

cadre_status cadre_strategy_parameter_server(
    const cadre_parameter_server_options *options, cadre_strategy **ret_strategy)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_strategy, function, "ret_strategy", &error);
    if (status == CADRE_OK) {
        *ret_strategy = NULL;
        status = parameter_server_create(options, ret_strategy, &error);
    }
    return api_return(status, &error);
}
