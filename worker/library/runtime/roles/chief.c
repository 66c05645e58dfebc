/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/roles/chief.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/scheduler.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status chief_begin(
    struct ps_job_state *ps_job, cadre_strategy *strategy, bool by_hand, struct cadre_error *error)
{
    CADRE_ASSERT(ps_job->role == ROLE_CHIEF);
    CADRE_ASSERT(ps_job->local_servers == NULL);
    CADRE_ASSERT(ps_job->scheduler == NULL);
    ps_job_set_current(ps_job);
    if (by_hand) {
        CADRE_TRY(local_servers_open(ps_job, error));
    }
    CADRE_TRY(ps_job_connect(ps_job, closure_is_cancelled, error));
    CADRE_TRY(served_begin(ps_job, error));
    CADRE_TRY(ps_job_await_servers(ps_job, error));
    if (strategy_position(strategy) > 0) { /* goes on from a checkpoint */
        CADRE_TRY(ps_job_publish_step(strategy_position(strategy), error));
    }
    CADRE_TRY(scheduler_begin(ps_job, strategy, error));
    return by_hand ? local_servers_start_workers(ps_job->local_servers, error) : CADRE_OK;
}

/* Ends all that runs for it, and its connections; the directory is there until ps_job_free. */
static void chief_end(struct ps_job_state *ps_job)
{
    scheduler_end(ps_job);
    local_servers_end_workers(ps_job->local_servers);
    served_end(ps_job);
    ps_job_end(ps_job);
    local_servers_end_servers(ps_job->local_servers);
    ps_job->local_servers = NULL;
}

/* As in TensorFlow: a step on the chief is unusual, but allowed, with one warning. */
static cadre_status check_part(const struct step_order *order, struct cadre_error *error)
{
    (void)error;
    struct ps_job_state *ps_job = order->strategy->ps_job;
    if (ps_job != NULL && ps_job->scheduler != NULL && !ps_job->scheduler->takes_step &&
        !order->strategy->changes && !ps_job->scheduler->warned_run) {
        ps_job->scheduler->warned_run = true;
        show_warning("cadre_run was called with a strategy with parameter servers outside of "
                     "closures: it runs here, on the chief, and not on workers; schedule a "
                     "function that calls it (cadre_schedule)");
    }
    return CADRE_OK;
}

static void close_part(cadre_strategy *strategy)
{
    if (strategy->ps_job != NULL) {
        chief_end(strategy->ps_job);
    }
}

static void free_part(cadre_strategy *strategy)
{
    ps_job_free(strategy->ps_job);
    strategy->ps_job = NULL;
}

const struct strategy_hooks ps_job_hooks = {
    .name = "ps job",
    .check = check_part,
    .close = close_part,
    .free = free_part,
};
