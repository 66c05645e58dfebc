/* SPDX-License-Identifier: Apache-2.0
 * A strategy from its config to its first generation, and its end: parts, replica threads, task,
 * mesh. lifecycle/ and closures/ call it. */
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"

#include <stdlib.h>

#include "cadre/strategy.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/preemption/preemption.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/step/hang_watch.h"
#include "worker/library/runtime/step/merge_call.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy/hooks.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/task/membership.h"
#include "worker/library/runtime/task/session.h"

/* Replica ids follow from the generation. */
static void name_replicas(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        strategy->replicas[i] = (cadre_replica){.strategy = strategy, .local = i};
    }
}

/* Sends hello to the coordinator. */
static cadre_status open_task(cadre_strategy *strategy, struct cadre_error *error)
{
    struct ps_job_state *ps_job = strategy->ps_job;
    char address[MESH_ADDRESS_BYTES];
    struct session *session;
    if (ps_job != NULL) {
        session = ps_job->session;
        CADRE_ASSERT(session != NULL); /* ps_job_begin took it from the program */
        ps_job->session = NULL;
        const struct task_identity chief = {
            .replicas = 1, .mesh_address = ps_job->address, .directory = ps_job->directory};
        return membership_open(session, chief, &strategy->task, error);
    }
    CADRE_TRY(membership_listen(strategy->environment, &strategy->listener, address, error));
    CADRE_TRY(strategy->origin == STRATEGY_CONSTRUCTED ? program_take_session(&session, error)
                                                       : session_local_open(0, &session, error));
    const struct task_identity identity = {
        .replicas = strategy->local_replicas, .mesh_address = address};
    CADRE_TRY(membership_open(session, identity, &strategy->task, error));
    if (strategy->environment->verify_losses) {
        task_verify_losses(strategy->task);
    }
    return CADRE_OK;
}

static cadre_status open_strategy(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->task == NULL);
    CADRE_ASSERT(strategy->mesh == NULL);
    name_replicas(strategy);
    cadre_status status = hooks_open(strategy, error);
    if (status == CADRE_OK) {
        status = replica_pool_open(strategy->local_replicas, &strategy->pool, error);
    }
    if (status == CADRE_OK) {
        status = hang_watch_open(strategy, &strategy->hang_watch, error);
    }
    if (status == CADRE_OK) {
        status = merge_open(strategy, error);
    }
    if (status == CADRE_OK) {
        status = regroup_open(strategy, error);
    }
    if (status == CADRE_OK) {
        status = open_task(strategy, error);
    }
    if (status == CADRE_OK) {
        status = generation_open(strategy, error);
        if (status != CADRE_OK) {
            strategy_set_failed(strategy, error);
        }
    }
    return status == CADRE_OK ? preemption_open(strategy, error) : status;
}

static cadre_status check_room(enum strategy_origin origin, struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    uint32_t at = 0;
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "no strategy can be made before cadre_init; call it first in main");
    }
    if (origin == STRATEGY_CONSTRUCTED && (environment->attached || environment->tasks > 1) &&
        strategy_registry_next(&at) != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "another strategy is open in this process, and a task of a job has one; end it with "
            "cadre_finish or cadre_strategy_release first");
    }
    return CADRE_OK;
}

static void report_refused_release(const struct cadre_error *error)
{
    show_misuse(SHOW_TENSOR_RELEASED, error);
}

/* Takes the lists of `shape` over. Freed by strategy_free. */
static cadre_strategy *strategy_new(struct strategy_config *shape)
{
    CADRE_ASSERT(shape->devices.count > 0);
    CADRE_ASSERT(shape->devices.count <= LIMIT_REPLICAS_PER_TASK);
    CADRE_ASSERT((shape->worker != NULL) == (shape->origin == STRATEGY_OF_WORKER));
    tensor_set_refusal_handler(report_refused_release);
    cadre_strategy *strategy = calloc(1, sizeof *strategy);
    cadre_replica *replicas = calloc(shape->devices.count, sizeof *replicas);
    if (strategy == NULL || replicas == NULL) {
        free(strategy);
        free(replicas);
        return NULL;
    }
    hooks_list(shape->hook_tables, shape->hook_table_count, &strategy->hooks);
    strategy->kind = shape->kind;
    strategy->origin = shape->origin;
    strategy->environment = shape->environment;
    strategy->worker = shape->worker;
    strategy->local_replicas = shape->devices.count;
    strategy->replicas = replicas;
    strategy->devices = shape->devices;
    strategy->parameter = shape->parameter;
    strategy->ps_job = shape->ps_job;
    shape->devices = (struct device_list){0};
    shape->parameter = (struct device_list){0};
    shape->ps_job = NULL;
    pthread_mutex_init(&strategy->step.lock, NULL);
    return strategy;
}

static void strategy_free(cadre_strategy *strategy)
{
    CADRE_ASSERT(strategy->mesh == NULL);
    show_misuse_end();
    pthread_mutex_destroy(&strategy->step.lock);
    merge_close(strategy);
    hooks_free(strategy);
    free(strategy->replicas);
    free(strategy);
}

cadre_status strategy_create(struct strategy_config *shape, const char *function,
    struct strategy_call *call, cadre_strategy **ret_strategy, struct cadre_error *error)
{
    cadre_strategy *strategy = NULL;
    cadre_status status = check_room(shape->origin, error);
    if (status == CADRE_OK && (strategy = strategy_new(shape)) == NULL) {
        status = cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a strategy");
    }
    device_list_clear(&shape->devices);
    device_list_clear(&shape->parameter);
    ps_job_free(shape->ps_job);
    if (status != CADRE_OK) {
        return status;
    }
    status = strategy_registry_add(strategy, function, call, error);
    if (status != CADRE_OK) {
        strategy_free(strategy);
        return status;
    }
    status = open_strategy(strategy, error);
    if (status != CADRE_OK) {
        strategy_close(strategy);
        return status;
    }
    *ret_strategy = strategy;
    return CADRE_OK;
}

void strategy_close(cadre_strategy *strategy)
{
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    scope_forget(strategy);
    hang_watch_close(strategy->hang_watch);
    hooks_close(strategy);
    replica_pool_close(strategy->pool);
    generation_close_mesh(strategy);
    task_close(strategy->task);
    if (strategy->listener != NULL) {
        mesh_listener_close(strategy->listener);
    }
    regroup_close(strategy);
    strategy_registry_remove(strategy);
    task_roster_clear(&strategy->roster);
    strategy_free(strategy);
}
