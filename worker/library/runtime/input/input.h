/* SPDX-License-Identifier: Apache-2.0
 * The inside of distributed datasets: the position of each in its epochs. */
#ifndef CADRE_RUNTIME_INPUT_H
#define CADRE_RUNTIME_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/input.h"
#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/library/input/distribution/distributed_input.h"
#include "worker/library/input/distribution/input_prefetcher.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"
#include "worker/library/runtime/values/values.h"

/* The position of a dataset. It is part of the state, in the manifest. */
struct dataset_position {
    uint64_t epochs_begun;
    uint64_t applied; /* steps of the current epoch */
    bool open;        /* the last cadre_next_epoch returned true: the program is inside its loop */
    bool ended;       /* the end of the current epoch was found, which is step */
    uint64_t end;
    uint64_t next;    /* the step of the current epoch that cadre_next returns next */
    uint32_t workers; /* among which the epoch is divided, where each has a pipeline of its own */
    uint64_t serial;  /* of the beginning of the epoch, over all datasets of the strategy */
    struct consumption consumption; /* of the current epoch, all tasks together */
};

/* What a peer or a checkpoint gave beside the position, until it is taken over. */
struct dataset_received {
    bool any;
    bool by_files;
    bool has_shares;
    struct file_shares shares;
    bool has_state;
    struct distributed_state state;
};

/* What makes a dataset an iterator of another one: a stream of its own, that reads the same
 * pipeline. The program has it from cadre_distributed_iterate to cadre_distributed_release; then it
 * is free for the next one. Or it was made for a state that has more of them than the program made.
 */
struct iterating {
    cadre_distributed_dataset *of; /* NULL: no iterator, but a dataset */
    bool taken;                    /* the program has it, */
    uint64_t number;               /* under this number, which is its epoch */
    bool entered;                  /* the program has called cadre_next for it */
    bool passed;                   /* the job is past it, which the program re-enters */
};

struct cadre_distributed_dataset {
    cadre_strategy *strategy;
    struct iterating iterating;
    uint64_t numbers; /* of a dataset: its iterators had numbers less than it */
    char name[LIMIT_NAME_BYTES];
    uint32_t stream;     /* from 1, in order of creation */
    cadre_dataset *data; /* a reference; NULL where a function makes the pipelines: */
    cadre_input_function function;
    void *user;
    bool per_replica; /* it makes one for each replica */
    char *pipeline;   /* description of `data`, the same on all tasks; owned; or NULL */
    cadre_shard_policy policy; /* as the options have it */
    cadre_shard_policy began;  /* FILE or DATA: what AUTO was in the job that is gone on from */
    cadre_rebatch rebatch;
    bool partial_steps;
    uint64_t steps_per_epoch; /* 0: as many as there are */
    uint32_t depth;           /* batches read ahead */
    bool keep_on_host;        /* no device copies them */
    uint32_t device_batches;  /* of those ahead, that are copied to the devices */
    uint64_t layout;          /* of the strategy, for which the input is cut */
    uint64_t cut;             /* counts how often it was cut: batches of an older cut are stale */
    struct distributed_input *input;
    struct input_prefetcher *prefetcher;
    bool endless;         /* so an epoch begins where the one before ended */
    uint64_t reads_epoch; /* what the prefetcher gives next, as the input counts it */
    uint64_t reads_step;
    struct dataset_position at;
    bool has_shares; /* the files of the current epoch are shared out by a table: */
    struct file_shares shares;
    struct dataset_received received;
    struct cadre_error uncut; /* code not OK: why the current epoch cannot be read on */
    bool reenters; /* taken over from a peer or checkpoint: the epoch may be entered again */
    uint64_t exists_until;     /* arriving: steps that the others have taken, so they exist */
    uint64_t epochs;           /* as the last cadre_next_epoch had it */
    int64_t steps;             /* of the current epoch; before the first, of that one */
    cadre_per_replica *batch;  /* lent to the program */
    bool warned_files;         /* about workers without files, in this layout */
    bool warned_policy;        /* about FILE in a job whose size changes */
    bool warned_left;          /* about elements that cadre_next gives to no replica */
    struct cadre_error failed; /* code not OK: sticky */
};

/* The positions of the datasets, until it is decided whether what came is taken over. */
struct kept_positions {
    uint32_t count;              /* of datasets then */
    struct dataset_position *at; /* owned; by dataset; NULL: nothing came */
    bool *reenters;              /* owned */
    uint64_t serial_last;
};

/* The datasets of a strategy. */
struct input_part {
    cadre_distributed_dataset **datasets; /* in order of creation: stream 1, 2, ... */
    uint32_t dataset_count;
    uint32_t dataset_capacity;
    struct reports *reports;
    struct cursor cursor; /* the last one that the task core received */
    uint64_t cursor_end;  /* 0: none, in this generation */
    uint64_t serial_last; /* of epochs begun, over all datasets */
    bool reenters;        /* no step was applied since the state was taken over */
    struct kept_positions kept;
};

/* Whether it is one of the datasets of an open strategy, or an iterator that the program has. Never
 * reads the memory of another one. */
bool distributed_is_registered(const cadre_distributed_dataset *distributed);

/* Every public `function` with a distributed dataset calls it first. INVALID_ARGUMENT: not one. */
cadre_status distributed_require(
    const cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error);

/* The program begins the step at `position`. Reports to the task core which samples it and those
 * after it consume: step `step` of the dataset's epoch, or (NULL) none. */
void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position);

/* Whether each task reads a pipeline of its own: all but DATA. */
bool distributed_own_pipelines(const cadre_distributed_dataset *distributed);

/* From the program's number of a step to the input's, in which an endless dataset is one epoch. */
void distributed_input_step(
    const cadre_distributed_dataset *distributed, uint64_t *epoch, uint64_t *step);

/* Whether the program is in an epoch of it with steps left; true where only reading finds that. */
bool distributed_is_partly_applied(const cadre_distributed_dataset *distributed);

/* Steps of an epoch, as far as they are known without reading. */
int64_t distributed_steps_of(const cadre_distributed_dataset *distributed, uint64_t epoch);

/* Steps of the current epoch; also those found by reading. */
int64_t distributed_steps_now(const cadre_distributed_dataset *distributed);

/* The end of the current epoch was found: it has so many steps. */
void distributed_end(cadre_distributed_dataset *distributed, uint64_t steps);

/* No replica gets further batches: the first reason stays. Returns its code. */
cadre_status distributed_fail(
    cadre_distributed_dataset *distributed, const struct cadre_error *error);

/* --- distribute.c --- */

/* One more of the dataset's iterators, which the program does not have yet. */
cadre_status distributed_make_iterator(cadre_distributed_dataset *distributed,
    cadre_distributed_dataset **ret_iterator, struct cadre_error *error);

/* --- epochs.c --- */

/* The program is in epoch `epoch`: at its beginning, or `again` at the position where it re-enters
 * the job. */
cadre_status distributed_start(
    cadre_distributed_dataset *distributed, uint64_t epoch, bool again, struct cadre_error *error);

/* --- iterators.c --- */

/* The first cadre_next of an iterator: the program is in its epoch, or the job is past it
 * (iterating.passed). */
cadre_status iterator_enter(cadre_distributed_dataset *iterator, struct cadre_error *error);

/* A state holds an iterator `name` of dataset `of` that had at most so many steps (0: not known):
 * it is made, unless there is one. */
cadre_status iterator_receive(cadre_strategy *strategy, const char *name, const char *of,
    uint64_t steps, struct cadre_error *error);

/* --- input_end.c --- */

/* Closes the input and frees the dataset. Accepts NULL. */
void distributed_free(cadre_distributed_dataset *distributed);

/* distributed_free for the end of the strategy: waits at most so long for functions of the program
 * that read ahead. False where one has not returned: a thread waits for it and frees the dataset
 * then, if the process lives that long. */
bool distributed_retire(cadre_distributed_dataset *distributed, uint64_t wait_us);

/* --- input_open.c: a pipeline for a layout --- */

/* Opens the input for the layout of the strategy. */
cadre_status distributed_open(cadre_distributed_dataset *distributed, struct cadre_error *error);
/* Closes the prefetcher and the input, if they are open. */
void distributed_close(cadre_distributed_dataset *distributed);

/* An epoch begins: its files are shared out, and the input is opened for that. */
cadre_status distributed_begin(cadre_distributed_dataset *distributed, struct cadre_error *error);

/* The generation has changed: cuts all datasets for its layout. Reading ahead goes on at the
 * program's position. */
cadre_status distributed_reopen(cadre_strategy *strategy, struct cadre_error *error);

/* The received state is whole: what came beside the positions is taken over. With `all`, of a task
 * that was not in the generation before: its inputs are opened again. Else only tables of files. */
cadre_status distributed_take_received(
    cadre_strategy *strategy, bool all, struct cadre_error *error);

/* Frees what came beside the positions. */
void distributed_drop_received(cadre_strategy *strategy);

/* --- input_read.c --- */

/* Reads ahead from step `step` of epoch `epoch`, unless it does so already. */
void distributed_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step);

/* The next batch of the input: step `step` of epoch `epoch`. OUT_OF_RANGE when it does not
 * exist. */
cadre_status distributed_read(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error);

/* Releases the batch that was lent to the program. */
void distributed_drop_batch(cadre_distributed_dataset *distributed);

/* Takes the tensors of `batch` over, and its description; its own are released. */
void batch_take_over(cadre_per_replica *value, struct distributed_batch *batch);

struct step_agreement;
/* Takes over what all tasks agreed on. */
void batch_agree(cadre_per_replica *value, struct step_agreement *step_agreement);

/* --- input_refresh.c --- */

/* A batch that the program holds gets the slice of the present layout, in place. */
cadre_status distributed_refresh(cadre_per_replica *batch, struct cadre_error *error);

/* --- input_files.c: FILE while tasks come and go --- */

/* Warns once where AUTO became files in a job whose number of tasks may change, and where it became
 * samples although a list of files is read, or each task then reads all. */
void files_distributed(cadre_distributed_dataset *distributed);

/* An epoch begins: its files are shared out. *ret_reopen: the input is to be opened again for it.
 */
cadre_status files_begin(
    cadre_distributed_dataset *distributed, bool *ret_reopen, struct cadre_error *error);

/* A generation begins: the files that are left are dealt to its workers in turn, whichever worker
 * had them before, so that all get the same, whatever generations they were in. True: the input is
 * to be opened again for it. */
bool files_deal(cadre_distributed_dataset *distributed);

/* The samples of the step of `batch`: those of the files that all tasks agreed on, without those
 * that were consumed before. False: it is not shared out by files, or they cannot be determined. */
bool files_expected(const cadre_per_replica *batch, struct digest *ret_expected);

/* What is recorded of the files of the epoch of `batch` after its step. */
enum consumed_files files_consumed(const cadre_per_replica *batch);

/* The step of `batch` is applied: all tasks enter in their tables what was consumed in it. */
cadre_status files_applied(const cadre_per_replica *batch, struct cadre_error *error);

/* For `cadre job --shards`. Borrowed, until the next step, epoch or generation. */
struct dataset_shards {
    const char *name;
    cadre_shard_policy policy; /* never AUTO */
    uint64_t epoch;
    uint64_t step;
    uint32_t workers;
    const struct file_shares *files; /* NULL: it is not shared out by files */
};

/* How the dataset's current epoch is shared out. False before the first epoch. In the program's
 * thread. */
bool distributed_shards(
    const cadre_distributed_dataset *distributed, struct dataset_shards *ret_shards);

/* --- pipeline_compare.c --- */

/* All tasks distribute the same pipeline, with the same options: INVALID_ARGUMENT on all of them
 * has the first text line in which two differ. */
cadre_status pipelines_compare(cadre_distributed_dataset *distributed, struct cadre_error *error);

/* Compares a joiner's with that of the task whose state it takes. INVALID_ARGUMENT: they differ. */
cadre_status pipelines_match(
    const cadre_distributed_dataset *distributed, const char *theirs, struct cadre_error *error);

/* --- batch_device.c --- */

/* Begins it for all replicas that are on devices: their tensors become tensors of the device, which
 * copies them in the order of its copy stream; compute waits for batch->staged. Strings stay. The
 * source of a copy is kept as long as it is read. `user`: the distributed dataset. An input_stage.
 */
cadre_status batch_to_devices(
    void *user, struct distributed_batch *batch, struct cadre_error *error);

/* --- step_agreement.c: steps of pipelines that each task has for itself. Whether a step exists,
 * and how many rows it has, all tasks determine in a collective outside of steps --- */

/* What all tasks have together. */
struct step_agreement {
    uint64_t generation; /* in which it was made: not the present one where others completed it */
    uint64_t present;    /* replicas of all tasks that have an element; 0: there is no such step */
    uint64_t rows;
    struct consumed_samples all; /* FILE: of all tasks */
};

/* Frees what it owns, and zeroes it. */
void step_agreement_clear(struct step_agreement *step_agreement);

/* Reads step `step` of epoch `epoch` and agrees on it. `held` (may be NULL) is the batch of that
 * step that the program holds: while the input is cut as it was for it, it is not read
 * again; with `keeps` in no case. *ret_batch is empty then, else the caller's to clear. The error
 * of a task that could not read is given on all, ABORTED on the others. */
cadre_status step_agreement_make(cadre_distributed_dataset *distributed, uint64_t epoch,
    uint64_t step, const cadre_per_replica *held, bool keeps, struct distributed_batch *ret_batch,
    struct step_agreement *ret_agreement, struct cadre_error *error);

#endif
