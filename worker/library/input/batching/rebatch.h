/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of cutting global batches: which rows are whose. Numbers only; nothing is read.
 *
 * Split rule: each batch of b rows alone gives k pieces of ceil(b / k) rows, late ones short or
 * empty. Sizes rule: the rows of all batches in one stream, cut by a list of sizes, over and over.
 * For N = workers * replicas the sizes sum to the batch size G and differ by one at most; a
 * worker's list is the common one rotated by its place. */
#ifndef CADRE_WORKER_INPUT_BATCHING_REBATCH_H
#define CADRE_WORKER_INPUT_BATCHING_REBATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct row_range {
    int64_t first;
    int64_t count;
};

/* Piece `piece` of `pieces` of a batch of `rows` rows. An empty one has count 0 and first <= rows.
 */
struct row_range rebatch_split_piece(int64_t rows, uint64_t pieces, uint64_t piece);

/* Entries of one size that follow each other in a list; ends count from the start of the list. */
struct size_run {
    int64_t size;
    uint64_t pieces_end;
    int64_t rows_end;
};

/* A list of sizes. */
struct size_list {
    uint64_t length; /* entries */
    size_t run_count;
    struct size_run few[3];
    struct size_run *many; /* malloc'ed, where there are more runs; else NULL */
};

/* The list of worker `worker`. Holds no memory. */
struct size_list size_list_make(
    int64_t batch_rows, uint64_t workers, uint64_t replicas, uint64_t worker);

/* Any list of `count` sizes. INVALID_ARGUMENT: there is none, one is negative, all are 0, or their
 * sum is more than 2^63 - 1. */
cadre_status size_list_from(
    const int64_t sizes[], size_t count, struct size_list *ret_list, struct cadre_error *error);

cadre_status size_list_copy(
    const struct size_list *from, struct size_list *ret_list, struct cadre_error *error);

/* Frees and zeroes. A zeroed one is allowed. */
void size_list_clear(struct size_list *list);

/* Rows of one time through the list. */
int64_t size_list_rows(const struct size_list *list);

/* Whether all entries are the same size. */
bool size_list_is_even(const struct size_list *list);

/* The size that piece `piece` has where rows do not end. */
int64_t size_list_size(const struct size_list *list, uint64_t piece);

/* Rows in the pieces before piece `piece` of an endless stream. Saturates at INT64_MAX. */
int64_t size_list_rows_before(const struct size_list *list, uint64_t piece);

/* The rows of piece `piece`, clipped to a stream of `total` rows; count 0 behind the end. */
struct row_range size_list_piece(const struct size_list *list, uint64_t piece, int64_t total);

/* How many pieces a stream of `total` rows gives: up to the first piece that wants rows and finds
 * none. Empty entries before it count. */
uint64_t size_list_pieces(const struct size_list *list, int64_t total);

/* The same where a piece that finds too few rows is dropped, and ends the stream. */
uint64_t size_list_whole_pieces(const struct size_list *list, int64_t total);

#endif
