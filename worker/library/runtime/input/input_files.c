/* SPDX-License-Identifier: Apache-2.0
 * Input that is shared out by whole files (CADRE_SHARD_FILE) while tasks come and go. Every task
 * holds a table of what was consumed of which file in the epoch; all enter in it what all consumed
 * in each step, so the tables are equal wherever the position is. When the tasks change, each task
 * deals what is left again, with the same result. input_open.c and input_hooks.c call it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/input/input.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/values/values.h"

/* --- warnings --- */

static void warn_of_idle_workers(cadre_distributed_dataset *distributed, uint32_t workers)
{
    uint64_t files = distributed->shares.file_count;
    CADRE_ASSERT(workers > 0);
    if (distributed->warned_files || files >= workers || distributed->strategy->roster.rank != 0) {
        return;
    }
    distributed->warned_files = true;
    show_warning("dataset '%s' has %" PRIu64 " files for %" PRIu32 " workers: %" PRIu64
                 " of them get empty batches; use CADRE_SHARD_DATA, or at least as many files as "
                 "workers",
        distributed->name, files, workers, workers - files);
}

/* Whether AUTO chose files where the number of tasks changes, for which samples are better. */
static bool has_warning(const cadre_distributed_dataset *distributed)
{
    const cadre_strategy *strategy = distributed->strategy;
    return !distributed->warned_policy && distributed->policy == CADRE_SHARD_AUTO &&
           strategy->environment->tasks > 1 && cadre_strategy_is_chief(strategy);
}

static bool is_elastic(const cadre_strategy *strategy)
{
    return strategy->environment->tasks_min < strategy->environment->tasks;
}

/* AUTO chose samples, which is slower where each task reads all of them. */
static void warn_of_samples(cadre_distributed_dataset *distributed)
{
    struct cadre_error reason;
    bool reads_all = false;
    if (!distributed_input_fell_back(distributed->input, &reads_all, &reason)) {
        return;
    }
    distributed->warned_policy = true;
    show_warning("dataset '%s' is divided by samples, not by files (CADRE_SHARD_AUTO)%s: %s",
        distributed->name, reads_all ? ", so each task reads all of it and uses its own part" : "",
        reason.text);
}

void files_distributed(cadre_distributed_dataset *distributed)
{
    struct cadre_error reason;
    bool by_files = distributed_input_policy(distributed->input) == CADRE_SHARD_FILE;
    if (!has_warning(distributed)) {
        return;
    }
    warn_of_samples(distributed);
    if (!is_elastic(distributed->strategy) || !by_files || distributed->endless) {
        return;
    }
    distributed->warned_policy = true;
    if (distributed_input_can_reshard(distributed->input, &reason)) {
        show_warning("dataset '%s' is divided by files (CADRE_SHARD_AUTO), and the number of tasks "
                     "of this job may change: every record is still read once then, but in another "
                     "order; with CADRE_SHARD_DATA the order stays the same",
            distributed->name);
    } else {
        show_warning("dataset '%s' is divided by files (CADRE_SHARD_AUTO), and the number of tasks "
                     "of this job may change, which ends the job in the middle of an epoch: %s; "
                     "use CADRE_SHARD_DATA",
            distributed->name, reason.text);
    }
}

/* A change of tasks that was not warned of when the dataset was distributed. */
static void warn_of_change(cadre_distributed_dataset *distributed, uint32_t workers)
{
    const cadre_strategy *strategy = distributed->strategy;
    bool changes = strategy->environment->tasks != workers || distributed->at.workers != workers;
    if (!has_warning(distributed) || is_elastic(strategy) || !changes) {
        return;
    }
    distributed->warned_policy = true;
    show_warning("dataset '%s' is divided by files (CADRE_SHARD_AUTO), and the number of tasks of "
                 "this job changes: every record is still read once, but in another order; with "
                 "CADRE_SHARD_DATA the order stays the same",
        distributed->name);
}

/* --- the table --- */

cadre_status files_begin(
    cadre_distributed_dataset *distributed, bool *ret_reopen, struct cadre_error *error)
{
    const cadre_strategy *strategy = distributed->strategy;
    uint32_t workers = strategy->roster.member_count;
    uint64_t epoch = distributed->at.epochs_begun - 1;
    CADRE_ASSERT(distributed->at.epochs_begun > 0);
    bool was_short = distributed->has_shares && distributed->shares.file_count < workers;
    distributed->uncut = (struct cadre_error){0};
    file_shares_clear(&distributed->shares);
    distributed->has_shares = false;
    *ret_reopen = false;
    if (distributed->endless || !distributed_input_can_reshard(distributed->input, NULL)) {
        return CADRE_OK;
    }
    CADRE_TRY(
        distributed_input_fresh_shares(distributed->input, epoch, &distributed->shares, error));
    distributed->has_shares = true;
    warn_of_change(distributed, workers);
    /* A job that begins with fewer files than the fewest workers that it allows is refused when it
     * reads, also when tasks were lost or came before its first step. One that has grown, or was
     * given more workers at once, goes on: some have no file. So does one in which AUTO stays with
     * files because the job that it goes on from began so. */
    bool begins = strategy->roster.generation.number == 1 || strategy_position(strategy) == 0;
    begins = begins && !(distributed->began == CADRE_SHARD_FILE &&
                           distributed_input_is_either(distributed->input));
    bool refused = begins && distributed->shares.file_count < strategy->environment->tasks_min;
    bool grown =
        !refused && distributed->shares.file_count < workers && distributed->shares.file_count > 0;
    if (grown) {
        warn_of_idle_workers(distributed, workers);
    }
    *ret_reopen = grown || was_short;
    return CADRE_OK;
}

/* Whether the files that are left are dealt to those workers in turn. */
static bool is_assigned(const struct file_shares *shares, uint32_t workers)
{
    CADRE_ASSERT(workers > 0);
    uint32_t turn = 0;
    bool assigned = shares->workers == workers;
    for (size_t i = 0; assigned && i < shares->file_count; i++) {
        if (!shares->files[i].done) {
            assigned = shares->files[i].owner == turn;
            turn = (turn + 1) % workers;
        }
    }
    return assigned;
}

bool files_deal(cadre_distributed_dataset *distributed)
{
    uint32_t workers = distributed->strategy->roster.member_count;
    struct cadre_error ignored; /* there are as many workers as a job can have */
    if (!distributed->has_shares) {
        return false;
    }
    warn_of_change(distributed, workers);
    distributed->warned_files = distributed->warned_files && distributed->shares.workers == workers;
    warn_of_idle_workers(distributed, workers);
    distributed->at.workers = workers;
    return !is_assigned(&distributed->shares, workers) &&
           file_shares_assign(&distributed->shares, workers, &ignored) == CADRE_OK;
}

/* Whether the table is of the batch's epoch. */
static bool has_table(const struct batch_source *source)
{
    const cadre_distributed_dataset *distributed = source->dataset;
    CADRE_ASSERT(distributed != NULL);
    return distributed->has_shares && distributed->shares.epoch == source->epoch;
}

static const struct consumed_samples *consumed_by_all(const struct batch_source *source)
{
    bool alone = source->dataset->strategy->roster.member_count == 1;
    return alone ? &source->files : &source->all;
}

bool files_expected(const cadre_per_replica *batch, struct digest *ret_expected)
{
    const struct batch_source *source = &batch->source;
    const cadre_distributed_dataset *distributed = source->dataset;
    struct cadre_error ignored; /* then the step is reported without samples */
    *ret_expected = (struct digest){0};
    if (!has_table(source)) {
        return false;
    }
    const struct consumed_samples *consumed = consumed_by_all(source);
    for (size_t i = 0; i < consumed->run_count; i++) {
        struct digest run = {0};
        if (!file_shares_overlaps(&distributed->shares, &consumed->runs[i]) &&
            distributed_input_files_digest(distributed->input, source->epoch, &consumed->runs[i], 1,
                &run, &ignored) != CADRE_OK) {
            return false;
        }
        digest_merge(ret_expected, &run);
    }
    return true;
}

enum consumed_files files_consumed(const cadre_per_replica *batch)
{
    const struct file_shares *shares = &batch->source.dataset->shares;
    if (!has_table(&batch->source)) {
        return CONSUMED_FILES_NONE;
    }
    if (shares->done_count < shares->file_count) {
        return CONSUMED_FILES_LEFT;
    }
    return shares->dropped_count > 0 ? CONSUMED_FILES_DROPPED : CONSUMED_FILES_ALL;
}

cadre_status files_applied(const cadre_per_replica *batch, struct cadre_error *error)
{
    const struct batch_source *source = &batch->source;
    cadre_distributed_dataset *distributed = source->dataset;
    if (!has_table(source)) {
        return CADRE_OK;
    }
    const struct consumed_samples *consumed = consumed_by_all(source);
    for (size_t i = 0; i < consumed->run_count; i++) {
        CADRE_TRY(file_shares_consumed(&distributed->shares, &consumed->runs[i], error));
    }
    for (size_t i = 0; i < consumed->done_count; i++) {
        CADRE_TRY(file_shares_done(&distributed->shares, consumed->done[i], error));
    }
    distributed->shares.step = source->step + 1;
    return CADRE_OK;
}

bool distributed_shards(
    const cadre_distributed_dataset *distributed, struct dataset_shards *ret_shards)
{
    *ret_shards = (struct dataset_shards){0};
    if (distributed->at.epochs_begun == 0 || distributed->input == NULL) {
        return false;
    }
    *ret_shards = (struct dataset_shards){
        .name = distributed->name,
        .policy = distributed_input_policy(distributed->input),
        .epoch = distributed->at.epochs_begun - 1,
        .step = distributed->at.applied,
        .workers = distributed->strategy->roster.member_count,
        .files = distributed->has_shares ? &distributed->shares : NULL,
    };
    return true;
}
