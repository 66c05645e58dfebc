/* SPDX-License-Identifier: Apache-2.0
 * The state as a part of a strategy: its checkpoints before steps, and its bytes and text from
 * the source to members that lack it. The strategy's hooks call it. */
#include "worker/library/runtime/state/state_hooks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/regroup/member_status.h"
#include "worker/library/runtime/regroup/transfer.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/checkpoint/manifest_variables.h"
#include "worker/library/runtime/state/create/variable_create.h"
#include "worker/library/runtime/state/create/variable_name.h"
#include "worker/library/runtime/state/layout/registered.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/state/restore/restoration.h"
#include "worker/library/runtime/state/restore/restore.h"
#include "worker/library/runtime/strategy/strategy.h"

/* --- opening and closing --- */

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

static void loop_point(cadre_strategy *strategy, enum loop_point loop_point, bool reached)
{
    CADRE_ASSERT(loop_point <= LOOP_IN_RUN);
    strategy->state_part->loop_point = loop_point;
    if (reached) {
        registered_deliver(strategy, loop_point);
    }
}

static cadre_status state_hooks_begin(struct step_order *order, struct cadre_error *error)
{
    (void)error; /* a missing checkpoint stops no training */
    restoration_close_reader(order->strategy->state_part->restoration);
    checkpoint_at_step(order->strategy);
    return CADRE_OK;
}

static void state_hooks_commit(struct step_order *order)
{
    struct variable_in_step *in_step = &order->strategy->state_part->in_step;
    if (in_step->variable != NULL) {
        variable_in_step_end(in_step);
    }
}

static bool state_hooks_undo(cadre_strategy *strategy, bool aborted, struct cadre_error *cause)
{
    (void)aborted;
    (void)cause;
    variable_in_step_end(&strategy->state_part->in_step);
    return true;
}

/* --- in a generation --- */

static void fill_status(const cadre_strategy *strategy, struct member_status *member_status)
{
    member_status->layout = state_layout(strategy);
}

static cadre_status state_hooks_load(cadre_strategy *strategy, struct cadre_error *error)
{
    uint64_t position = 0;
    CADRE_ASSERT(strategy->state == STATE_RESTORES);
    CADRE_ASSERT(strategy->roster.rank == 0);
    CADRE_TRY(restore_require(strategy, error));
    return checkpoint_load(strategy, strategy->environment->restore_path, &position, error);
}

static cadre_status state_hooks_prepare(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    struct state_part *part = strategy->state_part;
    bool was_there = strategy->state == STATE_PRESENT;
    CADRE_ASSERT(part->text == NULL);
    CADRE_ASSERT(!part->receiving);
    CADRE_ASSERT(!sync_plan->takes_state || !sync_plan->gives);
    if (sync_plan->state && sync_plan->gives) {
        CADRE_TRY(manifest_encode(strategy, &part->text, &part->text_bytes, error));
    }
    if (sync_plan->takes_state) {
        CADRE_TRY(state_receive(strategy, was_there, !was_there, error));
        part->receiving = true;
    }
    return CADRE_OK;
}

static cadre_status read_text(
    void *user, size_t offset, void *into, size_t bytes, struct cadre_error *error)
{
    (void)error; /* copying in the host's memory cannot fail */
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

/* Makes the variables of the source's state that this program has not created. */
static cadre_status make_variables(cadre_strategy *strategy, struct cadre_error *error)
{
    const struct state_part *part = strategy->state_part;
    bool made = false;
    CADRE_ASSERT(part->receiving);
    return manifest_make_variables(strategy, part->text, part->text_bytes, &made, error);
}

static cadre_status state_hooks_pass(cadre_strategy *strategy, uint32_t local,
    const struct sync_plan *sync_plan, struct cadre_error *error)
{
    if (!sync_plan->state) {
        return CADRE_OK;
    }
    CADRE_ASSERT(!sync_plan->gives || strategy->state_part->text != NULL);
    const struct transfer text = {.what = "the positions of the state",
        .source = sync_plan->source,
        .bytes = strategy->state_part->text_bytes,
        .read = read_text,
        .write = sync_plan->takes_state ? write_text : NULL,
        .user = strategy->state_part};
    CADRE_TRY(transfer_run(strategy, local, &text, error));
    if (sync_plan->takes_state && local == 0) {
        CADRE_TRY(make_variables(strategy, error));
    }
    const struct transfer space = {.what = "the state",
        .source = sync_plan->source,
        .bytes = sync_plan->gives ? state_bytes(strategy) : 0,
        .read = read_space,
        .write = sync_plan->takes_state ? write_space : NULL,
        .user = strategy};
    return transfer_run(strategy, local, &space, error);
}

static cadre_status read_taken(
    cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error)
{
    const struct state_part *part = strategy->state_part;
    uint64_t position = 0;
    if (!sync_plan->takes_state) {
        return CADRE_OK;
    }
    cadre_status status = manifest_decode(strategy, part->text, part->text_bytes, &position, error);
    if (status != CADRE_OK && strategy->state == STATE_WARM) {
        strategy->failed = *error; /* the job does not use it, and it ends alone */
    }
    return status;
}

static cadre_status state_hooks_install(
    cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error)
{
    (void)error;
    if (strategy->state_part->receiving) {
        state_commit(strategy);
        strategy->state_part->receiving = false;
    }
    CADRE_ASSERT(!strategy->state_part->receiving);
    if (install_mode == INSTALL_JOINED) {
        registered_received(strategy);
        restore_close(strategy); /* of a task that is rank 0, or was before */
    }
    return CADRE_OK;
}

static void state_hooks_cleanup(cadre_strategy *strategy)
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

const struct strategy_hooks state_hooks = {
    .name = "state",
    .open = open_part,
    .close = close_part,
    .free = free_part,
    .loop_point = loop_point,
    .begin = state_hooks_begin,
    .commit = state_hooks_commit,
    .undo = state_hooks_undo,
    .fill_status = fill_status,
    .compare_layout = state_layout_compare,
    .load = state_hooks_load,
    .prepare = state_hooks_prepare,
    .pass = state_hooks_pass,
    .joined = checkpoint_verify_folder,
    .read = read_taken,
    .install = state_hooks_install,
    .cleanup = state_hooks_cleanup,
};
