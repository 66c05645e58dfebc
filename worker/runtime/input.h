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
    uint32_t depth; /* batches read ahead */
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

/* NULL is allowed. */
void distributed_free(cadre_distributed_dataset *distributed);

/* The program begins the step at `position`. Tells the task core which samples it and those after
 * it consume, when it does not know: step `step` of the dataset's epoch, or (NULL) none. */
void distributed_announce(cadre_strategy *strategy, const cadre_distributed_dataset *distributed,
    uint64_t step, uint64_t position);

#endif
