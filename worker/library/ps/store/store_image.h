/* SPDX-License-Identifier: Apache-2.0
 * The layout of a store's memory, byte for byte. All records are found from the head by offsets
 * from the memory's first byte; records are appended and never move, so the offsets in each chain
 * only rise. A field that never changes has a sum beside it. A field that changes while its record
 * is in use is atomic: a process may end between any two stores, and the next one reads what it
 * left.
 *
 *     head ──▶ shard ──▶ shard ──▶ ...      each: rows;  ──▶ rule: slots;  ──▶ step: sums | touched
 *       │ ├──▶ note ──▶ note ──▶ ...        each: ──▶ text
 *       │ └──▶ table of pushes              open addressing by (closure, ordinal, shard)
 *       └────▶ a journal for each thread    old values of the piece that is being changed */
#ifndef CADRE_PS_STORE_STORE_IMAGE_H
#define CADRE_PS_STORE_STORE_IMAGE_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/ps/store/store.h"

#define IMAGE_MAGIC      UINT64_C(0x73702d6572646143) /* "Cadre-ps" */
#define IMAGE_VERSION    4
#define IMAGE_ALIGN      64
#define IMAGE_HEAD_BYTES 4096

/* How many bytes are changed at a time, with one copy of their old values: small enough for a
 * cache. */
#define JOURNAL_BYTES    ((size_t)64 << 10)
#define JOURNAL_SEGMENTS 2048
#define JOURNAL_ARRAYS   (1 + OPTIMIZER_SLOTS)

typedef _Atomic uint64_t image_atomic;

struct image_head {
    image_atomic magic; /* written last, cleared first */
    uint64_t sum;       /* of the next four fields */
    uint64_t version;
    uint64_t generation;
    uint64_t generation_nonce;
    uint64_t nonce;
    image_atomic loading; /* it is being filled from a copy, and counts as nothing until that is
                           * done */
    image_atomic end;     /* bytes from here on are free, and zero */
    image_atomic shards;
    image_atomic notes;
    image_atomic table;
    image_atomic forgotten; /* closures with smaller numbers are done */
    image_atomic journals[STORE_THREADS];
};
_Static_assert(sizeof(struct image_head) <= IMAGE_HEAD_BYTES, "the head is one page");

struct image_spec {
    char name[STORE_NAME_BYTES];
    uint32_t shard;
    uint32_t dtype;
    uint64_t rows;
    uint64_t row_elements;
    uint64_t rows_at;
};

struct image_rule {
    uint64_t sum;                       /* of the next two fields */
    uint64_t slots_at[OPTIMIZER_SLOTS]; /* 0: none */
    uint8_t bytes[RULE_BYTES];
};

struct image_shard {
    image_atomic next;
    uint64_t sum; /* of spec */
    struct image_spec spec;
    image_atomic version;
    image_atomic updates;
    image_atomic steps;
    image_atomic rule;   /* its image_rule; 0: none yet */
    image_atomic step;   /* of its image_step; 0: none yet */
    image_atomic passed; /* pushes of the step before this one are ignored; 0: none */
};

/* Synchronous pushes to a shard. `count` == `contributions`: the sums are being applied, up to
 * `progress`. */
struct image_step {
    uint64_t sum; /* of the next two fields */
    uint64_t sums_at;
    uint64_t touched_at; /* a bitmap of rows */
    image_atomic contributions;
    image_atomic kind;
    image_atomic rate;  /* the bits of a double, as of the push */
    image_atomic dense; /* a contribution was dense: all rows are touched */
    image_atomic count; /* of contributions that are whole */
    image_atomic progress;
    image_atomic trust; /* the bits of a double: of LAMB, written before the first of its rows is
                         * changed */
    image_atomic part;  /* 1: one of several shards that LAMB updates: once it is complete the sums
                         * wait for the ratio */
    image_atomic settled_trust; /* the bits of the ratio of the last step that was settled */
    image_atomic settled_step;  /* the number of that step, from 1; 0: none. Written last */
};

struct image_note {
    image_atomic next;
    uint64_t sum; /* of name */
    char name[STORE_NAME_BYTES];
    image_atomic text;
    image_atomic spare; /* the text before; the next one may take its bytes */
};

struct image_text {
    uint64_t sum; /* of bytes and text */
    uint64_t room;
    uint64_t bytes;
    char text[];
};

#define IMAGE_PUSH_WHOLE   UINT64_MAX
#define IMAGE_PUSH_REMOVED UINT64_MAX /* as a closure: the entry had a push, and is free */

struct image_push {
    image_atomic closure; /* 0: free. Written last */
    uint32_t ordinal;
    uint32_t shard;
    image_atomic progress; /* elements that are done, or IMAGE_PUSH_WHOLE */
    uint64_t count;        /* as in struct pushing */
    image_atomic trust;    /* likewise, the bits */
    uint32_t active;       /* a thread of this process applies it */
    uint32_t synchronous;
};

struct image_table {
    uint64_t capacity; /* a power of two */
    uint64_t check;    /* ~capacity */
    uint64_t reserved[6];
    struct image_push entries[];
};

enum image_mark {
    MARK_NONE = 0,
    MARK_PIECE,      /* of a push: its entry's progress shows whether it is done */
    MARK_STEP_PIECE, /* of a step that is applied: the step's progress shows it */
    MARK_END,        /* of a push: redone from the start */
    MARK_STEP_END    /* likewise */
};

struct image_journal {
    image_atomic mark;
    uint64_t shard;
    uint64_t closure;
    uint64_t ordinal;
    uint64_t after;    /* the progress once it is done */
    uint64_t sums;     /* 1: the step's sums are changed; 0: rows and slots */
    uint64_t segments; /* each `length` elements from starts[i] on */
    uint64_t length;
    uint64_t version; /* MARK_END, MARK_STEP_END: the values after it */
    uint64_t updates;
    uint64_t steps;
    uint64_t count;
    uint64_t starts[JOURNAL_SEGMENTS];
    char old[JOURNAL_ARRAYS][JOURNAL_BYTES]; /* rows or sums, then slots */
};

/* Guards against faults, not against an adversary. `from` continues another sum. */
static inline uint64_t image_checksum(uint64_t from, const void *bytes, size_t count)
{
    const char *at = bytes;
    uint64_t sum = from + count;
    for (; count >= sizeof(uint64_t); count -= sizeof(uint64_t), at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, at, sizeof word);
        sum = (((sum << 23) | (sum >> 41)) ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    }
    uint64_t rest = 0;
    if (count != 0) {
        memcpy(&rest, at, count);
    }
    return prng_mix(sum ^ rest);
}

#endif
