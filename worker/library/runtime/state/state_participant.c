/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/state/state_participant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/points.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/state/checkpoint.h"
#include "worker/library/runtime/state/layout.h"
#include "worker/library/runtime/state/manifest.h"
#include "worker/library/runtime/state/manifest_variables.h"
#include "worker/library/runtime/state/registered.h"
#include "worker/library/runtime/state/restoration.h"
#include "worker/library/runtime/state/restore.h"
#include "worker/library/runtime/state/state.h"
#include "worker/library/runtime/state/state_part.h"
#include "worker/library/runtime/state/variable_name.h"
#include "worker/library/runtime/strategy/strategy.h"

/* --- its life --- */

static cadre_status open_part(cadre_strategy *strategy, struct cadre_error *error)
{
    CADRE_ASSERT(strategy->state_part == NULL);
    strategy->state_part = calloc(1, sizeof *strategy->state_part);
    if (strategy->state_part != NULL) {
        strategy->state_part->asked =
            calloc(strategy->local_replicas, sizeof *strategy->state_part->asked);
    }
    if (strategy->state_part == NULL || strategy->state_part->asked == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the state");
    }
    return checkpointer_open(strategy, &strategy->state_part->checkpointer, error);
}

static void close_part(cadre_strategy *strategy)
{
    struct state_part *part = strategy->state_part;
    if (part != NULL) {
        restore_close(strategy);
        restoration_close(part->restoration);
        part->restoration = NULL;
        checkpointer_close(part->checkpointer);
        part->checkpointer = NULL;
        part->streamed = NULL;
    }
}

static void free_part(cadre_strategy *strategy)
{
    struct state_part *part = strategy->state_part;
    CADRE_ASSERT(part == NULL || part->checkpointer == NULL);
    for (uint32_t i = 0; part != NULL && part->asked != NULL && i < strategy->local_replicas; i++) {
        free(part->asked[i].list);
    }
    if (part != NULL) {
        free(part->asked);
    }
    free(part);
    strategy->state_part = NULL;
}

/* --- in a step --- */

static void place(cadre_strategy *strategy, enum loop_place place, bool reached)
{
    CADRE_ASSERT(place <= PLACE_RUN);
    strategy->state_part->place = place;
    if (reached) {
        registered_give(strategy, place);
    }
}

static cadre_status begin(struct step_order *order, struct cadre_error *error)
{
    (void)error; /* one that is missing stops no training */
    restoration_rest(order->strategy->state_part->restoration);
    checkpoint_at_step(order->strategy);
    return CADRE_OK;
}

static void commit(struct step_order *order)
{
    struct variable_birth *birth = &order->strategy->state_part->birth;
    if (birth->variable != NULL) {
        variable_birth_over(birth);
    }
}

static bool undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    (void)cause;
    variable_birth_over(&strategy->state_part->birth);
    return true;
}

/* --- in a generation --- */

static void tell(const cadre_strategy *strategy, struct point *point)
{
    point->layout = state_layout(strategy);
}

static cadre_status load(cadre_strategy *strategy, struct cadre_error *error)
{
    uint64_t position = 0;
    CADRE_ASSERT(strategy->state == STATE_RESTORES);
    CADRE_ASSERT(strategy->roster.rank == 0);
    CADRE_TRY(restore_require(strategy, error));
    return checkpoint_load(strategy, strategy->environment->restore_path, &position, error);
}

static cadre_status prepare(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    struct state_part *part = strategy->state_part;
    bool was_there = strategy->state == STATE_PRESENT;
    CADRE_ASSERT(part->text == NULL);
    CADRE_ASSERT(!part->receiving);
    CADRE_ASSERT(!passing->takes_state || !passing->gives);
    if (passing->state && passing->gives) {
        CADRE_TRY(manifest_encode(strategy, NULL, &part->text, &part->text_bytes, error));
    }
    if (passing->takes_state) {
        CADRE_TRY(state_receive(strategy, was_there, !was_there, error));
        part->receiving = true;
    }
    return CADRE_OK;
}

static cadre_status read_text(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* it is in the host's memory */
    const struct state_part *part = user;
    CADRE_ASSERT(offset + bytes <= part->text_bytes);
    memcpy(into, part->text + offset, bytes);
    return CADRE_OK;
}

static cadre_status write_text(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    struct state_part *part = user;
    if (total > LIMIT_MANIFEST_BYTES) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "the positions and strings of the state take %" PRIu64 " bytes; at most %d are "
            "possible",
            total, LIMIT_MANIFEST_BYTES);
    }
    if (offset == 0) {
        free(part->text);
        part->text_bytes = (size_t)total;
        part->text = malloc((size_t)total + 1);
    }
    if (part->text == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %" PRIu64 " bytes of another task", total);
    }
    CADRE_ASSERT(offset + bytes <= part->text_bytes);
    if (bytes > 0) {
        memcpy(part->text + offset, from, bytes);
    }
    return CADRE_OK;
}

static cadre_status read_space(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    return state_read(user, offset, into, bytes, error);
}

static cadre_status write_space(void *user, uint64_t total, size_t offset, const void *from,
    size_t bytes, struct cadre_error *error)
{
    cadre_strategy *strategy = user;
    if (total != state_bytes(strategy)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the state of another task has %" PRIu64 " bytes, that of this one %zu: all tasks must "
            "make the same variables",
            total, state_bytes(strategy));
    }
    CADRE_ASSERT(strategy->state_part->receiving);
    return bytes > 0 ? state_write(strategy, offset, from, bytes, error) : CADRE_OK;
}

/* The variables that are where the state comes from, and that this program has not created. */
static cadre_status make_variables(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct state_part *part = strategy->state_part;
    bool made = false;
    CADRE_ASSERT(part->receiving);
    return manifest_make_variables(strategy, part->text, part->text_bytes, &made, error);
}

static cadre_status pass(cadre_strategy *strategy, uint32_t local, const struct passing *passing,
    struct cadre_error *error)
{
    if (!passing->state) {
        return CADRE_OK;
    }
    CADRE_ASSERT(!passing->gives || strategy->state_part->text != NULL);
    const struct transfer text = {.what = "the positions of the state",
        .source = passing->source,
        .bytes = strategy->state_part->text_bytes,
        .read = read_text,
        .write = passing->takes_state ? write_text : NULL,
        .user = strategy->state_part};
    CADRE_TRY(transfer_run(strategy, local, &text, error));
    if (passing->takes_state && local == 0) {
        CADRE_TRY(make_variables(strategy, error));
    }
    const struct transfer space = {.what = "the state",
        .source = passing->source,
        .bytes = passing->gives ? state_bytes(strategy) : 0,
        .read = read_space,
        .write = passing->takes_state ? write_space : NULL,
        .user = strategy};
    return transfer_run(strategy, local, &space, error);
}

static cadre_status read_taken(
    cadre_strategy *strategy, const struct passing *passing, struct cadre_error *error)
{
    const struct state_part *part = strategy->state_part;
    uint64_t position = 0;
    if (!passing->takes_state) {
        return CADRE_OK;
    }
    cadre_status status =
        manifest_decode(strategy, part->text, part->text_bytes, &position, NULL, error);
    if (status != CADRE_OK && strategy->state == STATE_WARM) {
        strategy->failed = *error; /* it is no use to the job, and ends alone */
    }
    return status;
}

static cadre_status enter(
    cadre_strategy *strategy, enum entrance entrance, struct cadre_error *error)
{
    (void)error;
    if (strategy->state_part->receiving) {
        state_commit(strategy);
        strategy->state_part->receiving = false;
    }
    CADRE_ASSERT(!strategy->state_part->receiving);
    if (entrance == ENTERS_ANEW) {
        registered_received(strategy);
        restore_close(strategy); /* of one that is rank 0, or was before */
    }
    return CADRE_OK;
}

static void settle(cadre_strategy *strategy)
{
    struct state_part *part = strategy->state_part;
    free(part->text);
    part->text = NULL;
    part->text_bytes = 0;
    if (part->receiving) {
        state_undo(strategy);
        part->receiving = false;
    }
}

const struct participant state_participant = {
    .name = "state",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .place = place,
    .begin = begin,
    .commit = commit,
    .undo = undo,
    .tell = tell,
    .explain = layout_explain,
    .load = load,
    .prepare = prepare,
    .pass = pass,
    .greet = checkpoint_prove,
    .read = read_taken,
    .enter = enter,
    .settle = settle,
};
