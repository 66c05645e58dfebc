/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/runtime/strategy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/strategy.h"
#include "common/base/clock.h"
#include "worker/device/argument.h"
#include "worker/runtime/border.h"
#include "worker/runtime/checkpoint.h"
#include "worker/runtime/generation.h"
#include "worker/runtime/input.h"
#include "worker/runtime/outside.h"
#include "worker/runtime/program.h"
#include "worker/runtime/show.h"
#include "worker/runtime/values.h"
#include "worker/runtime/variable.h"

#define READERS_WAIT_S 10 /* for functions that read ahead, at the end */

static cadre_strategy *living;
static uint32_t
    last_rank; /* of the one before, so that its end does not make every task the first */

cadre_strategy *strategy_current(void)
{
    return living;
}

static uint32_t rank_of(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks : strategy->roster.rank;
}

uint32_t strategy_rank(void)
{
    return living == NULL ? last_rank : rank_of(living);
}

uint32_t strategy_tasks(const cadre_strategy *strategy)
{
    return strategy->state == STATE_WARM ? strategy->warm_tasks + 1 : strategy->roster.member_count;
}

bool strategy_lives(const cadre_strategy *strategy)
{
    return strategy != NULL && strategy == living;
}

cadre_status strategy_check(const cadre_strategy *strategy, struct cadre_error *error)
{
    if (strategy->failed.code != CADRE_OK) {
        return cadre_error_set(error, strategy->failed.code, "%s", strategy->failed.text);
    }
    return CADRE_OK;
}

bool strategy_is_peers(cadre_status code)
{
    return code == CADRE_ABORTED || code == CADRE_UNAVAILABLE || code == CADRE_DEADLINE_EXCEEDED ||
           code == CADRE_CANCELLED;
}

cadre_status strategy_end(cadre_strategy *strategy, struct cadre_error *error)
{
    task_failed(strategy->task, error);
    strategy->failed = *error;
    return error->code;
}

cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error)
{
    struct cadre_error other;
    if (!strategy->environment->attached && generation_repair(strategy, &other) == CADRE_OK) {
        return error->code;
    }
    return strategy_end(strategy, error);
}

cadre_status strategy_regroup(
    cadre_strategy *strategy, const struct cadre_error *cause, struct cadre_error *error)
{
    task_peer_error(strategy->task, strategy->roster.generation, cause->text);
    cadre_status status = generation_next(strategy, error);
    return status == CADRE_OK ? CADRE_OK : strategy_end(strategy, error);
}

bool strategy_warm(const cadre_strategy *strategy)
{
    return strategy->state != STATE_PRESENT;
}

bool strategy_arrives(const cadre_strategy *strategy)
{
    return strategy->arrives;
}

uint64_t strategy_position(const cadre_strategy *strategy)
{
    return task_position(strategy->task);
}

cadre_status strategy_require(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    cadre_status status = context_require_cross(function, error);
    if (status == CADRE_OK) {
        status = argument_require(strategy, function, "strategy", error);
    }
    if (status == CADRE_OK && strategy_lives(strategy) && atomic_load(&strategy->step.running)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called by another thread while a step is running; call it between steps",
            function);
    }
    if (status == CADRE_OK && !strategy_lives(strategy)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called after the strategy had ended, and with it all that was made in it; call "
            "it before cadre_finish",
            function);
    }
    return status;
}

cadre_status strategy_enter(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error)
{
    cadre_status status = strategy_require(strategy, function, error);
    return status == CADRE_OK ? strategy_check(strategy, error) : status;
}

/* --- calls on each replica --- */

struct each {
    cadre_strategy *strategy;
    strategy_function function;
    void *user;
};

static void call_one(uint32_t local, void *user)
{
    struct each *each = user;
    cadre_replica *replica = &each->strategy->replicas[local];
    replica->error = (struct cadre_error){0};
    replica->status = each->function(each->strategy, local, each->user, &replica->error);
    if (replica->status != CADRE_OK && replica->status != CADRE_INVALID_ARGUMENT) {
        each->strategy->mesh->ops->abort(each->strategy->mesh, replica->error.text);
    }
}

cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error)
{
    struct each each = {.strategy = strategy, .function = function, .user = user};
    replica_pool_run(strategy->pool, call_one, &each);
    const cadre_replica *worst = NULL;
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        const cadre_replica *replica = &strategy->replicas[i];
        bool worse =
            worst == NULL || (worst->status == CADRE_ABORTED && replica->status != CADRE_ABORTED);
        if (replica->status != CADRE_OK && worse) {
            worst = replica;
        }
    }
    return worst == NULL ? CADRE_OK
                         : cadre_error_set(error, worst->status, "%s", worst->error.text);
}

/* --- lifetime --- */

static uint32_t replicas_wanted(const struct environment *environment, uint32_t asked)
{
    if (environment->replicas != 0) {
        return environment->replicas;
    }
    return asked != 0 ? asked : 1; /* the CPU is one device */
}

static cadre_status open_task(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct environment *environment = strategy->environment;
    char address[MESH_ADDRESS_BYTES] = "";
    if (environment->attached) {
        cadre_status status =
            mesh_listener_open(environment->mesh_host, &strategy->listener, address, error);
        if (status != CADRE_OK) {
            return cadre_error_wrap(error, status, "open this task's mesh listener");
        }
    }
    struct session *session;
    cadre_status status = program_take_session(&session, error);
    if (status != CADRE_OK) {
        return status;
    }
    struct task_identity identity = {
        .slot = environment->slot,
        .incarnation =
            environment->attached ? environment->incarnation : session_local_incarnation(session),
        .replicas = strategy->local_replicas,
        .mesh_address = address,
    };
    return task_open(session, &identity, &strategy->task, error);
}

/* Their ids follow from the generation. */
static void name_replicas(cadre_strategy *strategy)
{
    for (uint32_t i = 0; i < strategy->local_replicas; i++) {
        strategy->replicas[i] = (cadre_replica){.strategy = strategy, .local = i};
    }
}

static cadre_status open_strategy(cadre_strategy *strategy, struct cadre_error *error)
{
    name_replicas(strategy);
    cadre_status status = replica_pool_open(strategy->local_replicas, &strategy->pool, error);
    if (status == CADRE_OK) {
        status = outside_open(&strategy->outside, error);
    }
    if (status == CADRE_OK) {
        status = open_task(strategy, error);
    }
    if (status == CADRE_OK) {
        status = checkpointer_open(strategy, &strategy->checkpointer, error);
    }
    if (status == CADRE_OK) {
        status = generation_open(strategy, error);
        if (status != CADRE_OK) {
            strategy_end(strategy, error);
        }
    }
    if (status == CADRE_OK) {
        reports_init(&strategy->reports, !strategy->environment->attached);
    }
    return status;
}

static cadre_status create(uint32_t replicas, bool this_task_only, cadre_strategy **ret_strategy,
    struct cadre_error *error)
{
    const struct environment *environment = program_environment();
    if (environment == NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "no strategy can be made before cadre_init; call it first in main");
    }
    if (living != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "another strategy lives in this process; end it with cadre_finish or "
            "cadre_strategy_release first");
    }
    if (this_task_only && environment->tasks > 1) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "a mirrored strategy is for one task and this job has %u; use "
            "cadre_strategy_multi_worker_mirrored or cadre_strategy_default",
            environment->tasks);
    }
    uint32_t wanted = replicas_wanted(environment, replicas);
    if (wanted > LIMIT_REPLICAS_PER_TASK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%u replicas were asked for; a task has at most %d", wanted, LIMIT_REPLICAS_PER_TASK);
    }
    cadre_strategy *strategy = calloc(1, sizeof *strategy);
    cadre_replica *places = calloc(wanted, sizeof *places);
    if (strategy == NULL || places == NULL) {
        free(strategy);
        free(places);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a strategy");
    }
    strategy->environment = environment;
    strategy->local_replicas = wanted;
    strategy->replicas = places;
    pthread_mutex_init(&strategy->step.lock, NULL);
    living = strategy;
    cadre_status status = open_strategy(strategy, error);
    if (status != CADRE_OK) {
        cadre_strategy_release(strategy);
        return status;
    }
    *ret_strategy = strategy;
    return CADRE_OK;
}

static cadre_status create_public(
    uint32_t replicas, bool this_task_only, const char *function, cadre_strategy **ret_strategy)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_strategy, function, "ret_strategy", &error);
    if (status == CADRE_OK) {
        *ret_strategy = NULL;
        status = context_require_cross(function, &error);
    }
    if (status == CADRE_OK) {
        status = create(replicas, this_task_only, ret_strategy, &error);
    }
    return border(status, &error);
}

cadre_status cadre_strategy_default(cadre_strategy **ret_strategy)
{
    const struct environment *environment = program_environment();
    bool mirrored = environment != NULL && strcmp(environment->strategy, "mirrored") == 0;
    return create_public(0, mirrored, "cadre_strategy_default", ret_strategy);
}

cadre_status cadre_strategy_mirrored(uint32_t replicas, cadre_strategy **ret_strategy)
{
    return create_public(replicas, true, "cadre_strategy_mirrored", ret_strategy);
}

cadre_status cadre_strategy_multi_worker_mirrored(uint32_t replicas, cadre_strategy **ret_strategy)
{
    return create_public(replicas, false, "cadre_strategy_multi_worker_mirrored", ret_strategy);
}

static void end_dataset(cadre_distributed_dataset *distributed)
{
    char name[sizeof distributed->name];
    snprintf(name, sizeof name, "%s", distributed->name);
    if (!distributed_retire(distributed, READERS_WAIT_S * CADRE_US_PER_S)) {
        show_warning("dataset '%s': a function that reads ahead (a generator, a map, a file) has "
                     "not returned for %d s since the training ended, and is left alone; end the "
                     "process, and free nothing that it uses",
            name, READERS_WAIT_S);
    }
}

void cadre_strategy_release(cadre_strategy *strategy)
{
    if (!strategy_lives(strategy) || atomic_load(&strategy->step.running)) {
        return; /* nothing, ended already, or in use by its replicas */
    }
    last_rank = rank_of(strategy);
    checkpointer_close(strategy->checkpointer);
    reports_end(&strategy->reports);
    for (uint32_t i = 0; i < strategy->output_count; i++) {
        cadre_per_replica_release(strategy->outputs[i]);
    }
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        end_dataset(strategy->datasets[i]);
    }
    for (uint32_t i = 0; i < strategy->variable_count; i++) {
        variable_free(strategy->variables[i]);
    }
    replica_pool_close(strategy->pool);
    generation_leave(strategy);
    task_close(strategy->task);
    if (strategy->listener != NULL) {
        mesh_listener_close(strategy->listener);
    }
    task_roster_clear(&strategy->roster);
    outside_close(strategy->outside);
    pthread_mutex_destroy(&strategy->step.lock);
    free(strategy->datasets);
    free(strategy->variables);
    free(strategy->replicas);
    free(strategy);
    living = NULL;
}

uint32_t cadre_strategy_num_replicas_in_sync(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy_tasks(strategy) * strategy->local_replicas : 0;
}

uint32_t cadre_strategy_local_replicas(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy->local_replicas : 0;
}

bool cadre_strategy_is_chief(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) && rank_of(strategy) == 0;
}

uint64_t cadre_strategy_position(const cadre_strategy *strategy)
{
    return strategy_lives(strategy) ? strategy_position(strategy) : 0;
}
