/* SPDX-License-Identifier: Apache-2.0
 * Hashes of the state that one local replica holds, by which replicas are compared without sending
 * it: one of 64 bits (XXH3) of each tensor of state.h's space in its order, variables of strings
 * too, and the digest, which is one number of all of them and their names.
 *
 * What a replica holds by itself is its component of a mirrored variable. All else is the task's:
 * totals of variables that are combined when read, strings, registered state, one component that
 * local replicas share. Others may write that while a step runs, so it is hashed before. */
#ifndef CADRE_RUNTIME_STATE_HASH_H
#define CADRE_RUNTIME_STATE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/strategy.h"
#include "common/base/error.h"
#include "worker/library/device/tensor_memory.h"

/* Zeroed: none. One thread at a time. */
struct state_hashes {
    uint64_t *names;  /* a hash of the name of each tensor */
    uint64_t *values; /* of what it holds */
    uint32_t count;
    uint32_t capacity;
    void *staging; /* what lies on a device comes through it; NULL: not needed yet */
    enum tensor_memory_kind staging_kind;
};

void state_hashes_clear(struct state_hashes *hashes);

/* Room for the tensors that there are now, and their names. RESOURCE_EXHAUSTED. */
cadre_status state_hash_prepare(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error);

/* After that: what is the task's; and what a local replica holds by itself. They fail as a device
 * does, or for want of memory to read one. */
cadre_status state_hash_shared(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error);
cadre_status state_hash_own(const cadre_strategy *strategy, uint32_t local,
    struct state_hashes *hashes, struct cadre_error *error);

/* Takes over from another local replica what is the task's. */
void state_hash_share(
    const cadre_strategy *strategy, const struct state_hashes *from, struct state_hashes *hashes);

/* All three: of a local replica while nobody writes. */
cadre_status state_hash_all(const cadre_strategy *strategy, uint32_t local,
    struct state_hashes *hashes, struct cadre_error *error);

/* Of all of them. Never 0, which means that there is none. */
uint64_t state_digest(const struct state_hashes *hashes);

/* Variables of strings alone, whose values a copy of the state has elsewhere. */
void state_hash_strings(const cadre_strategy *strategy, struct state_hashes *hashes);

/* Of a tensor's bytes, wherever they are now. */
uint64_t state_hash_bytes(const void *bytes, size_t size);

/* How tensor `i` reads to people: "variable 'w'", "the registered state 'rng'". Returns `text`. */
#define STATE_TENSOR_TEXT_BYTES 192
const char *state_tensor_text(
    const cadre_strategy *strategy, uint32_t i, char text[STATE_TENSOR_TEXT_BYTES]);

#endif
