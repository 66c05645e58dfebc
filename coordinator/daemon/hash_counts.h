/* SPDX-License-Identifier: Apache-2.0
 * How often each content is needed: counts by hash. */
#ifndef CADRE_COORDINATOR_DAEMON_HASH_COUNTS_H
#define CADRE_COORDINATOR_DAEMON_HASH_COUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/sha256.h"

struct hash_count {
    struct sha256 hash;
    uint32_t count; /* 0: nobody needs it any more */
    bool used;      /* the place holds a hash */
};

struct hash_counts {
    struct hash_count *places; /* a power of two of them, or NULL */
    size_t capacity;
    size_t used;
};

/* False: no memory, and nothing changed. */
bool hash_counts_add(struct hash_counts *counts, const struct sha256 *hash);

/* What is left of one that was added. */
uint32_t hash_counts_drop(struct hash_counts *counts, const struct sha256 *hash);
uint32_t hash_counts_of(const struct hash_counts *counts, const struct sha256 *hash);
void hash_counts_free(struct hash_counts *counts);

#endif
