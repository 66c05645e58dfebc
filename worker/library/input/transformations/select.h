/* SPDX-License-Identifier: Apache-2.0
 * The mark that CADRE_SHARD_BY_HINT leaves in a pipeline. */
#ifndef CADRE_WORKER_INPUT_TRANSFORMATIONS_SELECT_H
#define CADRE_WORKER_INPUT_TRANSFORMATIONS_SELECT_H

#include "worker/library/input/node/node.h"

/* The table of the mark's node. It stands for cadre_dataset_shard(input, workers, worker), which
 * CADRE_SHARD_HINT puts in its place; reading it is FAILED_PRECONDITION. */
extern const struct dataset_ops shard_hint_ops;

#endif
