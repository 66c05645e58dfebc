/* SPDX-License-Identifier: Apache-2.0
 * The two rules for cutting batches; see rebatch.h. */
#include "worker/library/input/batching/rebatch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

struct row_range rebatch_split_piece(int64_t rows, uint64_t pieces, uint64_t piece)
{
    CADRE_ASSERT(rows >= 0 && pieces >= 1 && piece < pieces);
    uint64_t all = (uint64_t)rows;
    uint64_t each = all / pieces + (all % pieces != 0 ? 1 : 0);
    /* piece * each < pieces * each < all + pieces: no overflow for anything that fits in memory. */
    uint64_t first = piece * each < all ? piece * each : all;
    uint64_t count = all - first < each ? all - first : each;
    return (struct row_range){.first = (int64_t)first, .count = (int64_t)count};
}

/* --- lists of sizes --- */

static const struct size_run *runs_of(const struct size_list *list)
{
    return list->many != NULL ? list->many : list->few;
}

/* Adds `count` entries of one size to runs that have room for them. */
static void add_entries(struct size_run runs[], size_t *run_count, int64_t size, uint64_t count)
{
    if (count == 0) {
        return;
    }
    struct size_run before = {0};
    if (*run_count > 0) {
        before = runs[*run_count - 1];
    }
    bool longer = *run_count > 0 && before.size == size;
    size_t at = longer ? *run_count - 1 : *run_count;
    runs[at] = (struct size_run){.size = size,
        .pieces_end = before.pieces_end + count,
        .rows_end = before.rows_end + size * (int64_t)count};
    *run_count = at + 1;
}

struct size_list size_list_make(
    int64_t batch_rows, uint64_t workers, uint64_t replicas, uint64_t worker)
{
    CADRE_ASSERT(batch_rows >= 0 && workers >= 1 && replicas >= 1 && worker < workers);
    uint64_t length = workers * replicas;
    int64_t small = (int64_t)((uint64_t)batch_rows / length);
    uint64_t large = (uint64_t)batch_rows % length; /* entries of small + 1; they come first */
    uint64_t rotated = worker * replicas;
    struct size_list list = {.length = length};
    uint64_t large_left = large > rotated ? large - rotated : 0;
    uint64_t small_left = length - rotated - large_left;
    add_entries(list.few, &list.run_count, small + 1, large_left);
    add_entries(list.few, &list.run_count, small, small_left);
    add_entries(list.few, &list.run_count, small + 1, large - large_left);
    /* Where the list begins among the small ones, some of them are left for the end. */
    add_entries(list.few, &list.run_count, small, rotated - (large - large_left));
    return list;
}

static cadre_status check_sizes(const int64_t sizes[], size_t count, struct cadre_error *error)
{
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (sizes[i] < 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "rebatch: size %zu of %zu is %" PRId64 "; give 0 or more rows", i, count, sizes[i]);
        }
        if (__builtin_add_overflow(sum, sizes[i], &sum)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "rebatch: the %zu sizes are more than 2^63 rows together", count);
        }
    }
    if (sum == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "rebatch: %zu sizes without a row between them; one must be positive", count);
    }
    return CADRE_OK;
}

cadre_status size_list_from(
    const int64_t sizes[], size_t count, struct size_list *ret_list, struct cadre_error *error)
{
    struct size_list list = {.length = count};
    *ret_list = (struct size_list){0};
    CADRE_TRY(check_sizes(sizes, count, error));
    struct size_run *runs = calloc(count, sizeof runs[0]);
    if (runs == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "rebatch: no memory for %zu sizes", count);
    }
    for (size_t i = 0; i < count; i++) {
        add_entries(runs, &list.run_count, sizes[i], 1);
    }
    list.many = runs;
    *ret_list = list;
    return CADRE_OK;
}

cadre_status size_list_copy(
    const struct size_list *from, struct size_list *ret_list, struct cadre_error *error)
{
    *ret_list = *from;
    if (from->many != NULL) {
        ret_list->many = malloc(from->run_count * sizeof from->many[0]);
        if (ret_list->many == NULL) {
            *ret_list = (struct size_list){0};
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "rebatch: no memory for %" PRIu64 " sizes", from->length);
        }
        memcpy(ret_list->many, from->many, from->run_count * sizeof from->many[0]);
    }
    return CADRE_OK;
}

void size_list_clear(struct size_list *list)
{
    free(list->many);
    *list = (struct size_list){0};
}

int64_t size_list_rows(const struct size_list *list)
{
    return runs_of(list)[list->run_count - 1].rows_end;
}

bool size_list_is_even(const struct size_list *list)
{
    return list->run_count == 1;
}

/* The run that entry `entry` < length is in. */
static size_t find_run(const struct size_list *list, uint64_t entry)
{
    const struct size_run *runs = runs_of(list);
    size_t low = 0;
    size_t high = list->run_count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (runs[middle].pieces_end > entry) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int64_t size_list_size(const struct size_list *list, uint64_t piece)
{
    return runs_of(list)[find_run(list, piece % list->length)].size;
}

int64_t size_list_rows_before(const struct size_list *list, uint64_t piece)
{
    const struct size_run *runs = runs_of(list);
    uint64_t entry = piece % list->length;
    size_t run = find_run(list, entry);
    int64_t partial = runs[run].rows_end - (int64_t)(runs[run].pieces_end - entry) * runs[run].size;
    int64_t rows = 0;
    if (__builtin_mul_overflow(piece / list->length, size_list_rows(list), &rows) ||
        __builtin_add_overflow(rows, partial, &rows)) {
        return INT64_MAX;
    }
    return rows;
}

struct row_range size_list_piece(const struct size_list *list, uint64_t piece, int64_t total)
{
    int64_t first = size_list_rows_before(list, piece);
    int64_t end = size_list_rows_before(list, piece + 1);
    first = first < total ? first : total;
    end = end < total ? end : total;
    return (struct row_range){.first = first, .count = end - first};
}

/* The first piece that wants a row behind the stream's end: a binary search, as the starts never
 * fall. There are at most `length` pieces for each row. */
uint64_t size_list_whole_pieces(const struct size_list *list, int64_t total)
{
    uint64_t low = 0;
    uint64_t high = 0;
    if (__builtin_mul_overflow((uint64_t)total + 1, list->length, &high)) {
        high = UINT64_MAX;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (size_list_rows_before(list, middle + 1) > total) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

uint64_t size_list_pieces(const struct size_list *list, int64_t total)
{
    uint64_t piece = size_list_whole_pieces(list, total);
    if (size_list_rows_before(list, piece) == total) {
        return piece; /* it finds nothing at all */
    }
    piece++; /* a short one, and the empty ones behind it */
    for (;;) {
        uint64_t entry = piece % list->length;
        const struct size_run *run = &runs_of(list)[find_run(list, entry)];
        if (run->size > 0) {
            return piece;
        }
        piece += run->pieces_end - entry;
    }
}
