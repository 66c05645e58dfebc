/* SPDX-License-Identifier: Apache-2.0
 * Contents by hash: an open-addressing table, at most half full. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_TABLE_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/sha256.h"

enum content_state {
    CONTENT_NONE,     /* a free entry of the table */
    CONTENT_ABSENT,   /* only being uploaded */
    CONTENT_PRESENT,  /* its file has its name */
    CONTENT_REMOVING, /* a thread removes its file, or will: not here any more */
};

struct content {
    struct sha256 hash;
    enum content_state state;
    uint32_t uploads; /* that are about to rename their file to it */
    uint64_t bytes;
    uint64_t touched_us; /* wall clock; 0: no upload has relied on it yet */
    uint64_t added_us;
    uint64_t number; /* in the order in which they came */
};

/* Zeroed: empty. */
struct content_table {
    struct content *entries; /* a power of two of them, or NULL */
    size_t capacity;
    size_t used;
};

/* The one of this hash, made (ABSENT) where there is none; NULL: no memory. Other entries may
 * move. */
struct content *content_table_add(struct content_table *table, const struct sha256 *hash);
/* NULL: there is none of this hash. */
struct content *content_table_find(const struct content_table *table, const struct sha256 *hash);
/* Removes it; other entries may move. */
void content_table_remove(struct content_table *table, struct content *content);
/* Frees the table; a zeroed one is allowed. */
void content_table_free(struct content_table *table);

#endif
