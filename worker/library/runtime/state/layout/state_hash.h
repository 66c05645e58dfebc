/* SPDX-License-Identifier: Apache-2.0
 * Hashes of the state that one local replica holds, by which replicas are compared without sending
 * it: one of 64 bits (memory_hash.h) of each tensor of state.h's space in its order, variables of
 * strings too, and the digest, which is one number of all of them and their names.
 *
 * A replica's own part is its component of a mirrored variable. All else is the task's: totals of
 * variables that are combined when read, strings, registered state, one component that local
 * replicas share. Others may write that while a step runs, so it is hashed before.
 *
 * The hashes of the chunks of variables are kept. Of a variable that was not written since it was
 * hashed only those chunks are hashed again whose turn it is. Strings and registered state, which
 * the program writes by itself, are always hashed whole. */
#ifndef CADRE_RUNTIME_LAYOUT_STATE_HASH_H
#define CADRE_RUNTIME_LAYOUT_STATE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "cadre/strategy.h"
#include "common/base/error.h"

struct device;
struct device_hashed;

/* What is kept of one tensor. */
struct state_hash_kept {
    size_t first;    /* of its chunks in the list of all */
    uint64_t writes; /* one more than the component had when it was hashed; 0: it never was */
};

/* Zeroed: none. One thread at a time. */
struct state_hashes {
    uint64_t *names;  /* a hash of the name of each tensor */
    uint64_t *values; /* the hash of each tensor */
    struct state_hash_kept *kept;
    uint64_t *chunks; /* the hashes of all chunks, tensor after tensor */
    uint32_t count;
    uint32_t variables; /* of them, which come first */
    uint32_t capacity;
    size_t chunk_capacity;
    size_t variable_chunks;       /* of them */
    size_t hashed;                /* bytes, since state_hash_prepare */
    struct device_hashed *pieces; /* of variables on a device, that are to be hashed */
    uint32_t *pieces_of;          /* which tensors they are */
    uint32_t piece_count;
    struct device *device; /* whose memory they are in */
};

/* Frees all, and zeroes it. */
void state_hashes_clear(struct state_hashes *hashes);

/* Makes room for the present tensors, and their names. Kept hashes stay, as long as there are the
 * same variables. RESOURCE_EXHAUSTED. */
cadre_status state_hash_prepare(
    const cadre_strategy *strategy, struct state_hashes *hashes, struct cadre_error *error);

/* Which chunks are hashed although they were not written: each `of`-th, so that all of them are
 * within `of` turns in a row. */
struct state_hash_turn {
    uint32_t number; /* 0, 1, 2, ... */
    uint32_t of;     /* 1: all are hashed */
};

/* After that: hashes the task's part. Fails when a device fails, or without memory to read one. */
cadre_status state_hash_shared(const cadre_strategy *strategy, struct state_hash_turn turn,
    struct state_hashes *hashes, struct cadre_error *error);
/* And the part of a local replica; likewise. */
cadre_status state_hash_own(const cadre_strategy *strategy, uint32_t local,
    struct state_hash_turn turn, struct state_hashes *hashes, struct cadre_error *error);

/* Takes the hashes of the task's part over from another local replica. */
void state_hash_share(
    const cadre_strategy *strategy, const struct state_hashes *from, struct state_hashes *hashes);

/* All three, of all chunks: of a local replica while its state is not written. */
cadre_status state_hash_all(const cadre_strategy *strategy, uint32_t local,
    struct state_hashes *hashes, struct cadre_error *error);

/* The digest of all hashes. Never 0, which means that there is none. */
uint64_t state_digest(const struct state_hashes *hashes);

/* Hashes variables of strings alone, whose values a copy of the state has elsewhere. */
void state_hash_strings(const cadre_strategy *strategy, struct state_hashes *hashes);
/* Hashes the bytes that tensor `i` has in a copy. */
void state_hash_copied(struct state_hashes *hashes, uint32_t i, const void *bytes, size_t size);

#define STATE_TENSOR_TEXT_BYTES 192
/* Names tensor `i` in messages: "variable 'w'", "the registered state 'rng'". Returns `text`. */
const char *state_tensor_text(
    const cadre_strategy *strategy, uint32_t i, char text[STATE_TENSOR_TEXT_BYTES]);

#endif
