/* SPDX-License-Identifier: Apache-2.0
 * Owns one worker's table of files under the policy FILE, and what each step consumed of them.
 * Called by the distributed input. */
#include "worker/library/input/distribution/file_consumption.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/input/node/sample_id.h"
#include "worker/library/input/sharding/auto_shard.h"
#include "worker/library/input/sharding/file_names.h"
#include "worker/library/input/sharding/required_shard.h"

void file_consumption_clear(struct file_consumption *consumption)
{
    if (consumption->open) {
        pthread_mutex_destroy(&consumption->lock);
    }
    free(consumption->names);
    free(consumption->name_of);
    id_list_clear(&consumption->ids);
    file_shares_clear(&consumption->assigned);
    file_shares_clear(&consumption->consumed);
    free(consumption->totals);
    free(consumption->found);
    *consumption = (struct file_consumption){0};
}

static cadre_status take_table(struct file_consumption *consumption,
    const struct file_shares *shares, struct cadre_error *error)
{
    if (shares == NULL) {
        return CADRE_OK;
    }
    if (shares->workers != consumption->workers || shares->file_count != consumption->ids.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is of %zu files for %" PRIu32
            " workers, and the dataset has %zu for %" PRIu32,
            shares->file_count, shares->workers, consumption->ids.count, consumption->workers);
    }
    return file_shares_copy(shares, &consumption->assigned, error);
}

static cadre_status point_at_names(struct file_consumption *consumption, struct cadre_error *error)
{
    consumption->name_of = malloc((consumption->ids.count + 1) * sizeof consumption->name_of[0]);
    if (consumption->name_of == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the names of %zu files", consumption->ids.count);
    }
    const char *name = consumption->names;
    for (size_t i = 0; i < consumption->ids.count; i++) {
        consumption->name_of[i] = name;
        name += strlen(name) + 1;
    }
    return CADRE_OK;
}

static cadre_status read_names(
    struct file_consumption *consumption, cadre_dataset *reader, struct cadre_error *error)
{
    struct file_names_shuffles order = {0};
    CADRE_TRY(file_names_check_fixed(reader->input, error));
    cadre_dataset *names = file_names_unshuffle(reader->input, &order);
    size_t bytes = 0;
    FILE *texts = open_memstream(&consumption->names, &bytes);
    cadre_status status =
        texts != NULL ? file_names_read_ids(names, &consumption->ids, texts, error)
                      : cadre_error_errno(error, errno, "cannot keep the names of the files");
    cadre_dataset_release(names);
    if (texts != NULL && fclose(texts) != 0 && status == CADRE_OK) {
        status = cadre_error_errno(error, errno, "cannot keep the names of the files");
    }
    return status == CADRE_OK ? point_at_names(consumption, error) : status;
}

cadre_status file_consumption_init(struct file_consumption *consumption, cadre_dataset *reader,
    uint32_t workers, uint32_t worker, const struct file_shares *shares, struct cadre_error *error)
{
    *consumption = (struct file_consumption){.workers = workers, .worker = worker, .open = true};
    pthread_mutex_init(&consumption->lock, NULL);
    cadre_status status = read_names(consumption, reader, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        status = CADRE_FAILED_PRECONDITION;
        if (error != NULL) {
            error->code = status;
        }
    }
    if (status == CADRE_OK) {
        status = take_table(consumption, shares, error);
    }
    if (status == CADRE_OK) {
        size_t files = consumption->ids.count;
        consumption->totals = malloc((files + 1) * sizeof consumption->totals[0]);
        consumption->found = malloc((files + 1) * sizeof consumption->found[0]);
        if (consumption->totals == NULL || consumption->found == NULL) {
            status = cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for the lengths of %zu files", files);
        } else {
            memset(consumption->totals, 0xff, (files + 1) * sizeof consumption->totals[0]);
        }
    }
    if (status != CADRE_OK) {
        file_consumption_clear(consumption);
    }
    return status;
}

/* --- what the reader asks and tells, on threads of its own --- */

/* The number of the file with an id, or the count of files: none. */
static size_t file_of(const struct file_consumption *consumption, uint64_t id)
{
    size_t low = 0;
    size_t high = consumption->ids.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (consumption->ids.ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < consumption->ids.count && consumption->ids.ids[low] == id ? low
                                                                           : consumption->ids.count;
}

static uint64_t consumed_run(void *context, uint64_t outer_id, uint64_t ordinal, bool *ret_consumed)
{
    const struct file_consumption *consumption = context;
    size_t number = file_of(consumption, outer_id);
    *ret_consumed = false;
    if (number == consumption->ids.count) {
        return UINT64_MAX;
    }
    const struct file_share *file = &consumption->assigned.files[number];
    size_t low = 0;
    size_t high = file->consumed_count;
    while (low < high) { /* the first interval that ends behind `ordinal` */
        size_t middle = low + (high - low) / 2;
        if (file->consumed[middle].end > ordinal) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == file->consumed_count) {
        return UINT64_MAX;
    }
    const struct sample_interval *next = &file->consumed[low];
    *ret_consumed = next->first <= ordinal;
    return (*ret_consumed ? next->end : next->first) - ordinal;
}

static void file_ended(void *context, uint64_t outer_id, uint64_t samples)
{
    struct file_consumption *consumption = context;
    size_t number = file_of(consumption, outer_id);
    if (number == consumption->ids.count) {
        return;
    }
    pthread_mutex_lock(&consumption->lock);
    if (consumption->totals[number] == UINT64_MAX) {
        consumption->found[consumption->found_count++] = number;
    }
    consumption->totals[number] = samples;
    pthread_mutex_unlock(&consumption->lock);
}

/* --- the pipelines --- */

struct rewriting {
    struct file_consumption *consumption;
    bool assigned;
};

/* Those of the table that are this worker's and not done. */
static cadre_dataset *assigned_names(
    const struct file_consumption *consumption, cadre_dataset *names)
{
    size_t count = 0;
    CADRE_FREE_AT_EXIT uint64_t *numbers =
        malloc((consumption->assigned.file_count + 1) * sizeof numbers[0]);
    if (numbers == NULL) {
        cadre_dataset_release(names);
        return NULL;
    }
    for (size_t i = 0; i < consumption->assigned.file_count; i++) {
        const struct file_share *file = &consumption->assigned.files[i];
        if (file->owner == consumption->worker && !file->done) {
            numbers[count++] = i;
        }
    }
    return file_names_select(names, numbers, count);
}

static cadre_dataset *rewrite_reader(const cadre_dataset *reader, void *context)
{
    const struct rewriting *rewriting = context;
    struct file_consumption *consumption = rewriting->consumption;
    const struct nested_consumed consumed = {.run = rewriting->assigned ? consumed_run : NULL,
        .ended = file_ended,
        .context = consumption};
    struct file_names_shuffles order = {0};
    cadre_dataset *names = file_names_unshuffle(reader->input, &order);
    if (rewriting->assigned) {
        names = assigned_names(consumption, names);
    } else if (consumption->workers > 1) {
        names = dataset_required_shard(
            names, consumption->workers, consumption->worker, CADRE_SHARD_FILE);
    }
    return dataset_nested_rebuild(reader, file_names_reshuffle(names, &order), &consumed);
}

cadre_status file_consumption_rewrite(struct file_consumption *consumption, cadre_dataset *data,
    bool assigned, cadre_dataset **ret_data, struct cadre_error *error)
{
    struct rewriting rewriting = {.consumption = consumption, .assigned = assigned};
    return dataset_rewrite_readers(data, rewrite_reader, &rewriting, ret_data, error);
}

/* --- what was consumed --- */

cadre_status file_consumption_begin(
    struct file_consumption *consumption, uint64_t epoch, struct cadre_error *error)
{
    file_shares_clear(&consumption->consumed);
    consumption->over = false;
    if (consumption->assigned.workers > 0 && consumption->assigned.epoch == epoch) {
        return file_shares_copy(&consumption->assigned, &consumption->consumed, error);
    }
    return file_shares_init(
        &consumption->consumed, epoch, consumption->ids.count, consumption->workers, error);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return first < second ? -1 : first > second ? 1 : 0;
}

/* The samples of a step as runs, sorted; `sorted` is the ids, sorted. */
static cadre_status make_runs(const struct file_consumption *consumption, const uint64_t sorted[],
    size_t count, struct distributed_batch *batch, struct cadre_error *error)
{
    batch->runs = calloc(count + 1, sizeof batch->runs[0]);
    if (batch->runs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the runs of %zu samples", count);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t outer = 0;
        uint64_t ordinal = 0;
        size_t file = sample_id_split(sorted[i], &outer, &ordinal) ? file_of(consumption, outer)
                                                                   : consumption->ids.count;
        if (file == consumption->ids.count) {
            return cadre_error_set(
                error, CADRE_DATA_LOSS, "sample %" PRIu64 " is of no file of the list", sorted[i]);
        }
        struct file_run *last = batch->run_count > 0 ? &batch->runs[batch->run_count - 1] : NULL;
        if (last != NULL && last->file == file && last->first + last->count == ordinal) {
            last->count++;
        } else {
            batch->runs[batch->run_count++] =
                (struct file_run){.file = file, .first = ordinal, .count = 1};
        }
    }
    return CADRE_OK;
}

static void add_done(
    struct file_consumption *consumption, size_t number, bool all, struct distributed_batch *batch)
{
    uint64_t done = number | (all ? 0 : FILE_SHARES_DROPPED);
    if (!consumption->consumed.files[number].done) {
        file_shares_done(&consumption->consumed, done, NULL);
        batch->done[batch->done_count++] = done;
    }
}

/* From the start to its known end. */
static bool all_was_consumed(const struct file_consumption *consumption, size_t number)
{
    const struct file_share *file = &consumption->consumed.files[number];
    uint64_t total = consumption->totals[number];
    return total == 0 || (total != UINT64_MAX && file->consumed_count == 1 &&
                             file->consumed[0].first == 0 && file->consumed[0].end == total);
}

static void look_at(
    struct file_consumption *consumption, size_t number, struct distributed_batch *batch)
{
    if (all_was_consumed(consumption, number)) {
        add_done(consumption, number, true, batch);
    }
}

/* With nothing left, all of its files are done, whatever filters and remainders have dropped. */
static void all_done(struct file_consumption *consumption, struct distributed_batch *batch)
{
    for (size_t i = 0; i < consumption->consumed.file_count; i++) {
        if (consumption->consumed.files[i].owner == consumption->worker) {
            add_done(consumption, i, all_was_consumed(consumption, i), batch);
        }
    }
    consumption->over = true;
}

static cadre_status find_done(struct file_consumption *consumption, bool over,
    struct distributed_batch *batch, struct cadre_error *error)
{
    const size_t limit =
        over ? consumption->ids.count : batch->run_count + consumption->found_count;
    if (consumption->over || limit == 0) {
        return CADRE_OK;
    }
    batch->done = calloc(limit, sizeof batch->done[0]);
    if (batch->done == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu files", limit);
    }
    if (over) {
        all_done(consumption, batch);
        return CADRE_OK;
    }
    for (size_t i = 0; i < batch->run_count; i++) {
        look_at(consumption, batch->runs[i].file, batch);
    }
    for (size_t i = 0; i < consumption->found_count; i++) {
        look_at(consumption, consumption->found[i], batch);
    }
    return CADRE_OK;
}

cadre_status file_consumption_step(struct file_consumption *consumption, const struct id_list *ids,
    bool over, struct distributed_batch *batch, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT uint64_t *sorted = malloc((ids->count + 1) * sizeof sorted[0]);
    if (sorted == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu sample ids", ids->count);
    }
    if (ids->count > 0) {
        memcpy(sorted, ids->ids, ids->count * sizeof sorted[0]);
        qsort(sorted, ids->count, sizeof sorted[0], compare_ids);
    }
    CADRE_TRY(make_runs(consumption, sorted, ids->count, batch, error));
    for (size_t i = 0; i < batch->run_count; i++) {
        CADRE_TRY(file_shares_consumed(&consumption->consumed, &batch->runs[i], error));
    }
    pthread_mutex_lock(&consumption->lock);
    cadre_status status = find_done(consumption, over, batch, error);
    consumption->found_count = status == CADRE_OK ? 0 : consumption->found_count;
    pthread_mutex_unlock(&consumption->lock);
    return status;
}
