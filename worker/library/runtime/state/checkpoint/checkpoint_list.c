/* SPDX-License-Identifier: Apache-2.0
 * Which checkpoints there are: the first task lists them, all receive the list. */
#include <stdlib.h>
#include <string.h>

#include "cadre/checkpoint.h"
#include "common/base/cleanup.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/generation.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/checkpoint/first_task.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

struct listing {
    uint64_t positions[LIMIT_CHECKPOINTS_KEPT]; /* newest first; of local replica 0 */
    uint64_t count;
    struct first_task first;
};

/* Published, or the one that the program went on from. */
static uint64_t newest_of(const cadre_strategy *strategy)
{
    uint64_t published = task_published(strategy->task);
    uint64_t restored = strategy->state_part->checkpointer->restored_at;
    bool behind = restored != POSITION_NONE && (published == POSITION_NONE || published < restored);
    return behind ? restored : published;
}

/* The newest, as many as are kept. */
static cadre_status list_first(cadre_strategy *strategy, void *user, struct cadre_error *error)
{
    struct listing *listing = user;
    const struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    uint64_t newest = newest_of(strategy);
    CADRE_FREE_AT_EXIT uint64_t *positions = NULL;
    size_t count = 0;
    listing->count = 0;
    if (newest == POSITION_NONE || checkpointer->run[0] == '\0') {
        return CADRE_OK;
    }
    CADRE_TRY(checkpoint_folder_list(
        checkpointer->folder, checkpointer->run, newest, &positions, &count, error));
    count = count < checkpointer->kept ? count : checkpointer->kept; /* others are being deleted */
    listing->count = count;
    if (count > 0) {
        memcpy(listing->positions, positions, count * sizeof *positions);
    }
    return CADRE_OK;
}

static cadre_status list_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct listing *listing = user;
    cadre_status code = CADRE_OK;
    uint64_t message[LIMIT_CHECKPOINTS_KEPT + 1] = {0};
    CADRE_TRY(first_task_run(strategy, local, &listing->first, &code, error));
    if (code != CADRE_OK) {
        return CADRE_OK;
    }
    if (local == 0 && strategy->roster.rank == 0) {
        message[0] = listing->count;
        memcpy(message + 1, listing->positions, sizeof listing->positions);
    }
    const struct mesh_buffer all = {.data = message, .bytes = sizeof message, .dtype = MESH_U8};
    CADRE_TRY(strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &all, 1, NULL, error));
    if (local == 0) {
        listing->count = message[0];
        memcpy(listing->positions, message + 1, sizeof listing->positions);
    }
    return CADRE_OK;
}

static cadre_status list_all(
    cadre_strategy *strategy, struct listing *listing, struct cadre_error *error)
{
    CADRE_TRY(sync_restore(strategy, error)); /* before a first step */
    if (strategy_is_warm(strategy) || strategy_is_catching_up(strategy)) {
        return CADRE_OK;
    }
    listing->first = (struct first_task){.function = list_first,
        .user = listing,
        .key = collective_key(strategy_position(strategy), UINT64_MAX - 6)};
    CADRE_TRY(
        strategy_between_steps(strategy, "cadre_checkpoints", list_on_replica, listing, error));
    return first_task_result(&listing->first, error);
}

cadre_status cadre_checkpoints(
    cadre_strategy *strategy, uint64_t *ret_positions, uint32_t room, uint32_t *ret_count)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT struct listing *listing = calloc(1, sizeof *listing);
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = argument_require(ret_count, __func__, "ret_count", &error);
    }
    if (status == CADRE_OK && room > 0) {
        status = argument_require(ret_positions, __func__, "ret_positions", &error);
    }
    if (status == CADRE_OK && listing == NULL) {
        status = cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of checkpoints");
    }
    if (status == CADRE_OK) {
        status = list_all(strategy, listing, &error);
    }
    if (status == CADRE_OK) {
        uint32_t count = (uint32_t)listing->count;
        uint32_t shown = count < room ? count : room;
        *ret_count = count;
        for (uint32_t i = 0; i < shown; i++) {
            ret_positions[i] = listing->positions[shown - 1 - i];
        }
    }
    return api_return(status, &error);
}
