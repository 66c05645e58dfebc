/* SPDX-License-Identifier: Apache-2.0
 * The state of a collective's calls: of one replica, of a host's slots, of several hosts. Joining
 * two states gives the state of both together. Slots, and then hosts, can join theirs in any
 * grouping, and all end with the same: the call of the lowest replica, and that of the lowest
 * replica whose call differs from it. Pure. */
#ifndef CADRE_WORKER_MESH_AGREEMENT_H
#define CADRE_WORKER_MESH_AGREEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/library/mesh/names.h"

/* --- The arguments of a collective that must be the same on all replicas. --- */

#define CALL_DTYPE_MIXED 0xffu /* a list of several element types, or of none */

struct call_shape {
    uint8_t kind;  /* enum mesh_kind */
    uint8_t op;    /* 0 where there is none */
    uint8_t dtype; /* of all buffers, or CALL_DTYPE_MIXED */
    uint32_t root; /* 0 where there is none */
    uint64_t count;
    uint64_t bytes;
    uint64_t layout; /* a digest of each buffer's type and size, in order */
    uint64_t key;    /* of what else must be equal: the note's key */
};

/* Whether two calls match. */
bool mesh_call_shape_equal(const struct call_shape *a, const struct call_shape *b);

/* Writes "all_reduce(sum, float32, 2 buffers, 400 bytes)"; takes any values. */
void mesh_call_shape_describe(const struct call_shape *shape, char *ret_text, size_t size);

/* --- the state of a collective's calls --- */

/* One replica's call, as the other replicas receive it. */
struct call_record {
    uint32_t replica;
    bool wrong; /* by itself, and `text` has the reason: it equals no other call */
    struct call_shape shape;
    char text[MESH_NOTE_BYTES]; /* how it reads to people; "" when the caller gave no note */
};

struct agreement {
    bool differs;
    struct call_record first; /* of the lowest replica */
    struct call_record other; /* of the lowest one that differs from it, if any does */
};

/* Adds `other`, all of whose replicas are above the first one of `agreement`. */
void mesh_agreement_join(struct agreement *agreement, const struct agreement *other);

/* Whether all calls are equal and none is wrong. */
static inline bool mesh_agreement_holds(const struct agreement *agreement)
{
    return !agreement->differs && !agreement->first.wrong;
}

/* Why it does not hold: the reason of the lower wrong call, or both calls by their notes: "replica
 * 0 called ..., replica 2 called ...". A record without a note is described by its shape. */
void mesh_agreement_explain(const struct agreement *agreement, char *ret_text, size_t size);

#endif
