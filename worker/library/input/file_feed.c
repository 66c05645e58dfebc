/* SPDX-License-Identifier: Apache-2.0
 * See file_feed.h. */
#include "worker/library/input/file_feed.h"

#include <inttypes.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/input/auto_shard.h"
#include "worker/library/input/file_names.h"
#include "worker/library/input/required_shard.h"

void file_feed_clear(struct file_feed *feed)
{
    if (feed->open) {
        pthread_mutex_destroy(&feed->lock);
    }
    free(feed->names);
    free(feed->name_of);
    id_list_clear(&feed->ids);
    file_shares_clear(&feed->dealt);
    file_shares_clear(&feed->fed);
    free(feed->totals);
    free(feed->found);
    *feed = (struct file_feed){0};
}

static cadre_status take_table(
    struct file_feed *feed, const struct file_shares *shares, struct cadre_error *error)
{
    if (shares == NULL) {
        return CADRE_OK;
    }
    if (shares->workers != feed->workers || shares->file_count != feed->ids.count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the table of files is of %zu files for %" PRIu32
            " workers, and the dataset has %zu for %" PRIu32,
            shares->file_count, shares->workers, feed->ids.count, feed->workers);
    }
    return file_shares_copy(shares, &feed->dealt, error);
}

static cadre_status point_at_names(struct file_feed *feed, struct cadre_error *error)
{
    feed->name_of = malloc((feed->ids.count + 1) * sizeof feed->name_of[0]);
    if (feed->name_of == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the names of %zu files", feed->ids.count);
    }
    const char *name = feed->names;
    for (size_t i = 0; i < feed->ids.count; i++) {
        feed->name_of[i] = name;
        name += strlen(name) + 1;
    }
    return CADRE_OK;
}

static cadre_status read_names(
    struct file_feed *feed, cadre_dataset *reader, struct cadre_error *error)
{
    struct names_order order = {0};
    CADRE_TRY(names_are_a_list(reader->input, error));
    cadre_dataset *names = names_without_order(reader->input, &order);
    size_t bytes = 0;
    FILE *texts = open_memstream(&feed->names, &bytes);
    cadre_status status =
        texts != NULL ? names_ids(names, &feed->ids, texts, error)
                      : cadre_error_errno(error, errno, "cannot keep the names of the files");
    cadre_dataset_release(names);
    if (texts != NULL && fclose(texts) != 0 && status == CADRE_OK) {
        status = cadre_error_errno(error, errno, "cannot keep the names of the files");
    }
    return status == CADRE_OK ? point_at_names(feed, error) : status;
}

cadre_status file_feed_init(struct file_feed *feed, cadre_dataset *reader, uint32_t workers,
    uint32_t worker, const struct file_shares *shares, struct cadre_error *error)
{
    *feed = (struct file_feed){.workers = workers, .worker = worker, .open = true};
    pthread_mutex_init(&feed->lock, NULL);
    cadre_status status = read_names(feed, reader, error);
    if (status == CADRE_INVALID_ARGUMENT) {
        status = CADRE_FAILED_PRECONDITION;
        if (error != NULL) {
            error->code = status;
        }
    }
    if (status == CADRE_OK) {
        status = take_table(feed, shares, error);
    }
    if (status == CADRE_OK) {
        size_t files = feed->ids.count;
        feed->totals = malloc((files + 1) * sizeof feed->totals[0]);
        feed->found = malloc((files + 1) * sizeof feed->found[0]);
        if (feed->totals == NULL || feed->found == NULL) {
            status = cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for the lengths of %zu files", files);
        } else {
            memset(feed->totals, 0xff, (files + 1) * sizeof feed->totals[0]);
        }
    }
    if (status != CADRE_OK) {
        file_feed_clear(feed);
    }
    return status;
}

/* --- what the reader asks and tells, on threads of its own --- */

/* The number of the file with an id, or the count of files: none. */
static size_t file_of(const struct file_feed *feed, uint64_t id)
{
    size_t low = 0;
    size_t high = feed->ids.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (feed->ids.ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < feed->ids.count && feed->ids.ids[low] == id ? low : feed->ids.count;
}

static uint64_t fed_run(void *context, uint64_t outer_id, uint64_t ordinal, bool *ret_fed)
{
    const struct file_feed *feed = context;
    size_t number = file_of(feed, outer_id);
    *ret_fed = false;
    if (number == feed->ids.count) {
        return UINT64_MAX;
    }
    const struct file_share *file = &feed->dealt.files[number];
    size_t low = 0;
    size_t high = file->fed_count;
    while (low < high) { /* the first interval that ends behind `ordinal` */
        size_t middle = low + (high - low) / 2;
        if (file->fed[middle].end > ordinal) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (low == file->fed_count) {
        return UINT64_MAX;
    }
    const struct sample_interval *next = &file->fed[low];
    *ret_fed = next->first <= ordinal;
    return (*ret_fed ? next->end : next->first) - ordinal;
}

static void file_ended(void *context, uint64_t outer_id, uint64_t samples)
{
    struct file_feed *feed = context;
    size_t number = file_of(feed, outer_id);
    if (number == feed->ids.count) {
        return;
    }
    pthread_mutex_lock(&feed->lock);
    if (feed->totals[number] == UINT64_MAX) {
        feed->found[feed->found_count++] = number;
    }
    feed->totals[number] = samples;
    pthread_mutex_unlock(&feed->lock);
}

/* --- the pipelines --- */

struct rewriting {
    struct file_feed *feed;
    bool dealt;
};

/* Those of the table that are this worker's and not done. */
static cadre_dataset *dealt_names(const struct file_feed *feed, cadre_dataset *names)
{
    size_t count = 0;
    CADRE_FREE_AT_EXIT uint64_t *numbers = malloc((feed->dealt.file_count + 1) * sizeof numbers[0]);
    if (numbers == NULL) {
        cadre_dataset_release(names);
        return NULL;
    }
    for (size_t i = 0; i < feed->dealt.file_count; i++) {
        const struct file_share *file = &feed->dealt.files[i];
        if (file->owner == feed->worker && !file->done) {
            numbers[count++] = i;
        }
    }
    return names_picked(names, numbers, count);
}

static cadre_dataset *rewrite_reader(const cadre_dataset *reader, void *context)
{
    const struct rewriting *rewriting = context;
    struct file_feed *feed = rewriting->feed;
    const struct nested_fed fed = {
        .run = rewriting->dealt ? fed_run : NULL, .ended = file_ended, .context = feed};
    struct names_order order = {0};
    cadre_dataset *names = names_without_order(reader->input, &order);
    if (rewriting->dealt) {
        names = dealt_names(feed, names);
    } else if (feed->workers > 1) {
        names = dataset_required_shard(names, feed->workers, feed->worker, CADRE_SHARD_FILE);
    }
    return dataset_nested_rebuild(reader, names_in_order(names, &order), &fed);
}

cadre_status file_feed_rewrite(struct file_feed *feed, cadre_dataset *data, bool dealt,
    cadre_dataset **ret_data, struct cadre_error *error)
{
    struct rewriting rewriting = {.feed = feed, .dealt = dealt};
    return dataset_rewrite_readers(data, rewrite_reader, &rewriting, ret_data, error);
}

/* --- what was fed --- */

cadre_status file_feed_begin(struct file_feed *feed, uint64_t epoch, struct cadre_error *error)
{
    file_shares_clear(&feed->fed);
    feed->over = false;
    if (feed->dealt.workers > 0 && feed->dealt.epoch == epoch) {
        return file_shares_copy(&feed->dealt, &feed->fed, error);
    }
    return file_shares_init(&feed->fed, epoch, feed->ids.count, feed->workers, error);
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return first < second ? -1 : first > second ? 1 : 0;
}

/* The samples of a step as runs, sorted; `sorted` is the ids, sorted. */
static cadre_status make_runs(const struct file_feed *feed, const uint64_t sorted[], size_t count,
    struct distributed_batch *batch, struct cadre_error *error)
{
    batch->runs = calloc(count + 1, sizeof batch->runs[0]);
    if (batch->runs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the runs of %zu samples", count);
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t outer = 0;
        uint64_t ordinal = 0;
        size_t file =
            nested_id_split(sorted[i], &outer, &ordinal) ? file_of(feed, outer) : feed->ids.count;
        if (file == feed->ids.count) {
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
    struct file_feed *feed, size_t number, bool all, struct distributed_batch *batch)
{
    uint64_t done = number | (all ? 0 : FILE_SHARES_DROPPED);
    if (!feed->fed.files[number].done) {
        file_shares_done(&feed->fed, done, NULL);
        batch->done[batch->done_count++] = done;
    }
}

/* From the start to its known end. */
static bool all_was_fed(const struct file_feed *feed, size_t number)
{
    const struct file_share *file = &feed->fed.files[number];
    uint64_t total = feed->totals[number];
    return total == 0 || (total != UINT64_MAX && file->fed_count == 1 && file->fed[0].first == 0 &&
                             file->fed[0].end == total);
}

static void look_at(struct file_feed *feed, size_t number, struct distributed_batch *batch)
{
    if (all_was_fed(feed, number)) {
        add_done(feed, number, true, batch);
    }
}

/* With nothing left, all of its files are done, whatever filters and remainders have dropped. */
static void all_done(struct file_feed *feed, struct distributed_batch *batch)
{
    for (size_t i = 0; i < feed->fed.file_count; i++) {
        if (feed->fed.files[i].owner == feed->worker) {
            add_done(feed, i, all_was_fed(feed, i), batch);
        }
    }
    feed->over = true;
}

static cadre_status find_done(
    struct file_feed *feed, bool over, struct distributed_batch *batch, struct cadre_error *error)
{
    const size_t most = over ? feed->ids.count : batch->run_count + feed->found_count;
    if (feed->over || most == 0) {
        return CADRE_OK;
    }
    batch->done = calloc(most, sizeof batch->done[0]);
    if (batch->done == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a list of %zu files", most);
    }
    if (over) {
        all_done(feed, batch);
        return CADRE_OK;
    }
    for (size_t i = 0; i < batch->run_count; i++) {
        look_at(feed, batch->runs[i].file, batch);
    }
    for (size_t i = 0; i < feed->found_count; i++) {
        look_at(feed, feed->found[i], batch);
    }
    return CADRE_OK;
}

cadre_status file_feed_step(struct file_feed *feed, const struct id_list *ids, bool over,
    struct distributed_batch *batch, struct cadre_error *error)
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
    CADRE_TRY(make_runs(feed, sorted, ids->count, batch, error));
    for (size_t i = 0; i < batch->run_count; i++) {
        CADRE_TRY(file_shares_fed(&feed->fed, &batch->runs[i], error));
    }
    pthread_mutex_lock(&feed->lock);
    cadre_status status = find_done(feed, over, batch, error);
    feed->found_count = status == CADRE_OK ? 0 : feed->found_count;
    pthread_mutex_unlock(&feed->lock);
    return status;
}
