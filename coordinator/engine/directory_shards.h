/* SPDX-License-Identifier: Apache-2.0
 * Copies of the chief's last shards_report of each dataset. */
#ifndef CADRE_ENGINE_DIRECTORY_SHARDS_H
#define CADRE_ENGINE_DIRECTORY_SHARDS_H

#include "common/model/job.h"

/* Zeroed: nothing was reported. */
struct directory_shards {
    struct shards_report *datasets; /* each with one allocation of its own, at `shown` */
    size_t count;
};

/* Replaces the report of that dataset. Without memory the older report stays. */
void directory_shards_set(struct directory_shards *shards, const struct shards_report *value);

/* All of them; the struct is the caller's. */
void directory_shards_free(struct directory_shards *shards);

#endif
