/* SPDX-License-Identifier: Apache-2.0
 * The default strategy, which is current outside of all scopes: one replica of this process, by
 * itself, whatever job the process is a task of. It is made at its first use. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cadre/program.h"
#include "cadre/replica.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/lifecycle/constructors.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"

static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct environment alone; /* of a program which is the whole job, without checkpoints */
static pid_t made_by;

/* It ends with the process, unless some thread is still in a call with it. */
static void end_with_process(void)
{
    STRATEGY_CALL call = {0};
    const char *under_way;
    cadre_strategy *strategy = strategy_registry_default();
    if (getpid() == made_by &&
        strategy_registry_acquire(strategy, "the end of the process", &call, &under_way)) {
        strategy_close(strategy);
    }
}

static cadre_status default_strategy_make(struct cadre_error *error)
{
    static const char function[] = "cadre_strategy_current";
    STRATEGY_CALL call = {0};
    cadre_strategy *strategy;
    const struct device_inventory inventory = {.gpus = 0};
    const struct device_host host = {.job = "localhost"};
    struct strategy_config shape = {.kind = STRATEGY_ONE_DEVICE,
        .origin = STRATEGY_DEFAULT,
        .environment = &alone,
        .hook_tables = strategy_hook_tables,
        .hook_table_count = strategy_hook_table_count};
    CADRE_TRY(strategy_check_program(function, error));
    environment_alone(program_environment(), 1, &alone);
    CADRE_TRY(devices_of_count(&inventory, &host, 1, &shape.devices, error));
    CADRE_TRY(strategy_create(&shape, function, &call, &strategy, error));
    cadre_show_progress(strategy, false);
    if (made_by != getpid()) {
        made_by = getpid();
        atexit(end_with_process);
    }
    return CADRE_OK;
}

/* NULL: it cannot be made; the error is the calling thread's. */
static cadre_strategy *default_strategy(void)
{
    struct cadre_error error = {0};
    cadre_strategy *strategy = strategy_registry_default();
    if (strategy != NULL) {
        return strategy;
    }
    pthread_mutex_lock(&making);
    strategy = strategy_registry_default();
    cadre_status status = strategy == NULL ? default_strategy_make(&error) : CADRE_OK;
    strategy = strategy_registry_default();
    pthread_mutex_unlock(&making);
    api_return(status, &error);
    CADRE_ASSERT((strategy != NULL) == (status == CADRE_OK));
    return strategy;
}

/* --- public --- */

cadre_strategy *cadre_strategy_current(void)
{
    cadre_strategy *strategy = scope_current();
    return strategy != NULL ? strategy : default_strategy();
}

/* Outside of all scopes and functions a thread is in the default strategy's replica context. */
cadre_replica *cadre_replica_current(void)
{
    cadre_replica *replica = context_replica();
    if (replica != NULL || scope_current() != NULL) {
        return replica;
    }
    cadre_strategy *strategy = default_strategy();
    return strategy == NULL ? NULL : &strategy->replicas[0];
}
