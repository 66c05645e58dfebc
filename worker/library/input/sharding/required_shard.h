/* SPDX-License-Identifier: Apache-2.0
 * The shard that distribution puts into a pipeline: as cadre_dataset_shard, but where there are
 * fewer elements than shards those that have one fail (the others are empty). */
#ifndef CADRE_WORKER_INPUT_SHARDING_REQUIRED_SHARD_H
#define CADRE_WORKER_INPUT_SHARDING_REQUIRED_SHARD_H

#include "worker/library/input/node/node.h"

/* Consumes `data`. `policy` is the one that asks for it, for the message: INVALID_ARGUMENT, at the
 * first element. index < shards. */
cadre_dataset *dataset_required_shard(
    cadre_dataset *data, uint32_t shards, uint32_t index, cadre_shard_policy policy);

/* The same elements, of which it is known what they look like. Consumes `data`. What a function of
 * the program makes can only be seen in an element, and a shard may have none. */
cadre_dataset *dataset_with_spec(cadre_dataset *data, const cadre_element_spec *spec);

#endif
