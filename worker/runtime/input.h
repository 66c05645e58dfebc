/* SPDX-License-Identifier: Apache-2.0
 * The inside of distributed datasets: where each stands in its epochs. */
#ifndef CADRE_RUNTIME_INPUT_H
#define CADRE_RUNTIME_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/input.h"
#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/input/distribute.h"
#include "worker/input/prefetch.h"

/* Where a dataset stands. It travels with the state, in the manifest. */
struct dataset_position {
    uint64_t epochs_begun;
    uint64_t applied; /* steps of the current epoch */
    bool open;        /* the last cadre_next_epoch said true: the program is inside its loop */
    uint64_t serial;  /* of the beginning of the epoch, over all datasets of the strategy */
    struct feed feed; /* of the current epoch, all tasks together */
};

struct cadre_distributed_dataset {
    cadre_strategy *strategy;
    char name[LIMIT_NAME_BYTES];
    uint32_t stream;     /* from 1, in order of creation */
    cadre_dataset *data; /* a reference */
    cadre_shard_policy policy;
    uint32_t depth;  /* batches read ahead */
    uint64_t layout; /* of the strategy, that the input is cut for */
    struct distributed_input *input;
    struct input_prefetcher *prefetcher;
    uint64_t reads_epoch; /* what the prefetcher gives next */
    uint64_t reads_step;
    uint64_t next; /* the step of the current epoch that cadre_next gives next */
    struct dataset_position at;
    bool reenters;   /* taken over from a peer or checkpoint: the epoch may be entered again */
    uint64_t epochs; /* as last asked for */
    int64_t steps;   /* of the current epoch; before the first, of that one */
    cadre_per_replica *batch;  /* lent to the program */
    struct cadre_error failed; /* code not OK: sticky */
};

/* Whether it is one of the datasets of the strategy that lives. Never looks into it. */
bool distributed_lives(const cadre_distributed_dataset *distributed);

/* What every public `function` with a distributed dataset asks first. */
cadre_status distributed_require(
    const cadre_distributed_dataset *distributed, const char *function, struct cadre_error *error);

/* NULL is allowed. */
void distributed_free(cadre_distributed_dataset *distributed);

/* The program begins the step at `position`. Tells the task core which samples it and those after
 * it consume: step `step` of the dataset's epoch, or (NULL) none. */
void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position);

/* The generation has changed: cuts all datasets for its layout. What is read ahead goes on where
 * the program stands. */
cadre_status distributed_reopen(cadre_strategy *strategy, struct cadre_error *error);

/* Reads ahead from step `step` of epoch `epoch`, unless it does so already. */
void distributed_seek(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step);

/* The next batch of the input: step `step` of epoch `epoch`. OUT_OF_RANGE when it does not
 * exist. */
cadre_status distributed_read(cadre_distributed_dataset *distributed, uint64_t epoch, uint64_t step,
    struct distributed_batch *ret_batch, struct cadre_error *error);

/* A batch that the program holds gets the slice of the present layout, in place. */
cadre_status distributed_refresh(cadre_per_replica *batch, struct cadre_error *error);

/* Takes the tensors of `batch` over; its own are released. */
void batch_take_over(cadre_per_replica *value, struct distributed_batch *batch);

#endif
