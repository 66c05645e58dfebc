/* SPDX-License-Identifier: Apache-2.0
 * Row numbers by the shards that have the rows. Pure.
 *
 *     ids        7 0 3 7     of 8 rows in 2 shards
 *     groups     0 3 | 3 3   as each shard numbers its rows, in the order of `ids`
 *     positions  1 2 | 0 3   their indices in `ids` */
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
    size_t *positions; /* NULL: `ids` are grouped already */
    int64_t *own_ids;  /* NULL: `ids` are the caller's */
};

/* OUT_OF_RANGE names the row; RESOURCE_EXHAUSTED. row_groups_clear in any case; `ids` must outlive
 * it. */
cadre_status row_groups_make(const char *name, struct partition_layout layout, const int64_t *ids,
    size_t count, struct row_groups *ret_groups, struct cadre_error *error);
/* Frees the arrays. */
void row_groups_clear(struct row_groups *groups);

/* Rows in the order of `ids` into that of the groups. With positions only. */
void row_groups_gather(
    const struct row_groups *groups, size_t row_bytes, const void *rows, void *ret_grouped);
/* Rows in the order of the groups into that of `ids`. With positions only. */
void row_groups_scatter(
    const struct row_groups *groups, size_t row_bytes, const void *grouped, void *ret_rows);

/* Sets OUT_OF_RANGE, which names the rows that exist, and returns it. */
cadre_status row_groups_no_such_row(
    const char *name, uint64_t rows, int64_t row, struct cadre_error *error);

#endif
