/* SPDX-License-Identifier: Apache-2.0
 * The two rules for cutting batches; see rebatch.h. */
#include "worker/input/rebatch.h"

#include "common/pure/assert.h"

struct row_range split_piece(int64_t rows, uint64_t pieces, uint64_t piece)
{
    CADRE_ASSERT(rows >= 0 && pieces >= 1 && piece < pieces);
    uint64_t all = (uint64_t)rows;
    uint64_t each = all / pieces + (all % pieces != 0 ? 1 : 0);
    /* piece * each < pieces * each < all + pieces: no overflow for anything that fits in memory. */
    uint64_t first = piece * each < all ? piece * each : all;
    uint64_t count = all - first < each ? all - first : each;
    return (struct row_range){.first = (int64_t)first, .count = (int64_t)count};
}

struct size_list size_list_make(
    int64_t batch_rows, uint64_t workers, uint64_t replicas, uint64_t worker)
{
    CADRE_ASSERT(batch_rows >= 0 && workers >= 1 && replicas >= 1 && worker < workers);
    uint64_t length = workers * replicas;
    uint64_t rows = (uint64_t)batch_rows;
    return (struct size_list){
        .length = length,
        .small = (int64_t)(rows / length),
        .large = rows % length,
        .rotated = worker * replicas,
    };
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Large entries among the first `count` <= N of the rotated list. */
static uint64_t large_among(const struct size_list *list, uint64_t count)
{
    uint64_t end = list->rotated + count;
    uint64_t up_to_end = least(end, list->large);
    uint64_t wrapped = end > list->length ? least(end - list->length, list->large) : 0;
    return up_to_end + wrapped - least(list->rotated, list->large);
}

int64_t size_list_rows_before(const struct size_list *list, uint64_t piece)
{
    uint64_t cycles = piece / list->length;
    uint64_t rest = piece % list->length;
    uint64_t cycle_rows = (uint64_t)list->small * list->length + list->large;
    uint64_t rows = 0;
    uint64_t partial = rest * (uint64_t)list->small + large_among(list, rest);
    if (__builtin_mul_overflow(cycles, cycle_rows, &rows) ||
        __builtin_add_overflow(rows, partial, &rows) || rows > INT64_MAX) {
        return INT64_MAX;
    }
    return (int64_t)rows;
}

struct row_range size_list_piece(const struct size_list *list, uint64_t piece, int64_t total)
{
    int64_t first = size_list_rows_before(list, piece);
    int64_t end = size_list_rows_before(list, piece + 1);
    first = first < total ? first : total;
    end = end < total ? end : total;
    return (struct row_range){.first = first, .count = end - first};
}

uint64_t size_list_pieces(const struct size_list *list, int64_t total)
{
    CADRE_ASSERT(list->small > 0 || list->large > 0);
    /* The first piece that begins at or behind the end: a binary search, as the starts never fall.
     * There are at most N pieces for each row. */
    uint64_t low = 0;
    uint64_t high = 0;
    if (__builtin_mul_overflow((uint64_t)total + 1, list->length, &high)) {
        high = UINT64_MAX;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (size_list_rows_before(list, middle) >= total) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    while (size_list_rows_before(list, low) < INT64_MAX &&
           size_list_rows_before(list, low + 1) == size_list_rows_before(list, low)) {
        low++;
    }
    return low;
}
