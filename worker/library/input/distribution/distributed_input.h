/* SPDX-License-Identifier: Apache-2.0
 * Distributed input: what one worker's replicas get in each step.
 *
 * Two rules. With n = workers * replicas:
 *  - DATA, pieces shared out: a step is one element (global batch) of the dataset, the same for
 * all. The batch of b rows is cut into n pieces of ceil(b / n) rows, late ones short or empty;
 * replica r of worker w gets piece w + r * workers. Where the dataset is indexable a worker reads
 * its own rows only, else it reads all of it and cuts. What (epoch, step) holds is a function of
 * the dataset, its name and the layout; never of what was read before.
 *  - FILE, OFF, HINT and pipelines of functions, a pipeline of the worker's own: the dataset as
 * auto_shard.h rewrites it for the worker, cut by a rule of `cadre_rebatch` (not those of
 * functions); a step is its next R elements, in order of the replicas. Workers may have different
 * numbers of them: whether a step exists is agreed on above (distributed_input_agrees).
 * n = 1: elements as they are. Every replica gets tensors of the right types in every step, with
 * dummies where it has no part (element_make_dummy). */
#ifndef CADRE_WORKER_INPUT_DISTRIBUTION_DISTRIBUTED_INPUT_H
#define CADRE_WORKER_INPUT_DISTRIBUTION_DISTRIBUTED_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/dataset.h"
#include "cadre/input.h"
#include "common/base/error.h"
#include "common/pure/digest.h"
#include "worker/library/input/sharding/file_shares.h"

#define DISTRIBUTED_WORKERS_MAX  65536
#define DISTRIBUTED_REPLICAS_MAX 1024 /* of one worker */

struct distributed_layout {
    uint32_t workers;          /* at least 1 */
    uint32_t worker_index;     /* below workers */
    uint32_t replicas;         /* of each worker; at least 1 */
    cadre_shard_policy policy; /* AUTO: what the dataset's own options say, else FILE or DATA */
    /* AUTO, where sources hold lists of files: whether those have a file for each is asked of so
     * many workers (0: `workers`); and what it came to before, FILE or DATA, which then stays
     * (AUTO: nothing). */
    uint32_t auto_workers;
    cadre_shard_policy auto_policy;
    cadre_rebatch rebatch;
    bool partial_steps; /* also of elements of one fixed shape: distributed_input_gives_partial */
    const char *name;   /* of the distributed dataset: keys the digests; borrowed during the call */
    bool wants_expected; /* each batch also says what the whole step should hold */
    /* FILE only, may be NULL: dealt for this layout's workers. In shares->epoch the worker reads
     * its files, without what was consumed, and its first step there is shares->step. All other
     * epochs, and all of them without a table, are fresh. Borrowed during the call. */
    const struct file_shares *shares;
    /* Pipelines that are read in order: states of at most so many bytes are taken now and then, for
     * distributed_input_save. 0: none. */
    size_t state_bytes_max;
    uint64_t state_us; /* they are taken at least so long apart; 0: a second */
};

/* One step's input of one worker. */
struct distributed_batch {
    uint64_t epoch;
    uint64_t step;
    uint32_t replicas;
    uint32_t present;     /* replicas that have an element (of one pipeline the first ones); the
                             others' are dummies */
    uint64_t own_rows;    /* of this worker's elements; 1 for one of scalars, 0 for a dummy */
    uint64_t global_rows; /* of the whole step, all workers; 0 where distributed_input_agrees: it is
                             the sum of own_rows */
    uint64_t samples;     /* in `elements`, as their source counts them */
    struct digest consumed;  /* of their ids */
    bool provable;           /* layout.proves, and the chain can tell without reading: */
    struct digest expected;  /* of all samples of the step, all workers */
    cadre_element *elements; /* [replicas] */
    /* FILE where distributed_input_can_reshard: which samples of which files are consumed here, for
     * file_shares_consumed, and which files have nothing left from here on, for file_shares_done
     * (with FILE_SHARES_DROPPED where not all of their samples were consumed). */
    struct file_run *runs;
    size_t run_count;
    uint64_t *done;
    size_t done_count;
    struct batch_stage *staged; /* by the stage that copies it (input_prefetcher.h); or NULL */
};

/* A batch that is on its way to where it is used. */
struct batch_stage {
    void (*finish)(struct batch_stage *stage); /* before its tensors are used or released; once */
};

/* Releases what the batch holds and zeroes it. A zeroed batch is allowed. */
void distributed_batch_clear(struct distributed_batch *batch);

struct distributed_input;

/* Opens `data` for one worker of a layout; opening again for another layout is cheap and shares the
 * dataset. Takes a reference of its own. May call functions of the program that make datasets of
 * files' names, and index files (an indexable dataset is prepared). Fails with the dataset's own
 * error; INVALID_ARGUMENT for a bad layout and, with n > 1, for scalar components (batch first);
 * NOT_FOUND for FILE where there are no names of files to share out. Too few files for the workers
 * is INVALID_ARGUMENT when a step is read. */
cadre_status distributed_input_open(cadre_dataset *data, const struct distributed_layout *layout,
    struct distributed_input **ret_input, struct cadre_error *error);

/* Opens what a function of the program made for this worker: nothing is cut or sharded; `policy`,
 * `rebatch` and `shares` of the layout mean nothing. `count` is 1, or the layout's replicas: then
 * replica r gets the elements of data[r]. Takes references of its own. INVALID_ARGUMENT also when
 * the pipelines' elements differ in type or rank. */
cadre_status distributed_input_open_pipelines(cadre_dataset *const data[], size_t count,
    const struct distributed_layout *layout, struct distributed_input **ret_input,
    struct cadre_error *error);

/* NULL is allowed. No read may be under way. */
void distributed_input_close(struct distributed_input *input);

/* --- what it is. Any thread, also during a read. --- */

/* The types and shapes one replica gets; the first dimension is unknown unless every piece has the
 * same: always where several workers share a dataset that ends (a piece may be a dummy). */
const cadre_element_spec *distributed_input_spec(const struct distributed_input *input);

/* Steps of epoch `epoch`: a number, CADRE_CARDINALITY_UNKNOWN (-1; only reading, or the other
 * workers, tell) or CADRE_CARDINALITY_INFINITE (-2). */
int64_t distributed_input_steps(struct distributed_input *input, uint64_t epoch);

/* What the layout's policy came to: never AUTO; OFF for pipelines of functions. */
cadre_shard_policy distributed_input_policy(const struct distributed_input *input);

/* Whether AUTO could have come to FILE as well as to DATA: a source holds a list of files. */
bool distributed_input_is_either(const struct distributed_input *input);

/* AUTO came to DATA where people should know: a list of files has too few, or *ret_reads_all: each
 * worker reads all of the dataset. Then `ret_why` says why not FILE. */
bool distributed_input_fell_back(
    const struct distributed_input *input, bool *ret_reads_all, struct cadre_error *ret_why);

/* Whether the workers have to agree, in each step, on whether it exists: it does as long as the sum
 * of `present` is not 0, and its rows are the sum of `own_rows`. Pipelines of their own of several
 * workers, unless the dataset is endless and its batches all have one size. The same on all
 * workers. */
bool distributed_input_agrees(const struct distributed_input *input);

/* Whether steps in which only some of the replicas have an element are given, with dummies for the
 * others (tf.distribute's partial batch handling): not where one worker reads a dataset of fully
 * known shapes, unless layout.partial_steps, or an endless one. Then such a step ends the epoch,
 * and what is left is consumed by no replica. */
bool distributed_input_gives_partial(const struct distributed_input *input);

/* Steps of epoch `epoch` that are given: as distributed_input_steps, but where partial ones are
 * not, those in which each replica has an element. */
int64_t distributed_input_whole_steps(struct distributed_input *input, uint64_t epoch);

/* What of epoch `epoch` is from step `step` on, in elements of one replica each. Unknown: -1. */
int64_t distributed_input_left(struct distributed_input *input, uint64_t epoch, uint64_t step);

/* Whether each sample goes to one replica of one worker (DATA, and FILE where it recuts); else
 * every worker reads a pipeline of its own without a claim. */
bool distributed_input_shares(const struct distributed_input *input);

/* FILE: whether an epoch can be cut again in its middle, by a table of files. Otherwise false, and
 * `ret_reason` (may be NULL) gets the reason as a sentence, code FAILED_PRECONDITION. */
bool distributed_input_can_reshard(
    const struct distributed_input *input, struct cadre_error *ret_reason);

/* FILE where it recuts: the table of a fresh epoch for the layout's workers, the caller's to clear.
 * FAILED_PRECONDITION elsewhere. */
cadre_status distributed_input_fresh_shares(const struct distributed_input *input, uint64_t epoch,
    struct file_shares *ret_shares, struct cadre_error *error);

/* FILE where it recuts: what people see of file number `file`, without its folder. "" elsewhere.
 * Lives as long as the input. */
const char *distributed_input_file_name(const struct distributed_input *input, uint64_t file);

/* Samples of the source where ids are 0 to one less (DATA). 0: not known. */
uint64_t distributed_input_source_samples(const struct distributed_input *input);

/* The depth asked for with cadre_dataset_prefetch, 0 if none. Not of pipelines. */
uint32_t distributed_input_prefetch_depth(const struct distributed_input *input);

/* --- reading. One thread at a time. --- */

/* Reads step `step` of epoch `epoch`, in any order where the dataset is indexable; else it is read
 * on from where it stands, or from a state that was given back, or again from the start of the
 * epoch when asked for an earlier step. OUT_OF_RANGE when the step does not exist; but where
 * distributed_input_agrees a worker whose own pipeline has ended gets dummies (`present` 0) for as
 * long as it asks. FAILED_PRECONDITION: a step before that of the table of files. On success the
 * batch is the caller's to clear; on error it is zeroed. */
cadre_status distributed_input_read(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error);

/* The digest of all samples of a step, over all workers, found without reading them.
 * FAILED_PRECONDITION for a chain that is not indexable unless it is the step read last;
 * UNIMPLEMENTED for pipelines of the workers' own. Any thread, also during a read, where the chain
 * is indexable; else the thread that reads. */
cadre_status distributed_input_expected_digest(struct distributed_input *input, uint64_t epoch,
    uint64_t step, struct digest *ret_digest, struct cadre_error *error);

/* FILE where it recuts: the digest of `count` runs of samples of its files in epoch `epoch`,
 * whichever worker consumed them. INVALID_ARGUMENT: another file. Any thread. */
cadre_status distributed_input_files_digest(const struct distributed_input *input, uint64_t epoch,
    const struct file_run runs[], size_t count, struct digest *ret_digest,
    struct cadre_error *error);

/* A read that passes over many elements stops with CANCELLED, and so do those that follow until it
 * is taken back. Any thread. */
void distributed_input_cancel(struct distributed_input *input, bool cancelled);

/* How far a read has come that passes over what lies between: *ret_done of *ret_wanted elements.
 * False when none is under way. Any thread. */
bool distributed_input_replayed(
    const struct distributed_input *input, uint64_t *ret_done, uint64_t *ret_wanted);

/* --- where a pipeline that is read in order stands, for checkpoints --- */

struct distributed_state {
    uint64_t epoch;
    uint64_t step;  /* the next that it gives */
    uint8_t *bytes; /* malloc'ed */
    size_t count;
};

void distributed_state_clear(struct distributed_state *state);

/* A copy of the newest state that was taken at or before step `step` of epoch `epoch`; the reading
 * thread takes one now and then (at least a second and some steps apart) and keeps two. NOT_FOUND:
 * there is none; the pipeline is then read again from the start, or needs no state. Any thread. */
cadre_status distributed_input_save(struct distributed_input *input, uint64_t epoch, uint64_t step,
    struct distributed_state *ret_state, struct cadre_error *error);

/* Reads of state->step and later steps of its epoch start there, not at the start of the epoch. Of
 * a pipeline of the worker's own: the same worker of the same layout (and table of files); under
 * DATA any. Bytes of any origin are read safely: INVALID_ARGUMENT, and the input is as before. No
 * read may be under way. */
cadre_status distributed_input_restore(struct distributed_input *input,
    const struct distributed_state *state, struct cadre_error *error);

#endif
