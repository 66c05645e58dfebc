/* SPDX-License-Identifier: Apache-2.0
 * How often each content is referenced: counts by hash. */
#ifndef CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFCOUNTS_H
#define CADRE_COORDINATOR_DAEMON_CONTENTS_CONTENT_REFCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/sha256.h"

struct content_refcount {
    struct sha256 hash;
    uint32_t count; /* 0: it is not referenced any more */
    bool used;      /* the entry holds a hash */
};

struct content_refcounts {
    struct content_refcount *entries; /* a power of two of them, or NULL */
    size_t capacity;
    size_t used;
};

/* Counts one reference. False: no memory, and nothing changed. */
bool content_refcounts_add(struct content_refcounts *counts, const struct sha256 *hash);

/* Removes one reference that was added; returns how many are left. */
uint32_t content_refcounts_drop(struct content_refcounts *counts, const struct sha256 *hash);
/* The number of references. */
uint32_t content_refcounts_of(const struct content_refcounts *counts, const struct sha256 *hash);
/* Frees the table; a zeroed one is allowed. */
void content_refcounts_free(struct content_refcounts *counts);

#endif
