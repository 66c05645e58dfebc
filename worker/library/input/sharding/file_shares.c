/* SPDX-License-Identifier: Apache-2.0
 * Which files are whose, and what of them was consumed; see file_shares.h. */
#include "worker/library/input/sharding/file_shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static cadre_status check_workers(uint64_t workers, struct cadre_error *error)
{
    if (workers < 1 || workers > FILE_SHARES_WORKERS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "files cannot be dealt to %" PRIu64 " workers; 1 to %u are possible", workers,
            FILE_SHARES_WORKERS_MAX);
    }
    return CADRE_OK;
}

cadre_status file_shares_init(struct file_shares *shares, uint64_t epoch, uint64_t files,
    uint32_t workers, struct cadre_error *error)
{
    *shares = (struct file_shares){0};
    CADRE_TRY(check_workers(workers, error));
    if (files > FILE_SHARES_FILES_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRIu64 " files cannot be shared out; %u at the most: use larger ones, or "
            "CADRE_SHARD_DATA",
            files, FILE_SHARES_FILES_MAX);
    }
    struct file_share *own = calloc(files > 0 ? (size_t)files : 1, sizeof own[0]);
    if (own == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a table of %" PRIu64 " files", files);
    }
    for (size_t i = 0; i < files; i++) {
        own[i].owner = (uint32_t)(i % workers);
    }
    *shares = (struct file_shares){
        .epoch = epoch, .workers = workers, .files = own, .file_count = (size_t)files};
    return CADRE_OK;
}

void file_shares_clear(struct file_shares *shares)
{
    for (size_t i = 0; i < shares->file_count; i++) {
        free(shares->files[i].consumed);
    }
    free(shares->files);
    *shares = (struct file_shares){0};
}

cadre_status file_shares_copy(
    const struct file_shares *from, struct file_shares *ret_copy, struct cadre_error *error)
{
    struct file_shares copy = {0};
    CADRE_TRY(file_shares_init(&copy, from->epoch, from->file_count, from->workers, error));
    copy.step = from->step;
    copy.done_count = from->done_count;
    copy.dropped_count = from->dropped_count;
    for (size_t i = 0; i < from->file_count; i++) {
        const struct file_share *file = &from->files[i];
        copy.files[i] =
            (struct file_share){.owner = file->owner, .done = file->done, .dropped = file->dropped};
        if (file->consumed_count == 0) {
            continue;
        }
        copy.files[i].consumed = malloc(file->consumed_count * sizeof file->consumed[0]);
        if (copy.files[i].consumed == NULL) {
            file_shares_clear(&copy);
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory to copy a table of files");
        }
        memcpy(copy.files[i].consumed, file->consumed,
            file->consumed_count * sizeof file->consumed[0]);
        copy.files[i].consumed_count = file->consumed_count;
        copy.files[i].consumed_capacity = file->consumed_count;
    }
    *ret_copy = copy;
    return CADRE_OK;
}

/* The first interval that ends at or behind `sample`. */
static size_t find_interval(const struct file_share *file, uint64_t sample)
{
    size_t low = 0;
    size_t high = file->consumed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->consumed[middle].end >= sample) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static cadre_status insert_interval(
    struct file_share *file, size_t at, struct sample_interval added, struct cadre_error *error)
{
    if (file->consumed_count == file->consumed_capacity) {
        size_t capacity = file->consumed_capacity == 0 ? 4 : file->consumed_capacity * 2;
        struct sample_interval *grown = realloc(file->consumed, capacity * sizeof grown[0]);
        if (grown == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for what was consumed of a file");
        }
        file->consumed = grown;
        file->consumed_capacity = capacity;
    }
    memmove(file->consumed + at + 1, file->consumed + at,
        (file->consumed_count - at) * sizeof file->consumed[0]);
    file->consumed[at] = added;
    file->consumed_count++;
    return CADRE_OK;
}

static cadre_status check_file(
    const struct file_shares *shares, uint64_t file, struct cadre_error *error)
{
    if (file >= shares->file_count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %" PRIu64 " of a list of %zu files", file, shares->file_count);
    }
    return CADRE_OK;
}

cadre_status file_shares_consumed(
    struct file_shares *shares, const struct file_run *run, struct cadre_error *error)
{
    CADRE_TRY(check_file(shares, run->file, error));
    struct file_share *file = &shares->files[run->file];
    if (run->first > FILE_SHARES_SAMPLES_MAX || run->count > FILE_SHARES_SAMPLES_MAX - run->first) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "file %" PRIu64 " is said to have consumed %" PRIu64 " samples from %" PRIu64
            " on; no file has more than 2^40",
            run->file, run->count, run->first);
    }
    if (run->count == 0) {
        return CADRE_OK;
    }
    if (file->done) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "sample %" PRIu64 " of file %" PRIu64 " was consumed after all of the file was",
            run->first, run->file);
    }
    struct sample_interval added = {.first = run->first, .end = run->first + run->count};
    size_t at = find_interval(file, added.first);
    struct sample_interval *consumed = file->consumed;
    bool joins_before = at < file->consumed_count && consumed[at].end == added.first;
    size_t next = joins_before ? at + 1 : at;
    if (next < file->consumed_count && consumed[next].first < added.end) {
        uint64_t twice = consumed[next].first > added.first ? consumed[next].first : added.first;
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "sample %" PRIu64 " of file %" PRIu64 " was consumed twice", twice, run->file);
    }
    bool joins_behind = next < file->consumed_count && consumed[next].first == added.end;
    if (joins_before && joins_behind) {
        consumed[at].end = consumed[next].end;
        file->consumed_count--;
        memmove(consumed + next, consumed + next + 1,
            (file->consumed_count - next) * sizeof consumed[0]);
    } else if (joins_before) {
        consumed[at].end = added.end;
    } else if (joins_behind) {
        consumed[next].first = added.first;
    } else {
        return insert_interval(file, at, added, error);
    }
    return CADRE_OK;
}

bool file_shares_overlaps(const struct file_shares *shares, const struct file_run *run)
{
    if (run->file >= shares->file_count || shares->files[run->file].done) {
        return true;
    }
    const struct file_share *file = &shares->files[run->file];
    size_t at = find_interval(file, run->first);
    at += at < file->consumed_count && file->consumed[at].end == run->first ? 1 : 0;
    return at < file->consumed_count && file->consumed[at].first < run->first + run->count;
}

cadre_status file_shares_done(struct file_shares *shares, uint64_t file, struct cadre_error *error)
{
    uint64_t number = file & ~FILE_SHARES_DROPPED;
    CADRE_TRY(check_file(shares, number, error));
    struct file_share *share = &shares->files[number];
    if (!share->done) {
        share->done = true;
        share->dropped = number != file;
        shares->done_count++;
        shares->dropped_count += share->dropped ? 1 : 0;
    }
    return CADRE_OK;
}

cadre_status file_shares_assign(
    struct file_shares *shares, uint32_t workers, struct cadre_error *error)
{
    CADRE_TRY(check_workers(workers, error));
    uint32_t turn = 0;
    for (size_t i = 0; i < shares->file_count; i++) {
        struct file_share *file = &shares->files[i];
        file->owner = turn;
        if (!file->done) {
            turn = (turn + 1) % workers;
        }
    }
    shares->workers = workers;
    return CADRE_OK;
}

struct file_shares_count file_shares_count(const struct file_shares *shares)
{
    struct file_shares_count count = {0};
    for (size_t i = 0; i < shares->file_count; i++) {
        const struct file_share *file = &shares->files[i];
        count.done += file->done ? 1 : 0;
        count.begun += !file->done && file->consumed_count > 0 ? 1 : 0;
        for (size_t k = 0; k < file->consumed_count; k++) {
            count.samples += file->consumed[k].end - file->consumed[k].first;
        }
    }
    return count;
}
