/* SPDX-License-Identifier: Apache-2.0
 * Row numbers by the shards that have the rows. Pure.
 *
 *     ids        7 0 3 7     of 8 rows in 2 shards
 *     groups     0 3 | 3 3   as each shard numbers its rows, in the order of `ids`
 *     positions  1 2 | 0 3   where they stand in `ids` */
#ifndef CADRE_RUNTIME_ROW_GROUPS_H
#define CADRE_RUNTIME_ROW_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "worker/library/ps/partition.h"

struct row_groups {
    size_t count;
    const int64_t *ids; /* those of shard s: from begins[s] to begins[s + 1] */
    size_t *begins;
    size_t *positions; /* NULL: they stand so already */
    int64_t *own_ids;  /* NULL: `ids` are the caller's */
};

/* OUT_OF_RANGE names the row; RESOURCE_EXHAUSTED. To be cleared in any case; `ids` lives as long.
 */
cadre_status row_groups_make(const char *name, struct partition_layout layout, const int64_t *ids,
    size_t count, struct row_groups *ret_groups, struct cadre_error *error);
void row_groups_clear(struct row_groups *groups);

/* Rows in the order of `ids` into that of the groups, and back. With positions only. */
void row_groups_gather(
    const struct row_groups *groups, size_t row_bytes, const void *rows, void *ret_grouped);
void row_groups_scatter(
    const struct row_groups *groups, size_t row_bytes, const void *grouped, void *ret_rows);

/* OUT_OF_RANGE, which says which rows there are. */
cadre_status row_groups_no_such_row(
    const char *name, uint64_t rows, int64_t row, struct cadre_error *error);

#endif
