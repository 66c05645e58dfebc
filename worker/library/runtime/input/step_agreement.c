/* SPDX-License-Identifier: Apache-2.0
 * The agreement of all tasks on a step whose pipelines are their own: which replicas have an
 * element, how many rows, which samples of which files. next.c and input_refresh.c call it. */
#include "worker/library/runtime/input/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/regroup/between_steps.h"
#include "worker/library/runtime/strategy/strategy.h"

/* What all send in the first collective: sums. How many files a task has to report is sent as its
 * binary order, counted in the field of that order: so all get the largest, whatever the tasks, and
 * the message has one size in all generations. */
#define ORDERS 24
struct agree_message {
    int64_t present;
    int64_t rows;
    int64_t failed;         /* tasks that could not read */
    int64_t generation;     /* sent by rank 0 alone ... */
    int64_t workers;        /* ... with this one */
    int64_t orders[ORDERS]; /* tasks with files of this order; orders[0]: with none */
};

/* A run of samples; or a file of which nothing is left. Zeroed: none. */
struct agree_entry {
    int64_t file; /* twice its number; and one more: nothing is left */
    int64_t first;
    int64_t count;
};

struct agreeing {
    cadre_distributed_dataset *distributed;
    uint64_t epoch;
    uint64_t step;
    const cadre_per_replica *held;
    bool keeps;
    struct distributed_batch *batch; /* what is read, and */
    uint64_t cut;                    /* of which cut of the input; 0: of none yet */
    struct cadre_error own;          /* why it could not be read; code OK: it could */
    struct step_agreement *step_agreement;
    struct cadre_error theirs;
};

void step_agreement_clear(struct step_agreement *step_agreement)
{
    consumed_samples_clear(&step_agreement->all);
    *step_agreement = (struct step_agreement){0};
}

/* --- this task's part --- */

/* Of the current cut. */
static void read_own(struct agreeing *agreeing)
{
    cadre_distributed_dataset *distributed = agreeing->distributed;
    uint64_t cut = distributed->cut;
    CADRE_ASSERT(cut > 0); /* it was opened */
    bool held = agreeing->held != NULL && (agreeing->keeps || agreeing->held->source.cut == cut);
    if (agreeing->cut == cut || (held && agreeing->cut == 0)) {
        return;
    }
    distributed_batch_clear(agreeing->batch);
    agreeing->cut = cut;
    agreeing->own = (struct cadre_error){0};
    cadre_status status = distributed_read(
        distributed, agreeing->epoch, agreeing->step, agreeing->batch, &agreeing->own);
    if (status == CADRE_OUT_OF_RANGE) {
        agreeing->own = (struct cadre_error){0}; /* none here, and maybe elsewhere */
    }
}

/* What is consumed here, whether it was read just now or held. */
static struct consumed_samples own_files(const struct agreeing *agreeing)
{
    CADRE_ASSERT(!agreeing->keeps || agreeing->held != NULL);
    const struct distributed_batch *batch = agreeing->batch;
    if (batch->elements == NULL && agreeing->held != NULL) {
        return agreeing->held->source.files;
    }
    return (struct consumed_samples){.runs = batch->runs,
        .run_count = batch->run_count,
        .done = batch->done,
        .done_count = batch->done_count};
}

static uint32_t order_of(size_t count)
{
    uint32_t order = 0;
    while (order + 1 < ORDERS && (order == 0 ? 0 : (size_t)1 << (order - 1)) < count) {
        order++;
    }
    return order;
}

static struct agree_message own_devices_text(const struct agreeing *agreeing)
{
    const cadre_strategy *strategy = agreeing->distributed->strategy;
    const struct distributed_batch *batch = agreeing->batch;
    struct agree_message message = {.failed = agreeing->own.code != CADRE_OK ? 1 : 0};
    if (strategy->roster.rank == 0) {
        message.generation = (int64_t)strategy->roster.generation.number;
        message.workers = strategy->roster.member_count;
    }
    if (batch->elements != NULL) {
        message.present = batch->present;
        message.rows = (int64_t)batch->own_rows;
    } else if (agreeing->held != NULL && agreeing->own.code == CADRE_OK) {
        /* It is read already; or there is nothing any more, and what was read stays. */
        message.present = (int64_t)agreeing->held->source.present;
        message.rows = (int64_t)agreeing->held->source.own_rows;
    }
    const struct consumed_samples files = own_files(agreeing);
    message.orders[agreeing->keeps ? 0 : order_of(files.run_count + files.done_count)] = 1;
    return message;
}

/* --- the messages --- */

static void put_entries(const struct consumed_samples *files, struct agree_entry *entries)
{
    for (size_t i = 0; i < files->run_count; i++) {
        const struct file_run *run = &files->runs[i];
        *entries++ = (struct agree_entry){.file = (int64_t)run->file * 2,
            .first = (int64_t)run->first,
            .count = (int64_t)run->count};
    }
    for (size_t i = 0; i < files->done_count; i++) {
        *entries++ = (struct agree_entry){.file = (int64_t)files->done[i] * 2 + 1};
    }
}

static cadre_status get_entries(const struct agree_entry *entries, size_t count,
    struct consumed_samples *ret_files, struct cadre_error *error)
{
    consumed_samples_clear(ret_files);
    ret_files->runs = calloc(count + 1, sizeof ret_files->runs[0]);
    ret_files->done = calloc(count + 1, sizeof ret_files->done[0]);
    if (ret_files->runs == NULL || ret_files->done == NULL) {
        consumed_samples_clear(ret_files);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for what all tasks consume in a step");
    }
    for (size_t i = 0; i < count; i++) {
        const struct agree_entry *entry = &entries[i];
        struct file_run run = {.file = (uint64_t)entry->file / 2,
            .first = (uint64_t)entry->first,
            .count = (uint64_t)entry->count};
        if (entry->file % 2 != 0) {
            ret_files->done[ret_files->done_count++] = run.file;
        } else if (run.count > 0) {
            ret_files->runs[ret_files->run_count++] = run;
        }
    }
    CADRE_ASSERT(ret_files->run_count + ret_files->done_count <= count);
    return CADRE_OK;
}

/* Each task writes into its own slot among zeros, so that the sum is what all wrote. */
static cadre_status gather_files(cadre_strategy *strategy, uint32_t local,
    struct agreeing *agreeing, const struct agree_message *message, uint64_t key,
    struct cadre_error *error)
{
    uint32_t order = ORDERS - 1;
    while (order > 0 && message->orders[order] == 0) {
        order--;
    }
    if (order == 0) {
        return CADRE_OK;
    }
    size_t each = (size_t)1 << (order - 1);
    if (message->workers <= 0) {
        return cadre_error_set(error, CADRE_INTERNAL,
            "the tasks reported that %lld of them read the dataset, which cannot be; all tasks "
            "have to run the same build",
            (long long)message->workers);
    }
    size_t count = each * (size_t)message->workers;
    CADRE_FREE_AT_EXIT struct agree_entry *entries = calloc(count, sizeof entries[0]);
    if (entries == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for what %" PRId64 " tasks consume in a step", message->workers);
    }
    if (local == 0 && !agreeing->keeps && strategy->roster.rank < message->workers) {
        const struct consumed_samples own = own_files(agreeing);
        if (own.run_count + own.done_count <= each) { /* else what others gave is played back */
            put_entries(&own, &entries[each * strategy->roster.rank]);
        }
    }
    const struct mesh_buffer buffer = {
        .data = entries, .bytes = count * sizeof entries[0], .dtype = MESH_I64};
    CADRE_TRY(collective_sum(strategy, local, &buffer, 1, collective_key(key, 1), error));
    return local == 0 ? get_entries(entries, count, &agreeing->step_agreement->all, error)
                      : CADRE_OK;
}

static cadre_status agree_on_replica(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error)
{
    struct agreeing *agreeing = user;
    struct agree_message message = {0};
    CADRE_ASSERT(local < strategy->local_replicas);
    if (local == 0) {
        read_own(agreeing);
        message = own_devices_text(agreeing);
    }
    uint64_t key = collective_key(agreeing->distributed->stream, agreeing->epoch);
    key = collective_key(key, agreeing->step);
    const struct mesh_buffer buffer = {
        .data = &message, .bytes = sizeof message, .dtype = MESH_I64};
    CADRE_TRY(collective_sum(strategy, local, &buffer, 1, key, error));
    if (local == 0) {
        agreeing->theirs = (struct cadre_error){0};
        agreeing->step_agreement->generation = (uint64_t)message.generation;
        agreeing->step_agreement->present = (uint64_t)message.present;
        agreeing->step_agreement->rows = (uint64_t)message.rows;
    }
    if (message.failed > 0) {
        return collective_share_first_error(
            strategy, local, &agreeing->own, &agreeing->theirs, error);
    }
    return gather_files(strategy, local, agreeing, &message, key, error);
}

cadre_status step_agreement_make(cadre_distributed_dataset *distributed, uint64_t epoch,
    uint64_t step, const cadre_per_replica *held, bool keeps, struct distributed_batch *ret_batch,
    struct step_agreement *ret_agreement, struct cadre_error *error)
{
    struct agreeing agreeing = {.distributed = distributed,
        .epoch = epoch,
        .step = step,
        .held = held,
        .keeps = keeps,
        .batch = ret_batch,
        .step_agreement = ret_agreement};
    *ret_batch = (struct distributed_batch){0};
    *ret_agreement = (struct step_agreement){0};
    char what[STRATEGY_CALL_TEXT_BYTES];
    snprintf(what, sizeof what, "cadre_run with a batch of '%.64s' (step %llu of epoch %llu)",
        distributed->name, (unsigned long long)step, (unsigned long long)epoch);
    cadre_status status =
        strategy_between_steps_all(distributed->strategy, what, agree_on_replica, &agreeing, error);
    if (status == CADRE_OK && agreeing.own.code != CADRE_OK) {
        *error = agreeing.own;
        status = error->code;
    } else if (status == CADRE_OK && agreeing.theirs.code != CADRE_OK) {
        *error = agreeing.theirs;
        status = cadre_error_wrap(
            error, error->code, "dataset '%s', step %" PRIu64, distributed->name, step);
    }
    if (status != CADRE_OK) {
        distributed_batch_clear(ret_batch);
        step_agreement_clear(ret_agreement);
    }
    return status;
}
