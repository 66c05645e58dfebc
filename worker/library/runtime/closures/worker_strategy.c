/* SPDX-License-Identifier: Apache-2.0
 * See worker_strategy.h. Called by closure_worker.c and closure_run.c. */
#include "worker/library/runtime/closures/worker_strategy.h"

#include <sched.h>

#include "cadre/program.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collectives.h"
#include "worker/library/runtime/devices/devices.h"
#include "worker/library/runtime/input/input_hooks.h"
#include "worker/library/runtime/preemption/preemption.h"
#include "worker/library/runtime/program/program.h"
#include "worker/library/runtime/reductions/reductions.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/state/state_hooks.h"
#include "worker/library/runtime/step/outputs.h"
#include "worker/library/runtime/strategy/scope.h"
#include "worker/library/runtime/strategy/strategy_registry.h"
#include "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h"
#include "worker/library/runtime/variables/variables_hooks.h"

/* The bits of a step's number below its closure's, in the seed of random streams. */
#define RUN_BITS 20

/* --- hooks for closures --- */

/* The numbers that are drawn in a closure are the same when it runs again, on any worker. */
static void draw_by_closure(const struct worker_strategy *worker)
{
    uint64_t closure = worker->closure == NULL ? 0 : worker->closure->number;
    worker->strategy->random_key =
        closure << RUN_BITS | (worker->runs & ((UINT64_C(1) << RUN_BITS) - 1));
}

static cadre_status worker_strategy_begin(struct step_order *order, struct cadre_error *error)
{
    (void)error;
    order->strategy->worker->runs++;
    draw_by_closure(order->strategy->worker);
    return CADRE_OK;
}

static cadre_status act_for_closure(const cadre_replica *replica, struct cadre_error *error)
{
    (void)error;
    const struct worker_strategy *worker = replica->strategy->worker;
    ps_job_enter(worker->ps_job);
    closure_inherit(worker->ps_job->index, worker->closure);
    return CADRE_OK;
}

static void worker_strategy_returned(cadre_replica *replica, const struct cadre_error *failure)
{
    (void)failure;
    if (replica->local != 0) { /* that is the thread of the closure itself */
        closure_inherit(UINT32_MAX, NULL);
        ps_job_enter(NULL);
    }
}

static const struct strategy_hooks closure_participant = {
    .name = "closure",
    .begin = worker_strategy_begin,
    .bind = act_for_closure,
    .returned = worker_strategy_returned,
};

/* As a program's, without the parts for several tasks: it compares no states, and has no ps job. */
static const struct strategy_hooks *const hooks[] = {
    &preemption_hooks,
    &input_hooks,
    &state_hooks,
    &closure_participant,
    &outputs_hooks,
    &reductions_hooks,
    &variables_hooks,
    &collectives_hooks,
    &devices_hooks,
};

/* --- beginning and end --- */

uint32_t worker_strategy_replicas(void)
{
    const struct device_inventory inventory = devices_inventory_default();
    uint32_t asked = program_environment()->replicas;
    return asked != 0 ? asked : devices_default(&inventory);
}

static cadre_status choose_devices(
    const struct ps_job_state *ps_job, struct device_list *ret_list, struct cadre_error *error)
{
    const struct device_host host = {.job = "worker", .task = (int32_t)ps_job->index};
    const struct device_inventory inventory = devices_inventory_default();
    return devices_of_count(&inventory, &host, worker_strategy_replicas(), ret_list, error);
}

cadre_status worker_strategy_open(
    struct worker_strategy *worker, struct ps_job_state *ps_job, struct cadre_error *error)
{
    STRATEGY_CALL call = {0};
    CADRE_ASSERT(ps_job->role == ROLE_WORKER);
    *worker = (struct worker_strategy){.ps_job = ps_job};
    struct strategy_config shape = {.kind = STRATEGY_MIRRORED,
        .origin = STRATEGY_OF_WORKER,
        .environment = &worker->environment,
        .hook_tables = hooks,
        .hook_table_count = sizeof hooks / sizeof hooks[0],
        .worker = worker};
    CADRE_TRY(choose_devices(ps_job, &shape.devices, error));
    environment_alone(program_environment(), shape.devices.count, &worker->environment);
    worker->environment.output_asked = false;
    worker->environment.checkpoints_asked = false;
    CADRE_TRY(
        strategy_create(&shape, "the beginning of a worker", &call, &worker->strategy, error));
    cadre_show_progress(worker->strategy, false);
    scope_set_worker(worker->strategy);
    return CADRE_OK;
}

void worker_strategy_close(struct worker_strategy *worker)
{
    STRATEGY_CALL call = {0};
    const char *under_way;
    if (worker->strategy == NULL) {
        return;
    }
    CADRE_ASSERT(worker->closure == NULL);
    scope_set_worker(NULL);
    /* A thread of the program that calls with this strategy is refused and returns at once. */
    while (!strategy_registry_acquire(worker->strategy, "the end of a worker", &call, &under_way)) {
        sched_yield();
    }
    strategy_close(worker->strategy);
    worker->strategy = NULL;
}

/* --- closures --- */

void worker_strategy_enter(struct worker_strategy *worker, cadre_closure *closure)
{
    CADRE_ASSERT(worker->strategy != NULL);
    CADRE_ASSERT(worker->closure == NULL); /* one closure at a time */
    closure_enter(closure);
    ps_job_enter_closure(closure->number);
    worker->closure = closure;
    worker->runs = 0;
    draw_by_closure(worker);
}

void worker_strategy_leave(struct worker_strategy *worker)
{
    ps_job_enter_closure(0);
    closure_leave(worker->closure);
    worker->closure = NULL;
    worker->runs = 0;
}
