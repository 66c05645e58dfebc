/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/library/ps/partition.h"

#include <inttypes.h>

cadre_status partition_rule_check(const struct partition_rule *rule, struct cadre_error *error)
{
    if ((unsigned)rule->kind > PARTITION_MAX_SIZE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "partitioner %u, which does not exist; it is one of fixed (0), minimal (1) and maximal "
            "size (2)",
            (unsigned)rule->kind);
    }
    if (rule->shards == 0 && rule->kind != PARTITION_MAX_SIZE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a partitioner with %s 0 shards; say 1 or more",
            rule->kind == PARTITION_FIXED ? "a fixed number of" : "at most");
    }
    if (rule->bytes == 0 && rule->kind != PARTITION_FIXED) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a partitioner with shards of 0 bytes; say how large they are to be");
    }
    return CADRE_OK;
}

/* Saturates: a larger product is as good as UINT64_MAX. */
static uint64_t partition_times(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t divide_up(uint64_t a, uint64_t b)
{
    return a / b + (a % b != 0 ? 1 : 0);
}

static uint64_t partition_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Bytes of everything that has one index along the axis. */
static uint64_t slice_bytes(
    const int64_t *dims, uint32_t rank, uint32_t axis, uint64_t element_bytes)
{
    uint64_t bytes = element_bytes;
    for (uint32_t i = 0; i < rank; i++) {
        bytes = i == axis ? bytes : partition_times(bytes, (uint64_t)dims[i]);
    }
    return bytes;
}

uint64_t partition_count(const struct partition_rule *rule, const int64_t *dims, uint32_t rank,
    uint32_t axis, uint64_t element_bytes)
{
    if (rank == 0 || dims[axis] <= 1) {
        return 1;
    }
    uint64_t length = (uint64_t)dims[axis];
    uint64_t slice = slice_bytes(dims, rank, axis, element_bytes);
    uint64_t count = rule->shards;
    if (rule->kind == PARTITION_MIN_SIZE) {
        count = partition_least(count, divide_up(partition_times(slice, length), rule->bytes));
    } else if (rule->kind == PARTITION_MAX_SIZE) {
        uint64_t rows = slice == 0 ? length : rule->bytes / slice;
        uint64_t needed = divide_up(length, rows == 0 ? 1 : rows);
        count = count == 0 ? needed : partition_least(count, needed);
    }
    count = partition_least(count, length);
    return count == 0 ? 1 : count;
}

cadre_status partition_from_counts(const int64_t *pieces, uint32_t count, const int64_t *dims,
    uint32_t rank, uint64_t *ret_shards, struct cadre_error *error)
{
    *ret_shards = 1;
    if (count != rank || rank == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the partitioner gave %" PRIu32 " numbers of pieces for %" PRIu32
            " axes; it has to give one for each",
            count, rank);
    }
    for (uint32_t axis = 0; axis < rank; axis++) {
        if (pieces[axis] < 1 || (axis > 0 && pieces[axis] > 1)) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "the partitioner cuts axis %" PRIu32 " into %" PRId64
                " pieces; only axis 0 can be cut, into 1 or more",
                axis, pieces[axis]);
        }
    }
    uint64_t rows = dims[0] < 1 ? 1 : (uint64_t)dims[0];
    *ret_shards = partition_least((uint64_t)pieces[0], rows);
    return CADRE_OK;
}

uint64_t partition_first(struct partition_layout layout, uint64_t shard)
{
    return layout.rows / layout.shards * shard +
           partition_least(shard, layout.rows % layout.shards);
}

uint64_t partition_rows(struct partition_layout layout, uint64_t shard)
{
    return layout.rows / layout.shards + (shard < layout.rows % layout.shards ? 1 : 0);
}

uint64_t partition_owner(struct partition_layout layout, uint64_t row)
{
    uint64_t less = layout.rows / layout.shards;
    uint64_t longer = layout.rows % layout.shards; /* shards with one row more */
    uint64_t in_longer = (less + 1) * longer;
    return row < in_longer ? row / (less + 1) : longer + (row - in_longer) / less;
}

uint32_t partition_next_server(uint64_t *counter, uint32_t servers)
{
    return (uint32_t)((*counter)++ % servers);
}
