/* SPDX-License-Identifier: Apache-2.0
 * A worker's own dataset, read as batches: for each step one value of the worker's replicas. It is
 * in no ledger; it is read once, from the beginning of its epoch 0 to its end. */
#ifndef CADRE_RUNTIME_CLOSURES_WORKER_BATCHES_H
#define CADRE_RUNTIME_CLOSURES_WORKER_BATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/cluster_coordinator.h"
#include "common/base/error.h"

struct distributed_input;

/* Zeroed: not read yet. */
struct worker_batches {
    struct distributed_input *input;
    cadre_feed consumption;
    uint64_t step;            /* the next */
    struct cadre_error ended; /* code not OK: the end, or an error; returned from then on */
};

/* `name` is the dataset's registered name, for messages. INVALID_ARGUMENT: it was read in another
 * way before. */
cadre_status worker_batches_next(struct worker_batches *batches, cadre_dataset *data,
    const char *name, cadre_feed consumption, uint32_t replicas, cadre_per_replica **ret_batch,
    struct cadre_error *error);

/* Ends the reading and frees the input. */
void worker_batches_clear(struct worker_batches *batches);

#endif
