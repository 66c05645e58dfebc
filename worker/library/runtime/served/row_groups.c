/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/served/row_groups.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

cadre_status row_groups_no_such_row(
    const char *name, uint64_t rows, int64_t row, struct cadre_error *error)
{
    if (rows == 0) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "there is no row %" PRId64 " in variable '%s': it has none", row, name);
    }
    return cadre_error_set(error, CADRE_OUT_OF_RANGE,
        "there is no row %" PRId64 " in variable '%s': it has rows 0 to %" PRIu64, row, name,
        rows - 1);
}

/* Counts at begins[shard + 1] how many of `ids` each shard has; *ret_ordered: they are grouped by
 * shard already. */
static cadre_status count_rows(const char *name, struct partition_layout layout,
    struct row_groups *groups, bool *ret_ordered, struct cadre_error *error)
{
    uint64_t before = 0;
    *ret_ordered = true;
    for (size_t i = 0; i < groups->count; i++) {
        int64_t row = groups->ids[i];
        if (row < 0 || (uint64_t)row >= layout.rows) {
            return row_groups_no_such_row(name, layout.rows, row, error);
        }
        uint64_t owner = partition_owner(layout, (uint64_t)row);
        CADRE_ASSERT(owner < layout.shards);
        groups->begins[owner + 1]++;
        *ret_ordered = *ret_ordered && owner >= before;
        before = owner;
    }
    for (uint64_t shard = 0; shard < layout.shards; shard++) {
        groups->begins[shard + 1] += groups->begins[shard];
    }
    return CADRE_OK;
}

/* Writes `ids`, as each shard numbers them, to `ret_sorted`, which is `ids` itself where they are
 * ordered. Moves begins on, and back. */
static void sort_rows(struct partition_layout layout, const int64_t *ids, struct row_groups *groups,
    int64_t *ret_sorted)
{
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t row = (uint64_t)ids[i];
        uint64_t owner = partition_owner(layout, row);
        size_t at = groups->begins[owner]++;
        CADRE_ASSERT(at < groups->count);
        ret_sorted[at] = (int64_t)(row - partition_first(layout, owner));
        if (groups->positions != NULL) {
            groups->positions[at] = i;
        }
    }
    memmove(groups->begins + 1, groups->begins, (size_t)layout.shards * sizeof groups->begins[0]);
    groups->begins[0] = 0;
    CADRE_ASSERT(groups->begins[layout.shards] == groups->count);
}

static cadre_status no_memory(const char *name, size_t count, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
        "no memory for %zu row numbers of variable '%s'", count, name);
}

/* For ids that are not grouped by shard. */
static cadre_status sort_apart(const char *name, struct partition_layout layout,
    struct row_groups *groups, struct cadre_error *error)
{
    int64_t *sorted = malloc((groups->count + 1) * sizeof *sorted);
    groups->positions = malloc((groups->count + 1) * sizeof *groups->positions);
    if (sorted == NULL || groups->positions == NULL) {
        free(sorted);
        return no_memory(name, groups->count, error);
    }
    sort_rows(layout, groups->own_ids, groups, sorted);
    free(groups->own_ids);
    groups->own_ids = sorted;
    groups->ids = sorted;
    return CADRE_OK;
}

/* Where there are several shards the numbers are copied first: another thread of the program may
 * change the caller's between the count and the sort. */
cadre_status row_groups_make(const char *name, struct partition_layout layout, const int64_t *ids,
    size_t count, struct row_groups *ret_groups, struct cadre_error *error)
{
    CADRE_ASSERT(layout.shards > 0);
    bool ordered = true;
    *ret_groups = (struct row_groups){.count = count, .ids = ids};
    ret_groups->begins = calloc((size_t)layout.shards + 1, sizeof *ret_groups->begins);
    if (ret_groups->begins == NULL) {
        return no_memory(name, count, error);
    }
    if (layout.shards == 1) { /* the shard's own numbers, which its server checks too */
        return count_rows(name, layout, ret_groups, &ordered, error);
    }
    ret_groups->own_ids = malloc((count + 1) * sizeof *ret_groups->own_ids);
    if (ret_groups->own_ids == NULL) {
        return no_memory(name, count, error);
    }
    if (count > 0) {
        memcpy(ret_groups->own_ids, ids, count * sizeof *ids);
    }
    ret_groups->ids = ret_groups->own_ids;
    CADRE_TRY(count_rows(name, layout, ret_groups, &ordered, error));
    if (!ordered) {
        return sort_apart(name, layout, ret_groups, error);
    }
    sort_rows(layout, ret_groups->own_ids, ret_groups, ret_groups->own_ids);
    return CADRE_OK;
}

void row_groups_clear(struct row_groups *groups)
{
    free(groups->begins);
    free(groups->positions);
    free(groups->own_ids);
    *groups = (struct row_groups){0};
}

void row_groups_gather(
    const struct row_groups *groups, size_t row_bytes, const void *rows, void *ret_grouped)
{
    CADRE_ASSERT(groups->positions != NULL);
    for (size_t i = 0; i < groups->count; i++) {
        memcpy((char *)ret_grouped + i * row_bytes,
            (const char *)rows + groups->positions[i] * row_bytes, row_bytes);
    }
}

void row_groups_scatter(
    const struct row_groups *groups, size_t row_bytes, const void *grouped, void *ret_rows)
{
    CADRE_ASSERT(groups->positions != NULL);
    for (size_t i = 0; i < groups->count; i++) {
        memcpy((char *)ret_rows + groups->positions[i] * row_bytes,
            (const char *)grouped + i * row_bytes, row_bytes);
    }
}
