/* SPDX-License-Identifier: Apache-2.0
 * An order-independent 128-bit digest of a multiset of sample ids: the sum, in two lanes modulo
 * 2^64, of a keyed hash of (dataset, epoch, sample id). It compares the samples that the workers
 * consumed with those that they should have. It guards against faults, not against an adversary. */
#ifndef CADRE_PURE_DIGEST_H
#define CADRE_PURE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: the digest of nothing. */
struct digest {
    uint64_t lane[2];
};

/* What the ids of one epoch of one dataset are hashed with. */
struct digest_key {
    uint64_t lane[2];
};

/* The key of epoch `epoch` of the dataset called `name` (`name_bytes` bytes of any kind). */
struct digest_key digest_key_make(const char *name, size_t name_bytes, uint64_t epoch);

/* Adds one id; adding it twice counts twice. */
void digest_add(struct digest *digest, const struct digest_key *key, uint64_t id);

/* Adds `count` ids. */
void digest_add_each(
    struct digest *digest, const struct digest_key *key, const uint64_t ids[], size_t count);

/* Adds all that `other` holds: the digest of a union is the sum of the digests. */
void digest_merge(struct digest *digest, const struct digest *other);

/* Whether both lanes are equal. */
bool digest_equal(const struct digest *a, const struct digest *b);

#endif
