/* SPDX-License-Identifier: Apache-2.0
 * How a variable is cut into shards along its first axis, and which parameter server has which.
 * Pure: a function of shapes and counts, so all tasks compute the same.
 *
 *     11 rows in 4 shards, 3 servers, 2 variables before it
 *
 *       rows    0 1 2 | 3 4 5 | 6 7 8 | 9 10       the first (rows mod shards) have one more
 *       server    2       0       1      2         each shard moves the counter
 *
 * (tf.distribute.experimental.partitioners; the "div" layout of embedding lookups.) */
#ifndef CADRE_WORKER_PS_PARTITION_H
#define CADRE_WORKER_PS_PARTITION_H

#include <stdint.h>

#include "common/base/error.h"

enum partition_kind {
    PARTITION_FIXED,    /* `shards` of them */
    PARTITION_MIN_SIZE, /* as many as give each `bytes`, about: the last ones may have less */
    PARTITION_MAX_SIZE  /* as many as it takes so that none has more than `bytes` */
};

struct partition_rule {
    enum partition_kind kind;
    uint64_t shards; /* MIN_SIZE, MAX_SIZE: at most so many; 0 for MAX_SIZE: no limit */
    uint64_t bytes;
};

/* INVALID_ARGUMENT names what is 0, or no kind. */
cadre_status partition_rule_check(const struct partition_rule *rule, struct cadre_error *error);

/* The number of pieces into which the rule cuts that axis of a tensor: from 1 to the axis' length
 * (1 where that is 0). A row larger than `bytes` is a shard by itself. `dims` has `rank` lengths,
 * of 0 or more; a scalar is never cut. The rule was checked, axis < rank unless rank is 0. */
uint64_t partition_count(const struct partition_rule *rule, const int64_t *dims, uint32_t rank,
    uint32_t axis, uint64_t element_bytes);

/* `count` numbers of pieces, as a function of the program returned them. INVALID_ARGUMENT unless
 * they are one for each axis, 1 or more for axis 0 and 1 for the others. *ret_shards: at most
 * dims[0]. */
cadre_status partition_from_counts(const int64_t *pieces, uint32_t count, const int64_t *dims,
    uint32_t rank, uint64_t *ret_shards, struct cadre_error *error);

/* `rows` rows in `shards` shards; shards is 1 or more, and at most rows unless that is 0. */
struct partition_layout {
    uint64_t rows;
    uint64_t shards;
};

/* The first row of a shard; of the next shard it is this one's end. */
uint64_t partition_first(struct partition_layout layout, uint64_t shard);
/* How many rows the shard has. */
uint64_t partition_rows(struct partition_layout layout, uint64_t shard);
/* The shard that has the row; row < rows. */
uint64_t partition_owner(struct partition_layout layout, uint64_t row);

/* Round robin: the server of the next variable or shard; moves the counter. */
uint32_t partition_next_server(uint64_t *counter, uint32_t servers);

#endif
