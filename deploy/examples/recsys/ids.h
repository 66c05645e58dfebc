/* SPDX-License-Identifier: Apache-2.0
 * The different ids of a batch, each once: what is asked for and sent back. */
#ifndef RECSYS_IDS_H
#define RECSYS_IDS_H

#include <stddef.h>
#include <stdint.h>

struct ids {
    int64_t *different; /* [count], ascending */
    size_t count;
    uint32_t *indices; /* [all]: of each id, in `different` */
};

/* Memory for `all` ids; 0, or -1 without memory. */
int ids_create(struct ids *ids, size_t all);

/* Frees it. */
void ids_free(struct ids *ids);

/* Finds the different ones of `given`, sorted, and the index of each in them. */
void ids_sort(struct ids *ids, const int64_t *given, size_t all);

#endif
