/* SPDX-License-Identifier: Apache-2.0
 * Copies of what a job's chief last reported of its datasets: who reads what. */
#ifndef CADRE_ENGINE_DIRECTORY_SHARDS_H
#define CADRE_ENGINE_DIRECTORY_SHARDS_H

#include "common/model/job.h"

/* Zeroed: nothing was reported. */
struct directory_shards {
    struct shards_report *datasets; /* each with one allocation of its own, at `shown` */
    size_t count;
};

/* Replaces what is kept of that dataset. Without memory the older report stays. */
void directory_shards_set(struct directory_shards *shards, const struct shards_report *value);

void directory_shards_free(struct directory_shards *shards);

#endif
