/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/input/input.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/base/clock.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/input/agree.h"
#include "worker/library/runtime/strategy/living.h"
#include "worker/library/runtime/input/show.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* A reader that passes over what was read before says so after this long, and again after that. */
#define REPLAY_SILENT_US CADRE_US_PER_S
#define REPLAY_DRAW_US   (CADRE_US_PER_S / 4)
#define REPLAY_LINE_US   (10 * CADRE_US_PER_S)

bool distributed_lives(const cadre_distributed_dataset *distributed)
{
    uint32_t at = 0;
    const cadre_strategy *strategy;
    while ((strategy = living_next(&at)) != NULL) {
        for (uint32_t i = 0; i < strategy->dataset_count; i++) {
            if (strategy->datasets[i] == distributed) {
                return true;
            }
        }
    }
    return false;
}

cadre_status distributed_require(
    const cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error)
{
    cadre_status status = argument_require(distributed, function, "distributed", error);
    if (status == CADRE_OK && !distributed_lives(distributed)) {
        status = cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%s was called with a distributed dataset of a strategy that has ended; call it before "
            "cadre_finish",
            function);
    }
    return status;
}

void distributed_free(cadre_distributed_dataset *distributed)
{
    if (distributed != NULL) {
        distributed_close(distributed);
        per_replica_drop(distributed->batch);
        cadre_dataset_release(distributed->data);
        file_shares_clear(&distributed->shares);
        file_shares_clear(&distributed->received.shares);
        distributed_state_clear(&distributed->received.state);
        free(distributed->pipeline);
        free(distributed);
    }
}

bool distributed_own_pipelines(const cadre_distributed_dataset *distributed)
{
    return distributed_input_policy(distributed->input) != CADRE_SHARD_DATA;
}

/* --- the ledger's view --- */

void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position)
{
    struct cursor cursor = {.first = position, .begin = position, .steps = 1};
    uint64_t end = position + 1;
    if (distributed != NULL) {
        cursor = (struct cursor){.stream = distributed->stream,
            .epoch = distributed->at.epochs_begun - 1,
            .first = position >= step ? position - step : 0,
            .begin = position,
            .steps = distributed->steps > 0 ? (uint64_t)distributed->steps : 0};
        /* An epoch whose length is not known is left when its end is found, as an endless one is
         * when the program has enough of it. */
        end = distributed->steps > 0 ? cursor.first + cursor.steps : LIMIT_POSITION;
    }
    const struct cursor *old = &strategy->cursor;
    bool goes_on = strategy->cursor_end > 0 && old->stream == cursor.stream &&
                   old->epoch == cursor.epoch && old->first == cursor.first;
    if (goes_on) {
        cursor.begin = old->begin;
    }
    strategy->cursor = cursor;
    strategy->cursor_end = end;
    const struct feed none = {0};
    const struct feed *feed = distributed != NULL ? &distributed->at.feed : &none;
    task_ready(strategy->task, &cursor, feed, end);
}

/* --- how long an epoch is --- */

int64_t distributed_steps_of(const cadre_distributed_dataset *distributed, uint64_t epoch)
{
    uint64_t most = distributed->steps_per_epoch;
    int64_t steps = distributed->function != NULL && distributed->strategy->roster.member_count > 1
                        ? CADRE_CARDINALITY_UNKNOWN /* each task has a number of its own */
                        : distributed_input_steps(distributed->input, epoch);
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
    at->ended = true;
    at->end = steps;
    if (news) {
        distributed->steps = (int64_t)steps;
        task_end_of_data(
            distributed->strategy->task, distributed->stream, at->epochs_begun - 1, steps);
    }
}

/* --- reading --- */

void distributed_place(
    const cadre_distributed_dataset *distributed, uint64_t *epoch, uint64_t *step)
{
    if (distributed->endless) {
        *step += *epoch * distributed->steps_per_epoch;
        *epoch = 0;
    }
}

static void seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step)
{
    if (distributed->reads_epoch != epoch || distributed->reads_step != step) {
        distributed->reads_epoch = epoch;
        distributed->reads_step = step;
        input_prefetcher_start(distributed->prefetcher, epoch, step);
    }
}

void distributed_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step)
{
    distributed_place(distributed, &epoch, &step);
    seek(distributed, epoch, step);
}

/* A pipeline that is not indexable comes to a step by reading all that is before it. */
static void await_batch(cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = distributed->strategy;
    uint64_t began_us = clock_monotonic_us();
    uint64_t every_us = show_redraws() ? REPLAY_DRAW_US : REPLAY_LINE_US;
    uint64_t wait_us = REPLAY_SILENT_US;
    uint64_t shown_us = 0;
    uint64_t done = 0;
    uint64_t wanted = 0;
    while (!input_prefetcher_await(distributed->prefetcher, wait_us)) {
        uint64_t now_us = clock_monotonic_us();
        bool due = shown_us == 0 || now_us - shown_us >= every_us;
        wait_us = REPLAY_DRAW_US;
        if (due && strategy->reports.show &&
            distributed_input_replayed(distributed->input, &done, &wanted)) {
            shown_us = now_us;
            show_replay(distributed->name, done, wanted, now_us - began_us, false);
        }
    }
    if (shown_us != 0) {
        show_replay(distributed->name, wanted, wanted, clock_monotonic_us() - began_us, true);
    }
}

cadre_status distributed_read(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error)
{
    uint64_t program_epoch = epoch;
    uint64_t program_step = step;
    *ret_batch = (struct distributed_batch){0};
    if (distributed->uncut.code != CADRE_OK) {
        *error = distributed->uncut;
        return error->code;
    }
    if (distributed->steps_per_epoch > 0 && step >= distributed->steps_per_epoch) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "dataset '%s' has no step %" PRIu64 " in epoch %" PRIu64, distributed->name, step,
            epoch);
    }
    distributed_place(distributed, &epoch, &step);
    seek(distributed, epoch, step);
    await_batch(distributed);
    cadre_status status = input_prefetcher_take(distributed->prefetcher, ret_batch, error);
    distributed->reads_step += status == CADRE_OK ? 1 : 0;
    ret_batch->epoch = program_epoch;
    ret_batch->step = program_step;
    return status;
}

/* --- another layout, and another generation --- */

/* A step that exists no more: what the lost tasks had of it was all there was. */
#define ROWS_OF_NOTHING 1

/* Each task has a pipeline of its own: they agree anew, in every generation, on what the step is.
 */
static cadre_status agree_anew(cadre_per_replica *batch, struct cadre_error *error)
{
    struct batch_source *source = &batch->source;
    cadre_distributed_dataset *distributed = source->dataset;
    struct distributed_batch fresh;
    struct agreement agreement;
    CADRE_TRY(agree_on_step(distributed, source->epoch, source->step, batch, source->consumed,
        &fresh, &agreement, error));
    if (fresh.elements != NULL) {
        batch_take_over(batch, &fresh);
    }
    distributed_batch_clear(&fresh);
    batch_agree(batch, &agreement);
    if (agreement.present == 0) {
        source->global_rows = ROWS_OF_NOTHING;
    }
    agreement_clear(&agreement);
    source->cut = distributed->cut;
    return CADRE_OK;
}

static cadre_status read_anew(cadre_per_replica *batch, struct cadre_error *error)
{
    cadre_distributed_dataset *distributed = batch->source.dataset;
    struct distributed_batch fresh = {0};
    cadre_status status =
        distributed_read(distributed, batch->source.epoch, batch->source.step, &fresh, error);
    if (status == CADRE_OUT_OF_RANGE) {
        /* Pipelines of their own have other steps: what was read stays. */
        batch->source.cut = distributed->cut;
        return CADRE_OK;
    }
    if (status == CADRE_OK) {
        batch_take_over(batch, &fresh);
        distributed_batch_clear(&fresh);
    }
    return status;
}

cadre_status distributed_refresh(cadre_per_replica *batch, struct cadre_error *error)
{
    const struct batch_source *source = &batch->source;
    const cadre_strategy *strategy = source->dataset->strategy;
    bool same = source->cut == source->dataset->cut;
    bool agreed = source->generation == strategy->roster.generation.number;
    bool alone = strategy->roster.member_count == 1;
    if (source->dataset->failed.code != CADRE_OK) {
        *error = source->dataset->failed;
        return error->code;
    }
    if (distributed_own_pipelines(source->dataset)) {
        return agreed || (same && alone) ? CADRE_OK : agree_anew(batch, error);
    }
    return same ? CADRE_OK : read_anew(batch, error);
}

/* --- batches --- */

static void take_files(struct fed_files *files, struct distributed_batch *batch)
{
    fed_files_clear(files);
    *files = (struct fed_files){.runs = batch->runs,
        .run_count = batch->run_count,
        .done = batch->done,
        .done_count = batch->done_count};
    batch->runs = NULL;
    batch->run_count = 0;
    batch->done = NULL;
    batch->done_count = 0;
}

void batch_take_over(cadre_per_replica *value, struct distributed_batch *batch)
{
    if (batch->staged != NULL) {
        batch->staged->finish(batch->staged);
        batch->staged = NULL;
    }
    for (uint32_t replica = 0; replica < batch->replicas; replica++) {
        for (uint32_t i = 0; i < value->components; i++) {
            cadre_tensor **from = &batch->elements[replica].tensors[i];
            cadre_tensor **to = per_replica_at(value, i, replica);
            if (value->shown) {
                tensor_drop(*to);
                (void)tensor_take(*from);
            }
            *to = *from;
            *from = NULL;
        }
        batch->elements[replica].count = 0;
    }
    struct batch_source *source = &value->source;
    source->global_rows = (int64_t)batch->global_rows;
    source->present = batch->present;
    source->own_rows = batch->own_rows;
    take_files(&source->files, batch);
    source->samples = batch->samples;
    source->fed = batch->fed;
    source->expected = batch->expected;
    source->provable = batch->provable;
    source->cut = source->dataset->cut;
}

void batch_agree(cadre_per_replica *value, struct agreement *agreement)
{
    struct batch_source *source = &value->source;
    source->generation = agreement->generation;
    source->global_rows = (int64_t)agreement->rows;
    if (!source->consumed) {
        fed_files_clear(&source->all);
        source->all = agreement->all;
        agreement->all = (struct fed_files){0};
    }
}
