/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/sync.h"
#include "worker/library/runtime/regroup/regroup_part.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/connect.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/regroup/points.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/replica/each_replica.h"
#include "worker/library/runtime/replica/step_admission.h"
#include "worker/library/runtime/strategy/participants.h"

/* One synchronization, as local replica 0 of this task sees it. */
struct sync {
    cadre_strategy *strategy;
    struct point own;
    struct points_decision decision;
    struct point source; /* of decision.source */
    struct told_devices devices;
    struct passing passing;
    bool takes_outside;
};

/* --- telling where all stand --- */

static struct point point_of(const cadre_strategy *strategy)
{
    struct point point;
    memset(&point, 0, sizeof point);
    point.position = strategy_position(strategy);
    point.outside = strategy->regroup->outside_count;
    point.flags = (strategy->state == STATE_WARM ? POINT_WARM : 0) |
                  (strategy->state == STATE_RESTORES ? POINT_RESTORES : 0) |
                  (outside_known(strategy->regroup->outside) ? POINT_OUTSIDE : 0);
    point.collectives = strategy->step.collectives_begun;
    participants_tell(strategy, &point);
    struct cursor cursor;
    struct feed feed;
    task_told(strategy->task, &cursor, &feed);
    point_set_cursor(&point, &cursor, &feed);
    connect_offer(strategy, &point);
    return point;
}

/* What all told; *ret_points is the caller's to free, one for each rank. */
static cadre_status exchange(cadre_strategy *strategy, uint32_t local, const struct point *own,
    struct point **ret_points, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT size_t *sizes = calloc(strategy->replica_count, sizeof sizes[0]);
    if (sizes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a roster");
    }
    void *points = NULL;
    CADRE_TRY(mesh_gather_any(strategy->mesh, local, strategy->replica_count, own,
        local == 0 ? sizeof *own : 0, &points, sizes, error));
    for (uint32_t i = 0; i < strategy->replica_count; i++) {
        bool first = i % strategy->local_replicas == 0;
        if (sizes[i] != (first ? sizeof *own : 0)) {
            free(points);
            return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
                "another task of the job runs another version of the library; submit one program "
                "for all tasks");
        }
    }
    *ret_points = points;
    return CADRE_OK;
}

static void decide_what_passes(struct sync *sync)
{
    const cadre_strategy *strategy = sync->strategy;
    const struct points_decision *decision = &sync->decision;
    uint64_t resume = strategy->roster.resume;
    bool lacks = point_lacks_state(&sync->own, resume, decision->source != UINT32_MAX);
    CADRE_ASSERT(!decision->state || decision->source < strategy->roster.member_count);
    sync->passing = (struct passing){.source = decision->source,
        .gives = decision->source == strategy->roster.rank,
        .state = decision->state,
        .step = decision->step,
        .takes_state = lacks,
        .takes_step = decision->step && lacks};
    sync->takes_outside =
        decision->outside_source != UINT32_MAX && !lacks && sync->own.outside < decision->outside;
}

/* First all tell and decide; local replica 0 keeps it for the task. */
static cadre_status decide_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct sync *sync = user;
    uint32_t count = strategy->roster.member_count;
    uint64_t resume = strategy->roster.resume;
    CADRE_FREE_AT_EXIT struct point *points = NULL;
    CADRE_TRY(exchange(strategy, local, &sync->own, &points, error));
    uint32_t misfit = points_misfit(points, count, resume, strategy->roster.source);
    if (misfit != UINT32_MAX) {
        bool differs = sync->own.layout != points[misfit].layout;
        CADRE_TRY(participants_explain(strategy, local, misfit, differs, error));
    }
    if (local != 0) {
        return CADRE_OK;
    }
    sync->devices = points_devices(points, count);
    CADRE_TRY(
        points_decide(points, count, resume, strategy->roster.source, &sync->decision, error));
    if (sync->decision.source != UINT32_MAX) {
        sync->source = points[sync->decision.source];
    }
    decide_what_passes(sync);
    return CADRE_OK;
}

/* --- passing on --- */

static cadre_status pass_on_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    const struct sync *sync = user;
    CADRE_TRY(participants_pass(strategy, local, &sync->passing, error));
    if (sync->decision.outside_source == UINT32_MAX) {
        return CADRE_OK;
    }
    const struct transfer outside = {.what = "the result of the last collective",
        .source = sync->decision.outside_source,
        .bytes = outside_bytes(strategy->regroup->outside),
        .read = outside_read,
        .write = sync->takes_outside ? outside_write : NULL,
        .user = strategy->regroup->outside};
    return transfer_run(strategy, local, &outside, error);
}

/* After all tasks agree on what is missing: each prepares, then all pass on. A task that cannot
 * take part says so by the end of the mesh. */
static cadre_status pass_on(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    CADRE_ASSERT(!(sync->passing.gives && sync->passing.takes_state));
    cadre_status status = participants_prepare(strategy, &sync->passing, error);
    if (status != CADRE_OK) {
        strategy->mesh->ops->abort(strategy->mesh, error->text);
        return status;
    }
    return strategy_each_replica(strategy, pass_on_here, sync, error);
}

/* --- taking over --- */

/* A task that was there goes its own way to where the source stands: its program begins epochs
 * itself. One that comes from outside is led there. */
static cadre_status enter_anew(
    cadre_strategy *strategy, uint64_t outside, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->state != STATE_PRESENT);
    strategy->arrives = strategy->state == STATE_WARM;
    strategy->state = STATE_PRESENT;
    strategy->regroup->outside_count = outside;
    return participants_enter(strategy, ENTERS_ANEW, error);
}

/* The task core has the last word: when it was frozen meanwhile, nothing came. */
static bool is_accepted(const struct sync *sync)
{
    struct cursor cursor = {0};
    struct feed feed = {0};
    if (sync->decision.source != UINT32_MAX) {
        point_get_cursor(&sync->source, &cursor, &feed);
    }
    return task_synced(sync->strategy->task, sync->strategy->roster.generation, &cursor, &feed);
}

static cadre_status frozen(struct cadre_error *error)
{
    return cadre_error_set(
        error, CADRE_ABORTED, "another task was lost while the generation formed");
}

static cadre_status take_over(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    CADRE_TRY(participants_read(strategy, &sync->passing, error));
    if (!is_accepted(sync)) {
        return frozen(error);
    }
    if (sync->passing.takes_state && strategy->state == STATE_PRESENT) {
        outside_forget(strategy);
        return participants_enter(strategy, ENTERS_ADOPTING, error);
    }
    if (sync->passing.takes_state) {
        return enter_anew(strategy, sync->decision.outside, error);
    }
    if (sync->takes_outside) {
        outside_play(strategy->regroup->outside);
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
    cadre_status status = strategy_each_replica(strategy, decide_here, &sync, error);
    if (status == CADRE_OK) {
        status = pass_on(&sync, error);
    }
    if (status == CADRE_OK && sync.decision.joins) {
        status = participants_greet(strategy, sync.decision.source, error);
    }
    if (status == CADRE_OK) {
        status = take_over(&sync, error);
    }
    strategy->regroup->told_devices = sync.devices;
    participants_settle(strategy);
    return status;
}

/* --- from a checkpoint --- */

/* All hear whether the chief could load it, before they wait for it; and why not, so that the
 * reason is told whoever of them is heard first. */
static cadre_status hear_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct cadre_error *failure = user;
    bool chief = strategy->roster.rank == 0;
    struct cadre_error heard = chief ? *failure : (struct cadre_error){0};
    struct mesh_buffer buffer = {.data = &heard, .bytes = sizeof heard, .dtype = MESH_U8};
    cadre_status status =
        strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &buffer, 1, NULL, error);
    if (!chief && local == 0 && status == CADRE_OK) {
        *failure = heard;
    }
    return status;
}

/* What rank 0 has goes to all others. */
static cadre_status spread(cadre_strategy *strategy, struct cadre_error *error)
{
    bool chief = strategy->roster.rank == 0;
    struct sync sync = {.strategy = strategy,
        .decision = {.outside_source = UINT32_MAX},
        .passing = {.source = 0, .gives = chief, .state = true, .takes_state = !chief}};
    CADRE_TRY(pass_on(&sync, error));
    return participants_read(strategy, &sync.passing, error);
}

static cadre_status restore_once(cadre_strategy *strategy, struct cadre_error *error)
{
    struct cadre_error failure = {0};
    if (strategy->roster.rank == 0) {
        participants_load(strategy, &failure);
    }
    CADRE_TRY(strategy_each_replica(strategy, hear_here, &failure, error));
    if (failure.code != CADRE_OK) {
        *error = failure;
        return failure.code;
    }
    cadre_status status = strategy->roster.member_count > 1 ? spread(strategy, error) : CADRE_OK;
    if (status == CADRE_OK) {
        status = enter_anew(strategy, strategy->regroup->outside_count, error);
    }
    participants_settle(strategy);
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
        if (!strategy_is_peers(status)) {
            *error = cause;
            return strategy_fail(strategy, error);
        }
        CADRE_TRY(strategy_regroup(strategy, &cause, error));
    }
    return CADRE_OK;
}
