/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/regroup/sync.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/runtime/regroup/adoption.h"
#include "worker/library/runtime/regroup/connect.h"
#include "worker/library/runtime/state/checkpoint.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/state/layout.h"
#include "worker/library/runtime/state/manifest.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/regroup/outside.h"
#include "worker/library/runtime/regroup/points.h"
#include "worker/library/runtime/state/restore.h"
#include "worker/library/runtime/state/state.h"
#include "worker/library/runtime/regroup/transfer.h"

/* --- what is being received --- */

struct text_block {
    char *bytes; /* owned */
    size_t size;
};

/* One synchronization, as local replica 0 of this task sees it. */
struct sync {
    cadre_strategy *strategy;
    struct point own;
    struct points_decision decision;
    struct point source; /* of decision.source */
    struct points_devices devices;
    bool takes_state;
    bool takes_step;
    bool takes_outside;
    bool receiving; /* state_receive was called */
    struct text_block text;
    struct step_block step;
    struct taken_step taken;
};

static void sync_clear(struct sync *sync)
{
    free(sync->text.bytes);
    free(sync->step.bytes);
    taken_step_clear(&sync->taken);
}

static cadre_status read_text(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* it is in the host's memory */
    memcpy(into, ((struct sync *)user)->text.bytes + offset, bytes);
    return CADRE_OK;
}

static cadre_status claim(
    uint64_t total, size_t offset, void **bytes, size_t *size, struct cadre_error *error)
{
    if (offset == 0) {
        free(*bytes);
        *size = (size_t)total;
        *bytes = malloc((size_t)total + 1);
        if (*bytes == NULL) {
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for %" PRIu64 " bytes of another task", total);
        }
    }
    return CADRE_OK;
}

static cadre_status write_text(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct text_block *text = &((struct sync *)user)->text;
    if (total > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the positions and strings of the state take %" PRIu64 " bytes; at most %d are "
            "possible",
            total, LIMIT_MANIFEST_BYTES);
    }
    CADRE_TRY(claim(total, offset, (void **)&text->bytes, &text->size, error));
    if (bytes > 0) {
        memcpy(text->bytes + offset, from, bytes);
    }
    return CADRE_OK;
}

static cadre_status read_step(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* it is in the host's memory */
    memcpy(into, ((struct sync *)user)->step.bytes + offset, bytes);
    return CADRE_OK;
}

static cadre_status write_step(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct step_block *step = &((struct sync *)user)->step;
    CADRE_TRY(claim(total, offset, (void **)&step->bytes, &step->size, error));
    if (bytes > 0) {
        memcpy(step->bytes + offset, from, bytes);
    }
    return CADRE_OK;
}

static cadre_status read_space(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    return state_read(((struct sync *)user)->strategy, offset, into, bytes, error);
}

static cadre_status write_space(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    cadre_strategy *strategy = ((struct sync *)user)->strategy;
    if (total != state_bytes(strategy)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the state of another task has %" PRIu64 " bytes, that of this one %zu: all tasks must "
            "make the same variables",
            total, state_bytes(strategy));
    }
    return bytes > 0 ? state_write(strategy, offset, from, bytes, error) : CADRE_OK;
}

/* --- telling where all stand --- */

static struct point point_of(const cadre_strategy *strategy)
{
    struct point point;
    memset(&point, 0, sizeof point);
    point.position = strategy_position(strategy);
    point.outside = strategy->outside_count;
    point.flags = (strategy->state == STATE_WARM ? POINT_WARM : 0) |
                  (strategy->state == STATE_RESTORES ? POINT_RESTORES : 0) |
                  (outside_known(strategy->outside) ? POINT_OUTSIDE : 0);
    point.layout = state_layout(strategy);
    point.collectives = strategy->step.collectives_begun;
    const struct applied_step *applied = &strategy->applied;
    if (applied->known && applied->position + 1 == point.position) {
        point.flags |= POINT_STEP;
        point.applied_collectives = applied->collectives;
    }
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

/* --- passing on --- */

/* At the source: what it will send. In the program's thread. */
static cadre_status prepare_source(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    if (sync->decision.state) {
        CADRE_TRY(manifest_encode(strategy, NULL, &sync->text.bytes, &sync->text.size, error));
    }
    return sync->decision.step ? step_block_make(strategy, &sync->step, error) : CADRE_OK;
}

static cadre_status prepare_taker(struct sync *sync, struct cadre_error *error)
{
    bool was_there = sync->strategy->state == STATE_PRESENT;
    cadre_status status = state_receive(sync->strategy, was_there, !was_there, error);
    sync->receiving = status == CADRE_OK;
    return status;
}

static cadre_status pass_on(struct sync *sync, uint32_t local, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    const struct points_decision *decision = &sync->decision;
    if (decision->state) {
        struct transfer text = {.what = "the positions of the state",
            .source = decision->source,
            .bytes = sync->text.size,
            .read = read_text,
            .write = sync->takes_state ? write_text : NULL,
            .user = sync};
        CADRE_TRY(transfer_run(strategy, local, &text, error));
        struct transfer space = {.what = "the state",
            .source = decision->source,
            .bytes = state_bytes(strategy),
            .read = read_space,
            .write = sync->takes_state ? write_space : NULL,
            .user = sync};
        CADRE_TRY(transfer_run(strategy, local, &space, error));
    }
    if (decision->step) {
        struct transfer step = {.what = "the outputs of the last step",
            .source = decision->source,
            .bytes = sync->step.size,
            .read = read_step,
            .write = sync->takes_step ? write_step : NULL,
            .user = sync};
        CADRE_TRY(transfer_run(strategy, local, &step, error));
    }
    if (decision->outside_source != UINT32_MAX) {
        struct transfer outside = {.what = "the result of the last collective",
            .source = decision->outside_source,
            .bytes = outside_bytes(strategy->outside),
            .read = outside_read,
            .write = sync->takes_outside ? outside_write : NULL,
            .user = strategy->outside};
        CADRE_TRY(transfer_run(strategy, local, &outside, error));
    }
    return CADRE_OK;
}

/* First all tell and decide; local replica 0 keeps it for the task. */
static cadre_status decide_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct sync *sync = user;
    CADRE_FREE_AT_EXIT struct point *points = NULL;
    CADRE_TRY(exchange(strategy, local, &sync->own, &points, error));
    uint64_t resume = strategy->roster.resume;
    uint32_t misfit =
        points_misfit(points, strategy->roster.member_count, resume, strategy->roster.source);
    if (misfit != UINT32_MAX) {
        return layout_explain(
            strategy, local, misfit, sync->own.layout != points[misfit].layout, error);
    }
    if (local != 0) {
        return CADRE_OK;
    }
    struct points_decision *decision = &sync->decision;
    sync->devices = points_devices(points, strategy->roster.member_count);
    CADRE_TRY(points_decide(
        points, strategy->roster.member_count, resume, strategy->roster.source, decision, error));
    sync->takes_state = point_lacks_state(&sync->own, resume, decision->source != UINT32_MAX);
    sync->takes_step = decision->step && sync->takes_state;
    sync->takes_outside = decision->outside_source != UINT32_MAX && !sync->takes_state &&
                          sync->own.outside < decision->outside;
    if (decision->source != UINT32_MAX) {
        sync->source = points[decision->source];
    }
    return CADRE_OK;
}

static cadre_status pass_on_here(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    (void)strategy;
    return pass_on(user, local, error);
}

/* --- taking over --- */

/* Positions of datasets, to be put back. */
struct kept_positions {
    struct dataset_position *at; /* owned; by dataset */
    bool *reenters;              /* owned */
    uint64_t serial_last;
};

static cadre_status keep_positions(
    const cadre_strategy *strategy, struct kept_positions *kept, struct cadre_error *error)
{
    kept->at = calloc((size_t)strategy->dataset_count + 1, sizeof kept->at[0]);
    kept->reenters = calloc((size_t)strategy->dataset_count + 1, sizeof kept->reenters[0]);
    if (kept->at == NULL || kept->reenters == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the positions of the datasets");
    }
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        kept->at[i] = strategy->datasets[i]->at;
        kept->reenters[i] = strategy->datasets[i]->reenters;
    }
    kept->serial_last = strategy->serial_last;
    return CADRE_OK;
}

static void put_back(cadre_strategy *strategy, const struct kept_positions *kept)
{
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        strategy->datasets[i]->at = kept->at[i];
        strategy->datasets[i]->reenters = kept->reenters[i];
    }
    strategy->serial_last = kept->serial_last;
}

/* A task that was there goes its own way to where the source stands: its program begins epochs
 * itself. One that comes from outside is led there. */
static void enter_anew(cadre_strategy *strategy, uint64_t outside)
{
    strategy->arrives = strategy->state == STATE_WARM;
    strategy->state = STATE_PRESENT;
    strategy->outside_count = outside;
    strategy->reenters = true;
    registered_received(strategy);
    for (uint32_t i = 0; i < strategy->dataset_count; i++) {
        cadre_distributed_dataset *dataset = strategy->datasets[i];
        dataset->reenters = true;
        dataset->steps = distributed_steps_now(dataset);
        strategy->serial_last =
            dataset->at.serial > strategy->serial_last ? dataset->at.serial : strategy->serial_last;
    }
}

static cadre_status decode_what_came(struct sync *sync, struct cadre_error *error)
{
    uint64_t position = 0;
    if (sync->takes_step) {
        CADRE_TRY(
            step_block_read(&sync->step, sync->strategy->local_replicas, &sync->taken, error));
    }
    cadre_status status =
        manifest_decode(sync->strategy, sync->text.bytes, sync->text.size, &position, NULL, error);
    if (status != CADRE_OK && sync->strategy->state == STATE_WARM) {
        sync->strategy->failed = *error; /* it is no use to the job, and ends alone */
    }
    return status;
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

static cadre_status take_over_state(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    CADRE_FREE_AT_EXIT struct dataset_position *at = NULL;
    CADRE_FREE_AT_EXIT bool *reenters = NULL;
    struct kept_positions kept = {0};
    bool adopts = strategy->state == STATE_PRESENT;
    cadre_status status = keep_positions(strategy, &kept, error);
    at = kept.at;
    reenters = kept.reenters;
    if (status == CADRE_OK) {
        status = decode_what_came(sync, error);
    }
    if (status == CADRE_OK && !is_accepted(sync)) {
        status = frozen(error);
    }
    if (status != CADRE_OK || adopts) {
        put_back(strategy, &kept);
    }
    if (status != CADRE_OK) {
        distributed_drop_received(strategy);
        return status;
    }
    state_commit(strategy);
    sync->receiving = false;
    if (sync->takes_step) {
        taken_step_install(strategy, &sync->taken);
    }
    if (adopts) {
        outside_forget(strategy);
    } else {
        enter_anew(strategy, sync->decision.outside);
    }
    return distributed_take_received(strategy, !adopts, error);
}

static cadre_status take_over(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    if (sync->takes_state) {
        return take_over_state(sync, error);
    }
    if (!is_accepted(sync)) {
        return frozen(error);
    }
    if (sync->takes_outside) {
        outside_play(strategy->outside);
    }
    return CADRE_OK;
}

/* After all tasks agree on what is missing: each prepares, then all pass on. A task that cannot
 * take part says so by the end of the mesh. */
static cadre_status run(struct sync *sync, struct cadre_error *error)
{
    cadre_strategy *strategy = sync->strategy;
    cadre_status status = CADRE_OK;
    if (sync->decision.source == strategy->roster.rank) {
        status = prepare_source(sync, error);
    }
    if (status == CADRE_OK && sync->takes_state) {
        status = prepare_taker(sync, error);
    }
    if (status != CADRE_OK) {
        strategy->mesh->ops->abort(strategy->mesh, error->text);
        return status;
    }
    return strategy_each_replica(strategy, pass_on_here, sync, error);
}

cadre_status sync_state(cadre_strategy *strategy, struct cadre_error *error)
{
    if (strategy->roster.source == SOURCE_NONE && strategy->roster.resume > 0 &&
        strategy_position(strategy) == 0 && strategy->state == STATE_PRESENT) {
        strategy->state = STATE_RESTORES;
    }
    CADRE_CLEANUP(sync_clear) struct sync sync = {.strategy = strategy, .own = point_of(strategy)};
    cadre_status status = strategy_each_replica(strategy, decide_here, &sync, error);
    if (status == CADRE_OK) {
        status = run(&sync, error);
    }
    if (status == CADRE_OK && sync.decision.joins) {
        status = checkpoint_prove(strategy, sync.decision.source, error);
    }
    if (status == CADRE_OK) {
        status = take_over(&sync, error);
    }
    strategy->told_devices = sync.devices;
    if (sync.receiving) {
        state_undo(strategy);
    }
    return status;
}

/* --- from a checkpoint --- */

static cadre_status load(cadre_strategy *strategy, struct cadre_error *error)
{
    uint64_t position = 0;
    CADRE_TRY(restore_require(strategy, error));
    return checkpoint_load(strategy, strategy->environment->restore_path, &position, error);
}

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
    CADRE_CLEANUP(sync_clear)
    struct sync sync = {.strategy = strategy,
        .decision = {.state = true, .outside_source = UINT32_MAX},
        .takes_state = strategy->roster.rank != 0};
    cadre_status status = run(&sync, error);
    if (status == CADRE_OK && sync.takes_state) {
        status = decode_what_came(&sync, error);
    }
    if (sync.receiving && status == CADRE_OK) {
        state_commit(strategy);
    } else if (sync.receiving) {
        state_undo(strategy);
    }
    if (status != CADRE_OK) {
        distributed_drop_received(strategy);
    }
    return status;
}

static cadre_status restore_once(cadre_strategy *strategy, struct cadre_error *error)
{
    struct cadre_error failure = {0};
    if (strategy->roster.rank == 0) {
        load(strategy, &failure);
    }
    CADRE_TRY(strategy_each_replica(strategy, hear_here, &failure, error));
    if (failure.code != CADRE_OK) {
        *error = failure;
        return failure.code;
    }
    return strategy->roster.member_count > 1 ? spread(strategy, error) : CADRE_OK;
}

cadre_status sync_restore(cadre_strategy *strategy, struct cadre_error *error)
{
    while (strategy->state == STATE_RESTORES) {
        struct cadre_error cause = {0};
        cadre_status status = restore_once(strategy, &cause);
        if (status == CADRE_OK) {
            restore_close(strategy); /* of one that was rank 0 before */
            enter_anew(strategy, strategy->outside_count);
            status = distributed_take_received(strategy, true, &cause);
        }
        if (status == CADRE_OK) {
            return CADRE_OK;
        } else if (!strategy_is_peers(status)) {
            *error = cause;
            return strategy_fail(strategy, error);
        } else {
            CADRE_TRY(strategy_regroup(strategy, &cause, error));
        }
    }
    return CADRE_OK;
}
