/* SPDX-License-Identifier: Apache-2.0
 * Reading: batches of the pipeline, and how they become the program's. next.c and input_refresh.c
 * call it. */
#include <inttypes.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "worker/library/device/tensor_references.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/input/reports.h"
#include "worker/library/runtime/strategy/strategy.h"

/* Passing over what was read before is shown after this long, and again after that. */
#define REPLAY_SILENT_US CADRE_US_PER_S
#define REPLAY_DRAW_US   (CADRE_US_PER_S / 4)
#define REPLAY_REPORT_US  (10 * CADRE_US_PER_S)

static void input_read_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step)
{
    CADRE_ASSERT(distributed->prefetcher != NULL);
    if (distributed->reads_epoch != epoch || distributed->reads_step != step) {
        distributed->reads_epoch = epoch;
        distributed->reads_step = step;
        input_prefetcher_start(distributed->prefetcher, epoch, step);
    }
}

void distributed_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step)
{
    distributed_input_step(distributed, &epoch, &step);
    input_read_seek(distributed, epoch, step);
}

/* Waits for a pipeline that is not indexable, which reaches a step by reading all before it. */
static void await_batch(cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = distributed->strategy;
    uint64_t began_us = clock_monotonic_us();
    uint64_t every_us = show_redraws() ? REPLAY_DRAW_US : REPLAY_REPORT_US;
    uint64_t wait_us = REPLAY_SILENT_US;
    uint64_t shown_us = 0;
    uint64_t done = 0;
    uint64_t wanted = 0;
    while (!input_prefetcher_await(distributed->prefetcher, wait_us)) {
        uint64_t now_us = clock_monotonic_us();
        bool due = shown_us == 0 || now_us - shown_us >= every_us;
        wait_us = REPLAY_DRAW_US;
        if (due && reports_are_shown(strategy) &&
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
    distributed_input_step(distributed, &epoch, &step);
    input_read_seek(distributed, epoch, step);
    await_batch(distributed);
    cadre_status status = input_prefetcher_take(distributed->prefetcher, ret_batch, error);
    distributed->reads_step += status == CADRE_OK ? 1 : 0;
    ret_batch->epoch = program_epoch;
    ret_batch->step = program_step;
    return status;
}

/* --- batches --- */

void distributed_drop_batch(cadre_distributed_dataset *distributed)
{
    per_replica_drop(distributed->batch);
    distributed->batch = NULL;
}

static void take_files(struct consumed_samples *files, struct distributed_batch *batch)
{
    consumed_samples_clear(files);
    *files = (struct consumed_samples){.runs = batch->runs,
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
    CADRE_ASSERT(value->source.dataset != NULL);
    CADRE_ASSERT(batch->replicas == value->replicas);
    if (batch->staged != NULL) {
        batch->staged->finish(batch->staged);
        batch->staged = NULL;
    }
    for (uint32_t replica = 0; replica < batch->replicas; replica++) {
        CADRE_ASSERT(batch->elements[replica].count >= value->components);
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
    source->consumed = batch->consumed;
    source->expected = batch->expected;
    source->provable = batch->provable;
    source->cut = source->dataset->cut;
}

void batch_agree(cadre_per_replica *value, struct step_agreement *step_agreement)
{
    struct batch_source *source = &value->source;
    source->generation = step_agreement->generation;
    source->global_rows = (int64_t)step_agreement->rows;
    if (!source->was_run) {
        consumed_samples_clear(&source->all);
        source->all = step_agreement->all;
        step_agreement->all = (struct consumed_samples){0};
    }
}
