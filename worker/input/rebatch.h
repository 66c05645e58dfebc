/* SPDX-License-Identifier: Apache-2.0
 * The arithmetic of cutting global batches: which rows are whose. Numbers only; nothing is read.
 *
 * Split rule: each batch of b rows alone gives k pieces of ceil(b / k) rows, late ones short or
 * empty. Sizes rule: the rows of all batches in one stream, cut by a list of N = workers * replicas
 * sizes that sum to the batch size G, over and over. A worker's list is the common one rotated by
 * its place. */
#ifndef CADRE_WORKER_INPUT_REBATCH_H
#define CADRE_WORKER_INPUT_REBATCH_H

#include <stdint.h>

struct row_range {
    int64_t first;
    int64_t count;
};

/* Piece `piece` of `pieces` of a batch of `rows` rows. An empty one has count 0 and first <= rows.
 */
struct row_range split_piece(int64_t rows, uint64_t pieces, uint64_t piece);

/* The sizes rule for one worker. */
struct size_list {
    uint64_t length;  /* N */
    int64_t small;    /* entries are small or small + 1 */
    uint64_t large;   /* how many of the common list are large; they come first */
    uint64_t rotated; /* this worker's list begins at that entry of the common one */
};

struct size_list size_list_make(
    int64_t batch_rows, uint64_t workers, uint64_t replicas, uint64_t worker);

/* Rows in the worker's pieces before piece `piece` of its endless stream. Saturates at INT64_MAX.
 */
int64_t size_list_rows_before(const struct size_list *list, uint64_t piece);

/* The rows of piece `piece`, clipped to a stream of `total` rows; count 0 behind the end. */
struct row_range size_list_piece(const struct size_list *list, uint64_t piece, int64_t total);

/* How many pieces a stream of `total` rows gives: up to the first piece that wants rows and finds
 * none. Empty entries before it count. */
uint64_t size_list_pieces(const struct size_list *list, int64_t total);

#endif
