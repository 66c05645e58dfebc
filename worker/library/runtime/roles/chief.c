/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/roles/chief.h"

#include "common/pure/assert.h"
#include "worker/library/runtime/border/show.h"
#include "worker/library/runtime/closures/closure.h"
#include "worker/library/runtime/closures/scheduler.h"
#include "worker/library/runtime/served/served.h"
#include "worker/library/runtime/roles/hands.h"
#include "worker/library/runtime/strategy/strategy.h"

cadre_status chief_begin(
    struct crew_state *crew, cadre_strategy *strategy, bool by_hand, struct cadre_error *error)
{
    CADRE_ASSERT(crew->role == ROLE_CHIEF);
    CADRE_ASSERT(crew->hands == NULL);
    CADRE_ASSERT(crew->scheduler == NULL);
    crew_set_current(crew);
    if (by_hand) {
        CADRE_TRY(hands_open(crew, error));
    }
    CADRE_TRY(crew_meet(crew, closure_unwanted, error));
    CADRE_TRY(served_begin(crew, error));
    CADRE_TRY(crew_await_servers(crew, error));
    CADRE_TRY(scheduler_begin(crew, strategy, error));
    return by_hand ? hands_start_workers(crew->hands, error) : CADRE_OK;
}

void chief_end(struct crew_state *crew)
{
    scheduler_end(crew);
    hands_end_workers(crew->hands);
    served_end(crew);
    crew_end(crew);
    hands_end_servers(crew->hands);
    crew->hands = NULL;
}

/* As TensorFlow has it: it is not what workers are for, but may be wanted once. */
static cadre_status check_part(const struct step_order *order, struct cadre_error *error)
{
    (void)error;
    struct crew_state *crew = order->strategy->crew;
    if (crew != NULL && crew->scheduler != NULL && !crew->scheduler->takes_step &&
        !order->strategy->changes && !crew->scheduler->warned_run) {
        crew->scheduler->warned_run = true;
        show_warning("cadre_run was called with a strategy with parameter servers outside of "
                     "closures: it runs here, on the chief, and not on workers; schedule a "
                     "function that calls it (cadre_schedule)");
    }
    return CADRE_OK;
}

static void close_part(cadre_strategy *strategy)
{
    if (strategy->crew != NULL) {
        chief_end(strategy->crew);
    }
}

static void free_part(cadre_strategy *strategy)
{
    crew_free(strategy->crew);
    strategy->crew = NULL;
}

const struct participant crew_participant = {
    .name = "crew",
    .check = check_part,
    .close = close_part,
    .free = free_part,
};
