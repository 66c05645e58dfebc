/* SPDX-License-Identifier: Apache-2.0
 * Registering state of the program's own, which is a collective; and its value of a checkpoint. The
 * program calls it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/checkpoint.h"
#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/regroup/regroup.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/restore/initial_value.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/strategy/strategy.h"

static cadre_status register_check(const cadre_strategy *strategy, const char *name,
    const void *pointer, size_t size, struct cadre_error *error)
{
    char has_checkpoint_name[LIMIT_NAME_BYTES + sizeof REGISTERED_PREFIX];
    cadre_status status = name_check("registered state", name, error);
    if (status != CADRE_OK) {
        return status;
    }
    snprintf(has_checkpoint_name, sizeof has_checkpoint_name, REGISTERED_PREFIX "%s", name);
    if (registered_has_name(strategy, has_checkpoint_name) ||
        variable_lookup(strategy, has_checkpoint_name) != NULL) {
        return cadre_error_set(error, CADRE_ALREADY_EXISTS,
            "the name '%s' is taken, by another registered state or by the variable '%s'; choose "
            "another",
            name, has_checkpoint_name);
    }
    if (size == 0 || size > (size_t)INT64_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the state '%s' has %zu bytes; give the size of what `pointer` points to", name, size);
    }
    if (strategy_position(strategy) > 0 && !strategy_is_warm(strategy)) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the state '%s' was registered after the first step; register all before", name);
    }
    return argument_require(pointer, "cadre_state_register", "pointer", error);
}

struct meeting {
    const struct registered_state *state;
    struct restoration *from;  /* holds a value for it; or NULL */
    bool restored;             /* a checkpoint holds it */
    struct cadre_error own;    /* why rank 0 could not restore it; code OK: it could, or need not */
    struct cadre_error theirs; /* the same, as received; of local replica 0 */
    int64_t failures;          /* over all replicas; of local replica 0 */
};

static struct state_tensor tensor_of(const struct registered_state *state)
{
    struct state_tensor tensor = {
        .dtype = CADRE_U8, .rank = 1, .dims = {(int64_t)state->size}, .bytes = state->size};
    snprintf(tensor.name, sizeof tensor.name, REGISTERED_PREFIX "%s", state->name);
    return tensor;
}

static cadre_status restore_on_replica(cadre_strategy *strategy,
    const struct registered_state *state, struct meeting *meeting, void *bytes)
{
    CADRE_ASSERT(strategy->state == STATE_RESTORES || meeting->from != NULL);
    CADRE_ASSERT(strategy->roster.rank == 0);
    const struct state_tensor tensor = tensor_of(state);
    meeting->own = (struct cadre_error){0};
    return meeting->from != NULL ? restoration_read(meeting->from, &tensor, bytes, &meeting->own)
                                 : restore_tensor(strategy, &tensor, bytes, &meeting->own);
}

/* Shares its value of the checkpoint that the job goes on from, or that its program has named; rank
 * 0 reads it. */
static cadre_status share_restored(
    cadre_strategy *strategy, uint32_t local, struct meeting *meeting, struct cadre_error *error)
{
    const struct registered_state *state = meeting->state;
    bool reads = strategy->roster.rank == 0 && local == 0;
    CADRE_FREE_AT_EXIT void *bytes = calloc(1, state->size);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of the registered state '%s'", state->size, state->name);
    }
    int64_t failures =
        reads && restore_on_replica(strategy, state, meeting, bytes) != CADRE_OK ? 1 : 0;
    const struct mesh_buffer flag = {
        .data = &failures, .bytes = sizeof failures, .dtype = MESH_I64};
    CADRE_TRY(collective_sum(strategy, local, &flag, 1, state->size, error));
    if (local == 0) {
        meeting->failures = failures;
    }
    if (failures != 0) {
        return collective_share_error(strategy, local, 0, &meeting->own, &meeting->theirs, error);
    }
    const struct mesh_buffer all = {.data = bytes, .bytes = state->size, .dtype = MESH_U8};
    CADRE_TRY(strategy->mesh->ops->broadcast(strategy->mesh, local, 0, &all, 1, NULL, error));
    if (local == 0) {
        memcpy(state->pointer, bytes, state->size);
    }
    return CADRE_OK;
}

/* Tasks that register other states would take over each other's bytes. */
static cadre_status meet_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct meeting *meeting = user;
    const struct registered_state *state = meeting->state;
    uint64_t key = collective_key(strategy->state_part->registered_count, state->size);
    for (const char *c = state->name; *c != '\0'; c++) {
        key = collective_key(key, (uint64_t)(unsigned char)*c);
    }
    cadre_status status = collective_sum(strategy, local, NULL, 0, key, error);
    if (status == CADRE_OK && meeting->restored) {
        return share_restored(strategy, local, meeting, error);
    }
    return status != CADRE_INVALID_ARGUMENT
               ? status
               : cadre_error_wrap(error, status,
                     "state '%s' of %zu bytes: the tasks do not register the same states in the "
                     "same order",
                     state->name, state->size);
}

/* All tasks together, but one that joins later. */
static cadre_status register_meet(
    cadre_strategy *strategy, const struct registered_state *state, struct cadre_error *error)
{
    CADRE_ASSERT(state->size > 0);
    char what[STRATEGY_CALL_TEXT_BYTES];
    struct meeting meeting = {.state = state};
    if (strategy->state == STATE_WARM) {
        return CADRE_OK;
    }
    const struct state_tensor tensor = tensor_of(state);
    struct restoration *restoration = strategy->state_part->restoration;
    meeting.restored = strategy->state == STATE_RESTORES;
    if (!meeting.restored && restoration_find(restoration, tensor.name) != NULL) {
        CADRE_TRY(restoration_fits(restoration, &tensor, error));
        meeting.from = restoration;
        meeting.restored = true;
    }
    snprintf(what, sizeof what, "cadre_state_register of '%.80s' with %zu bytes", state->name,
        state->size);
    cadre_status status = strategy_between_steps(strategy, what, meet_on_replica, &meeting, error);
    if (meeting.own.code != CADRE_OK || (status == CADRE_OK && meeting.failures != 0)) {
        *error = meeting.own.code != CADRE_OK ? meeting.own : meeting.theirs;
        return strategy_fail(strategy, error);
    }
    return status;
}

cadre_status registered_take_restored(
    cadre_strategy *strategy, uint32_t i, struct cadre_error *error)
{
    const struct registered_state *state = &strategy->state_part->registered[i];
    const struct state_tensor tensor = tensor_of(state);
    CADRE_ASSERT(strategy->state == STATE_PRESENT);
    CADRE_ASSERT(i < strategy->state_part->registered_count);
    return restoration_find(strategy->state_part->restoration, tensor.name) == NULL
               ? CADRE_OK
               : register_meet(strategy, state, error);
}

cadre_status cadre_state_register(
    cadre_strategy *strategy, const char *name, void *pointer, size_t size)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    struct registered_state state = {.pointer = pointer, .size = size};
    struct registered_state *grown = NULL;
    cadre_status status = strategy_enter(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = register_check(strategy, name, pointer, size, &error);
    }
    if (status == CADRE_OK) {
        grown =
            realloc(strategy->state_part->registered, (strategy->state_part->registered_count + 1) *
                                                          sizeof *strategy->state_part->registered);
        if (grown == NULL) {
            status = cadre_error_set(
                &error, CADRE_RESOURCE_EXHAUSTED, "no memory for the registered state '%s'", name);
        }
    }
    if (status != CADRE_OK) {
        return api_return(status, &error);
    }
    strategy->state_part->registered = grown;
    memcpy(state.name, name, strlen(name) + 1);
    if (strategy_is_warm(strategy) && (state.given = malloc(size)) == NULL) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes of the registered state '%s'", size, name);
        return api_return(status, &error);
    }
    status = register_meet(strategy, &state, &error);
    if (status == CADRE_OK) {
        grown[strategy->state_part->registered_count++] = state;
    } else {
        free(state.given);
    }
    return api_return(status, &error);
}
