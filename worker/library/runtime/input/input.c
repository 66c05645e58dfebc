/* SPDX-License-Identifier: Apache-2.0
 * Distributed datasets: positions in epochs, what the task core receives of each step, how long
 * an epoch is. All files of this folder use it; step/ and state/ read positions. */
#include "worker/library/runtime/input/input.h"

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/strategy/strategy_registry.h"

static bool input_has(const cadre_strategy *strategy, const cadre_distributed_dataset *distributed)
{
    const struct input_part *input = strategy->input; /* NULL while it is opened */
    for (uint32_t i = 0; input != NULL && i < input->dataset_count; i++) {
        if (input->datasets[i] == distributed) {
            const struct iterating *iterating = &input->datasets[i]->iterating;
            return iterating->of == NULL || iterating->taken;
        }
    }
    return false;
}

bool distributed_is_registered(const cadre_distributed_dataset *distributed)
{
    uint32_t at = 0;
    const cadre_strategy *strategy = strategy_registry_default();
    if (strategy != NULL && input_has(strategy, distributed)) {
        return true;
    }
    while ((strategy = strategy_registry_next(&at)) != NULL) {
        if (input_has(strategy, distributed)) {
            return true;
        }
    }
    return false;
}

cadre_status distributed_require(
    const cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error)
{
    cadre_status status = argument_require(distributed, function, "distributed", error);
    if (status == CADRE_OK && !distributed_is_registered(distributed)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with a distributed dataset of a strategy that has ended, or an iterator "
            "that was released; call it before cadre_finish",
            function);
    }
    return status;
}

cadre_status distributed_fail(
    cadre_distributed_dataset *distributed, const struct cadre_error *error)
{
    CADRE_ASSERT(error->code != CADRE_OK);
    if (distributed->failed.code == CADRE_OK) {
        distributed->failed = *error;
    }
    return error->code;
}

bool distributed_own_pipelines(const cadre_distributed_dataset *distributed)
{
    return distributed_input_policy(distributed->input) != CADRE_SHARD_DATA;
}

/* --- the ledger --- */

bool distributed_is_partly_applied(const cadre_distributed_dataset *distributed)
{
    return distributed->at.open && distributed->at.epochs_begun > 0 &&
           (distributed->steps < 0 || distributed->at.applied < (uint64_t)distributed->steps);
}

/* Whether steps are left of an epoch that the program began before the current one: it is in the
 * middle of a turn, or of an evaluation. A joiner enters the older epoch first. */
static bool is_nested(const cadre_distributed_dataset *distributed)
{
    const struct input_part *input = distributed->strategy->input;
    for (uint32_t i = 0; i < input->dataset_count; i++) {
        const cadre_distributed_dataset *other = input->datasets[i];
        if (other != distributed && distributed_is_partly_applied(other) &&
            other->at.serial < distributed->at.serial) {
            return true;
        }
    }
    return false;
}

void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position)
{
    struct cursor cursor = {.first = position, .begin = position, .steps = 1};
    uint64_t end = position + 1;
    CADRE_ASSERT(distributed == NULL || distributed->strategy == strategy);
    CADRE_ASSERT(distributed == NULL || distributed->at.epochs_begun > 0);
    if (distributed != NULL) {
        cursor = (struct cursor){.stream = distributed->stream,
            .epoch = distributed->at.epochs_begun - 1,
            .first = position >= step ? position - step : 0,
            .begin = position,
            .steps = distributed->steps > 0 ? (uint64_t)distributed->steps : 0,
            .nested = is_nested(distributed)};
        /* An epoch whose length is not known is left when its end is found, an endless one when the
         * program leaves it. */
        end = distributed->steps > 0 ? cursor.first + cursor.steps : LIMIT_POSITION;
    }
    const struct cursor *old = &strategy->input->cursor;
    bool goes_on = strategy->input->cursor_end > 0 && old->stream == cursor.stream &&
                   old->epoch == cursor.epoch && old->first == cursor.first &&
                   old->nested == cursor.nested;
    if (goes_on) {
        cursor.begin = old->begin;
    }
    strategy->input->cursor = cursor;
    strategy->input->cursor_end = end;
    const struct consumption none = {0};
    const struct consumption *consumption =
        distributed != NULL ? &distributed->at.consumption : &none;
    task_ready(strategy->task, &cursor, consumption, end);
}

void distributed_input_step(
    const cadre_distributed_dataset *distributed, uint64_t *epoch, uint64_t *step)
{
    if (distributed->endless) {
        *step += *epoch * distributed->steps_per_epoch;
        *epoch = 0;
    }
}

/* --- how long an epoch is --- */

int64_t distributed_steps_of(const cadre_distributed_dataset *distributed, uint64_t epoch)
{
    uint64_t most = distributed->steps_per_epoch;
    if (distributed->function != NULL && distributed->strategy->roster.member_count > 1) {
        return CADRE_CARDINALITY_UNKNOWN; /* each task has its own number */
    }
    int64_t steps = distributed_input_whole_steps(distributed->input, epoch);
    bool less = steps >= 0 && (uint64_t)steps < most;
    return most == 0 || less || steps == CADRE_CARDINALITY_UNKNOWN ? steps : (int64_t)most;
}

int64_t distributed_steps_now(const cadre_distributed_dataset *distributed)
{
    const struct dataset_position *at = &distributed->at;
    if (at->ended) {
        return (int64_t)at->end;
    }
    return distributed_steps_of(distributed, at->epochs_begun == 0 ? 0 : at->epochs_begun - 1);
}

void distributed_end(cadre_distributed_dataset *distributed, uint64_t steps)
{
    struct dataset_position *at = &distributed->at;
    bool news = !at->ended && distributed->steps < 0;
    CADRE_ASSERT(at->epochs_begun > 0);
    at->ended = true;
    at->end = steps;
    if (news) {
        distributed->steps = (int64_t)steps;
        task_end_of_data(
            distributed->strategy->task, distributed->stream, at->epochs_begun - 1, steps);
    }
}
