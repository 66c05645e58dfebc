/* SPDX-License-Identifier: Apache-2.0
 * The state at the first position of a generation: the exchange of statuses, the decision,
 * passing on, taking over; and the load from a checkpoint. generation.c and join.c call it. */
#include "worker/library/runtime/regroup/generation.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/connect_devices.h"
#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/replica/replica_pool.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/hooks.h"

/* One synchronization, for local replica 0 of this task. */
struct sync {
    cadre_strategy *strategy;
    struct member_status own;
    struct sync_decision decision;
    struct member_status source;    /* of decision.source */
    struct member_status *statuses; /* owned; of all members, once they are known */
    struct device_summary devices;
    struct sync_plan sync_plan;
    bool takes_between_steps;
};

/* --- the exchange of statuses --- */

static struct member_status point_of(const cadre_strategy *strategy)
{
    struct member_status member_status;
    memset(&member_status, 0, sizeof member_status);
    member_status.position = strategy_position(strategy);
    member_status.between_steps = strategy->regroup->between_steps_count;
    member_status.flags =
        (strategy->state == STATE_WARM ? MEMBER_STATUS_WARM : 0) |
        (strategy->state == STATE_RESTORES ? MEMBER_STATUS_RESTORES : 0) |
        (between_steps_known(strategy->regroup->between_steps) ? MEMBER_STATUS_BETWEEN_STEPS : 0);
    member_status.collectives = strategy->step.collectives_begun;
    hooks_fill_status(strategy, &member_status);
    struct cursor cursor;
    struct consumption consumption;
    task_get_reported(strategy->task, &cursor, &consumption);
    member_status_set_cursor(&member_status, &cursor, &consumption);
    connect_devices_offer(strategy, &member_status);
    return member_status;
}

/* The statuses of all; *ret_points is the caller's to free, one for each rank. */
static cadre_status sync_exchange(cadre_strategy *strategy, uint32_t local,
    const struct member_status *own, struct member_status **ret_points, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT size_t *sizes = calloc(strategy->replica_count, sizeof sizes[0]);
    if (sizes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a roster");
    }
    void *statuses = NULL;
    CADRE_TRY(mesh_gather_any(strategy->mesh, local, strategy->replica_count, own,
        local == 0 ? sizeof *own : 0, &statuses, sizes, error));
    for (uint32_t i = 0; i < strategy->replica_count; i++) {
        bool first = i % strategy->local_replicas == 0;
        if (sizes[i] != (first ? sizeof *own : 0)) {
            free(statuses);
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "another task of the job runs another version of the library; submit one program "
                "for all tasks");
        }
    }
    *ret_points = statuses;
    return CADRE_OK;
}

static void decide_what_passes(struct sync *sync)
{
    const cadre_strategy *strategy = sync->strategy;
    const struct sync_decision *decision = &sync->decision;
    uint64_t resume = strategy->roster.resume;
    bool lacks = member_status_lacks_state(&sync->own, resume, decision->source != UINT32_MAX);
    CADRE_ASSERT(!decision->state || decision->source < strategy->roster.member_count);
    sync->sync_plan = (struct sync_plan){.source = decision->source,
        .gives = decision->source == strategy->roster.rank,
        .state = decision->state,
        .step = decision->step,
        .takes_state = lacks,
        .takes_step = decision->step && lacks};
    sync->takes_between_steps = decision->between_steps_source != UINT32_MAX && !lacks &&
                                sync->own.between_steps < decision->between_steps;
}

/* All exchange their statuses and decide; local replica 0 keeps the decision for the task. */
static cadre_status decide_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct sync *sync = user;
    uint32_t count = strategy->roster.member_count;
    uint64_t resume = strategy->roster.resume;
    CADRE_FREE_AT_EXIT struct member_status *statuses = NULL;
    CADRE_TRY(sync_exchange(strategy, local, &sync->own, &statuses, error));
    uint32_t misfit = sync_layout_mismatch(statuses, count, resume, strategy->roster.source);
    if (misfit != UINT32_MAX) {
        bool differs = sync->own.layout != statuses[misfit].layout;
        CADRE_TRY(hooks_compare_layout(strategy, local, misfit, differs, error));
    }
    if (local != 0) {
        return CADRE_OK;
    }
    sync->devices = member_status_devices(statuses, count);
    CADRE_TRY(
        sync_decide(statuses, count, resume, strategy->roster.source, &sync->decision, error));
    if (sync->decision.source != UINT32_MAX) {
        sync->source = statuses[sync->decision.source];
    }
    decide_what_passes(sync);
    sync->statuses = statuses;
    statuses = NULL;
    return CADRE_OK;
}

/* --- passing on --- */

static cadre_status transfer_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    const struct sync *sync = user;
    CADRE_TRY(hooks_transfer(strategy, local, &sync->sync_plan, error));
    if (sync->decision.between_steps_source == UINT32_MAX) {
        return CADRE_OK;
    }
    const struct transfer between_steps = {.what = "the result of the last collective",
        .source = sync->decision.between_steps_source,
        .bytes = between_steps_bytes(strategy->regroup->between_steps),
        .read = between_steps_read,
        .write = sync->takes_between_steps ? between_steps_write : NULL,
        .user = strategy->regroup->between_steps};
    return transfer_run(strategy, local, &between_steps, error);
}

/* After all tasks agree on what is missing: each prepares, then all pass on. A task that cannot
 * take part closes its mesh. */
static cadre_status pass_on(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    CADRE_ASSERT(!(sync->sync_plan.gives && sync->sync_plan.takes_state));
    cadre_status status = hooks_prepare(strategy, &sync->sync_plan, error);
    if (status != CADRE_OK) {
        strategy->mesh->ops->abort(strategy->mesh, error->text);
        return status;
    }
    return strategy_each_replica(strategy, transfer_on_replica, sync, error);
}

/* --- taking over --- */

/* A task that was in the generation before reaches the source's position by itself: its program
 * begins epochs. A joiner re-enters the job there. */
static cadre_status reenter(
    cadre_strategy *strategy, uint64_t between_steps, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->state != STATE_PRESENT);
    strategy->catching_up = strategy->state == STATE_WARM;
    strategy->state = STATE_PRESENT;
    strategy->regroup->between_steps_count = between_steps;
    return hooks_install(strategy, INSTALL_JOINED, error);
}

/* The task core decides: when it was frozen meanwhile, what came does not count. */
static bool is_accepted(const struct sync *sync)
{
    struct cursor cursor = {0};
    struct consumption consumption = {0};
    if (sync->decision.source != UINT32_MAX) {
        member_status_get_cursor(&sync->source, &cursor, &consumption);
    }
    return task_synced(
        sync->strategy->task, sync->strategy->roster.generation, &cursor, &consumption);
}

static cadre_status sync_frozen(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_ABORTED, "another task was lost while the generation formed");
}

static cadre_status take_over(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    CADRE_TRY(hooks_validate(strategy, &sync->sync_plan, error));
    if (!is_accepted(sync)) {
        return sync_frozen(error);
    }
    if (sync->sync_plan.takes_state && strategy->state == STATE_PRESENT) {
        between_steps_forget(strategy);
        return hooks_install(strategy, INSTALL_ADOPTED_STEP, error);
    }
    if (sync->sync_plan.takes_state) {
        return reenter(strategy, sync->decision.between_steps, error);
    }
    if (sync->takes_between_steps) {
        between_steps_replay(strategy->regroup->between_steps);
    }
    return CADRE_OK;
}

cadre_status sync_state(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->mesh != NULL);
    CADRE_ASSERT(!atomic_load(&strategy->step.running));
    if (strategy->roster.source == SOURCE_NONE && strategy->roster.resume > 0 &&
        strategy_position(strategy) == 0 && strategy->state == STATE_PRESENT) {
        strategy->state = STATE_RESTORES;
    }
    struct sync sync = {.strategy = strategy, .own = point_of(strategy)};
    cadre_status status = strategy_each_replica(strategy, decide_on_replica, &sync, error);
    if (status == CADRE_OK) {
        hooks_members(strategy, sync.statuses, strategy->roster.member_count);
        status = pass_on(&sync, error);
    }
    if (status == CADRE_OK && sync.decision.joins) {
        status = hooks_joined(strategy, sync.decision.source, error);
    }
    if (status == CADRE_OK) {
        status = take_over(&sync, error);
    }
    free(sync.statuses);
    strategy->regroup->device_summary = sync.devices;
    hooks_cleanup(strategy);
    return status;
}

/* --- from a checkpoint --- */

/* All receive whether the chief could load it, before they wait for it; and if not, the reason, so
 * that each reports it, whichever reports first. */
static cadre_status receive_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct cadre_error *failure = user;
    bool chief = strategy->roster.rank == 0;
    struct cadre_error received = chief ? *failure : (struct cadre_error){0};
    struct mesh_buffer buffer = {.data = &received, .bytes = sizeof received, .dtype = MESH_U8};
    cadre_status status =
        strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &buffer, 1, NULL, error);
    if (!chief && local == 0 && status == CADRE_OK) {
        *failure = received;
    }
    return status;
}

/* Rank 0 passes its state to all others. */
static cadre_status sync_spread(cadre_strategy *strategy, struct cadre_error *error)
{
    bool chief = strategy->roster.rank == 0;
    struct sync sync = {.strategy = strategy,
        .decision = {.between_steps_source = UINT32_MAX},
        .sync_plan = {.source = 0, .gives = chief, .state = true, .takes_state = !chief}};
    CADRE_TRY(pass_on(&sync, error));
    return hooks_validate(strategy, &sync.sync_plan, error);
}

static cadre_status restore_once(cadre_strategy *strategy, struct cadre_error *error)
{
    struct cadre_error failure = {0};
    if (strategy->roster.rank == 0) {
        hooks_load(strategy, &failure);
    }
    CADRE_TRY(strategy_each_replica(strategy, receive_on_replica, &failure, error));
    if (failure.code != CADRE_OK) {
        *error = failure;
        return failure.code;
    }
    cadre_status status =
        strategy->roster.member_count > 1 ? sync_spread(strategy, error) : CADRE_OK;
    if (status == CADRE_OK) {
        status = reenter(strategy, strategy->regroup->between_steps_count, error);
    }
    hooks_cleanup(strategy);
    return status;
}

cadre_status sync_restore(cadre_strategy *strategy, struct cadre_error *error)
{
    while (strategy->state == STATE_RESTORES) {
        struct cadre_error cause = {0};
        cadre_status status = restore_once(strategy, &cause);
        if (status == CADRE_OK) {
            return CADRE_OK;
        }
        if (!strategy_is_peer_failure(status)) {
            *error = cause;
            return strategy_fail(strategy, error);
        }
        CADRE_TRY(strategy_regroup(strategy, &cause, error));
    }
    return CADRE_OK;
}
