/* SPDX-License-Identifier: Apache-2.0
 * The mark that stands where CADRE_SHARD_HINT puts a worker's shard. */
#ifndef CADRE_WORKER_INPUT_SHARD_MARK_H
#define CADRE_WORKER_INPUT_SHARD_MARK_H

#include "worker/input/node.h"

/* Consumes `data`, which is usable. Reading it is FAILED_PRECONDITION. */
cadre_dataset *shard_mark(cadre_dataset *data);

/* Whether `data` itself is one. */
bool dataset_is_shard_mark(const cadre_dataset *data);

#endif
