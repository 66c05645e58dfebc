/* SPDX-License-Identifier: Apache-2.0
 * Which worker reads which files of an epoch under FILE, and which of their samples were consumed:
 * so every record is consumed exactly once when workers are lost or join. Pure: numbers only.
 *
 * A table is of one epoch, and holds after so many of its steps. All workers have equal ones: each
 * applies what all of them consumed in a step, in any order. A file's number is its index in the
 * list of names; a sample's number is its index in the file's pipeline, from 0.
 *
 *     fresh:  file f is worker f mod W's, as shard(W, worker) has it
 *     file_shares_consumed, _done for each step that counts, and `step` becomes the next one
 *     the roster changes:  file_shares_assign; distributed_input_open with the table */
#ifndef CADRE_WORKER_INPUT_SHARDING_FILE_SHARES_H
#define CADRE_WORKER_INPUT_SHARDING_FILE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

#define FILE_SHARES_FILES_MAX   (1u << 18) /* of a list: SAMPLE_ID_OUTER_BITS */
#define FILE_SHARES_WORKERS_MAX 65536u     /* DISTRIBUTED_WORKERS_MAX */
/* Added to the number of a file that is done: some of its samples were dropped. */
#define FILE_SHARES_DROPPED (UINT64_C(1) << 32)

#define FILE_SHARES_SAMPLES_MAX (UINT64_C(1) << 40) /* of one file: the lower bits of an id */

/* Samples [first, first + count) of a file; count >= 1 where something was consumed. */
struct file_run {
    uint64_t file;
    uint64_t first;
    uint64_t count;
};

/* Samples [first, end). */
struct sample_interval {
    uint64_t first;
    uint64_t end;
};

struct file_share {
    uint32_t owner; /* the worker that reads it */
    bool done;      /* it has nothing left to feed */
    bool dropped;   /* done, and not all of its samples were consumed */
    /* What was consumed: sorted, apart from one another, none empty. */
    struct sample_interval *consumed; /* malloc'ed; the table's */
    size_t consumed_count;
    size_t consumed_capacity;
};

/* Zeroed: of no files. */
struct file_shares {
    uint64_t epoch;
    uint64_t step;    /* what was consumed before this step of the epoch is in the table */
    uint32_t workers; /* that the files are dealt to */
    struct file_share *files;
    size_t file_count;
    size_t done_count;    /* files that are done */
    size_t dropped_count; /* of them: not all samples were consumed */
};

/* A fresh epoch of `files` files for `workers` >= 1 workers. INVALID_ARGUMENT beyond the limits. */
cadre_status file_shares_init(struct file_shares *shares, uint64_t epoch, uint64_t files,
    uint32_t workers, struct cadre_error *error);

/* Frees and zeroes. A zeroed one is allowed. */
void file_shares_clear(struct file_shares *shares);

cadre_status file_shares_copy(
    const struct file_shares *from, struct file_shares *ret_copy, struct cadre_error *error);

/* Some samples of a file were consumed. INVALID_ARGUMENT: no such file, samples of one that was
 * done. Samples that were consumed already, or of a file that is done, are DATA_LOSS: one would
 * count twice. On failure nothing changed.
 */
cadre_status file_shares_consumed(
    struct file_shares *shares, const struct file_run *run, struct cadre_error *error);

/* Whether some of these samples were consumed already, or their file is done or none of the list.
 */
bool file_shares_overlaps(const struct file_shares *shares, const struct file_run *run);

/* File `file` has nothing left to feed, with FILE_SHARES_DROPPED although not all of it was
 * consumed. What is said of it first holds. */
cadre_status file_shares_done(struct file_shares *shares, uint64_t file, struct cadre_error *error);

/* Deals the files that are not done to `workers` >= 1 workers by turns, in order of number; the
 * owner of the others means nothing. In a fresh epoch (nothing consumed, nothing done) that is the
 * deal of file_shares_init. */
cadre_status file_shares_assign(
    struct file_shares *shares, uint32_t workers, struct cadre_error *error);

/* For reports to the user. */
struct file_shares_count {
    uint64_t done;    /* files */
    uint64_t begun;   /* files of which something was consumed, not done */
    uint64_t samples; /* consumed */
};
struct file_shares_count file_shares_count(const struct file_shares *shares);

/* As bytes, for manifests: the same table gives the same bytes. *ret_bytes is malloc'ed. A file
 * that nothing is known of costs nothing, another a few bytes for each gap in what was consumed. */
cadre_status file_shares_encode(const struct file_shares *shares, uint8_t **ret_bytes,
    size_t *ret_count, struct cadre_error *error);

/* INVALID_ARGUMENT: the bytes are no table; they may be of any origin. */
cadre_status file_shares_decode(
    const uint8_t *bytes, size_t count, struct file_shares *ret_shares, struct cadre_error *error);

#endif
