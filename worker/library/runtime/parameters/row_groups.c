/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/runtime/parameters/row_groups.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

static cadre_status no_such_row(
    const char *name, uint64_t rows, int64_t row, struct cadre_error *error)
{
    if (rows == 0) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "there is no row %" PRId64 " in parameter '%s': it has none", row, name);
    }
    return cadre_error_set(error, CADRE_OUT_OF_RANGE,
        "there is no row %" PRId64 " in parameter '%s': it has rows 0 to %" PRIu64, row, name,
        rows - 1);
}

/* How many rows each shard has of them, at begins[shard + 1]; *ret_ordered: they stand shard by
 * shard. */
static cadre_status count_rows(const char *name, struct partition_layout layout,
    struct row_groups *groups, bool *ret_ordered, struct cadre_error *error)
{
    uint64_t before = 0;
    *ret_ordered = true;
    for (size_t i = 0; i < groups->count; i++) {
        int64_t row = groups->ids[i];
        if (row < 0 || (uint64_t)row >= layout.rows) {
            return no_such_row(name, layout.rows, row, error);
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

/* Moves begins on, and back. */
static void sort_rows(struct partition_layout layout, const int64_t *ids, struct row_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        uint64_t row = (uint64_t)ids[i];
        uint64_t owner = partition_owner(layout, row);
        size_t at = groups->begins[owner]++;
        CADRE_ASSERT(at < groups->count);
        groups->own_ids[at] = (int64_t)(row - partition_first(layout, owner));
        if (groups->positions != NULL) {
            groups->positions[at] = i;
        }
    }
    memmove(groups->begins + 1, groups->begins, (size_t)layout.shards * sizeof groups->begins[0]);
    groups->begins[0] = 0;
    CADRE_ASSERT(groups->begins[layout.shards] == groups->count);
}

cadre_status row_groups_make(const char *name, struct partition_layout layout, const int64_t *ids,
    size_t count, struct row_groups *ret_groups, struct cadre_error *error)
{
    CADRE_ASSERT(layout.shards > 0);
    bool ordered = true;
    *ret_groups = (struct row_groups){.count = count, .ids = ids};
    ret_groups->begins = calloc((size_t)layout.shards + 1, sizeof *ret_groups->begins);
    if (ret_groups->begins != NULL) {
        CADRE_TRY(count_rows(name, layout, ret_groups, &ordered, error));
    }
    if (ret_groups->begins != NULL && layout.shards == 1) {
        return CADRE_OK; /* they are the shard's own numbers */
    }
    ret_groups->own_ids = malloc((count + 1) * sizeof *ret_groups->own_ids);
    ret_groups->positions = ordered ? NULL : malloc((count + 1) * sizeof *ret_groups->positions);
    if (ret_groups->begins == NULL || ret_groups->own_ids == NULL ||
        (!ordered && ret_groups->positions == NULL)) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu row numbers of parameter '%s'", count, name);
    }
    sort_rows(layout, ids, ret_groups);
    ret_groups->ids = ret_groups->own_ids;
    return CADRE_OK;
}

void row_groups_clear(struct row_groups *groups)
{
    free(groups->begins);
    free(groups->positions);
    free(groups->own_ids);
    *groups = (struct row_groups){0};
}

void row_groups_collect(
    const struct row_groups *groups, size_t row_bytes, const void *rows, void *ret_grouped)
{
    CADRE_ASSERT(groups->positions != NULL);
    for (size_t i = 0; i < groups->count; i++) {
        memcpy((char *)ret_grouped + i * row_bytes,
            (const char *)rows + groups->positions[i] * row_bytes, row_bytes);
    }
}

void row_groups_spread(
    const struct row_groups *groups, size_t row_bytes, const void *grouped, void *ret_rows)
{
    CADRE_ASSERT(groups->positions != NULL);
    for (size_t i = 0; i < groups->count; i++) {
        memcpy((char *)ret_rows + groups->positions[i] * row_bytes,
            (const char *)grouped + i * row_bytes, row_bytes);
    }
}
