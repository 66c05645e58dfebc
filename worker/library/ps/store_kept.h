/* SPDX-License-Identifier: Apache-2.0
 * What lies in a store's memory, byte for byte. Everything is found from the head by offsets from
 * the memory's first byte; records are appended and never move, so that each chain of them only
 * goes up. What never changes has a sum beside it. What changes while a record is in use is atomic:
 * a process may end between any two stores, and the next one reads what it left.
 *
 *     head ──▶ shard ──▶ shard ──▶ ...      each: rows;  ──▶ rule: slots;  ──▶ step: sums | touched
 *       │ ├──▶ note ──▶ note ──▶ ...        each: ──▶ text
 *       │ └──▶ table of pushes              open addressing by (closure, ordinal, shard)
 *       └────▶ a journal for each thread    old values of the piece that is being changed */
#ifndef CADRE_PS_STORE_KEPT_H
#define CADRE_PS_STORE_KEPT_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "common/pure/prng.h"
#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/ps/store.h"

#define KEPT_MAGIC      UINT64_C(0x73702d6572646143) /* "Cadre-ps" */
#define KEPT_VERSION    4
#define KEPT_ALIGN      64
#define KEPT_HEAD_BYTES 4096

/* What is changed at a time, with one copy of its old values: small enough to stay in a cache. */
#define PIECE_BYTES    ((size_t)64 << 10)
#define PIECE_SEGMENTS 2048
#define PIECE_PARTS    (1 + OPTIMIZER_SLOTS)

typedef _Atomic uint64_t kept_word;

struct kept_head {
    kept_word magic; /* the last thing to be written, the first to go */
    uint64_t sum;    /* of the next four */
    uint64_t version;
    uint64_t generation;
    uint64_t generation_nonce;
    uint64_t nonce;
    kept_word loading; /* it is being filled from a copy: worth nothing until that is done */
    kept_word end;     /* what lies behind is free, and zero */
    kept_word shards;
    kept_word notes;
    kept_word table;
    kept_word forgotten; /* closures below are done for good */
    kept_word journals[STORE_THREADS];
};
_Static_assert(sizeof(struct kept_head) <= KEPT_HEAD_BYTES, "the head is one page");

struct kept_spec {
    char name[STORE_NAME_BYTES];
    uint32_t shard;
    uint32_t dtype;
    uint64_t rows;
    uint64_t row_elements;
    uint64_t rows_at;
};

struct kept_rule {
    uint64_t sum;                       /* of the next two */
    uint64_t slots_at[OPTIMIZER_SLOTS]; /* 0: none */
    uint8_t bytes[RULE_BYTES];
};

struct kept_shard {
    kept_word next;
    uint64_t sum; /* of spec */
    struct kept_spec spec;
    kept_word version;
    kept_word updates;
    kept_word steps;
    kept_word rule;   /* its kept_rule; 0: none yet */
    kept_word step;   /* of its kept_step; 0: none yet */
    kept_word passed; /* pushes of the step before this one are passed over; 0: of none */
};

/* Synchronous pushes to a shard. `count` == `contributions`: the sums are being applied, and are
 * below `progress`. */
struct kept_step {
    uint64_t sum; /* of the next two */
    uint64_t sums_at;
    uint64_t touched_at; /* a bit for each row */
    kept_word contributions;
    kept_word kind;
    kept_word rate;  /* the bits of a double; as of the push */
    kept_word dense; /* a contribution was: all rows are touched */
    kept_word count; /* of contributions that are whole */
    kept_word progress;
    kept_word trust;    /* the bits of a double: of LAMB, before the first of its rows is changed */
    kept_word part;     /* 1: of LAMB of a part: once it is complete the sums wait for the ratio */
    kept_word told;     /* the ratio of the last step that was told one, likewise */
    kept_word told_for; /* which step that is, from 1; 0: none. Written last */
};

struct kept_note {
    kept_word next;
    uint64_t sum; /* of name */
    char name[STORE_NAME_BYTES];
    kept_word text;
    kept_word spare; /* the text before, whose place the next one may take */
};

struct kept_text {
    uint64_t sum; /* of bytes and text */
    uint64_t room;
    uint64_t bytes;
    char text[];
};

#define KEPT_WHOLE UINT64_MAX
#define KEPT_GONE  UINT64_MAX /* as a closure: the place was used once, and is free */

struct kept_push {
    kept_word closure; /* 0: free. Written last */
    uint32_t ordinal;
    uint32_t shard;
    kept_word progress; /* elements that are done, or KEPT_WHOLE */
    uint64_t count;     /* as in struct pushing */
    kept_word trust;    /* likewise, its bits */
    uint32_t active;    /* a thread of this process has it */
    uint32_t synchronous;
};

struct kept_table {
    uint64_t capacity; /* a power of two */
    uint64_t check;    /* ~capacity */
    uint64_t reserved[6];
    struct kept_push places[];
};

enum kept_mark {
    MARK_NONE = 0,
    MARK_PIECE,      /* of a push: its entry's progress tells whether it is done */
    MARK_STEP_PIECE, /* of a step that is applied: the step's progress tells */
    MARK_END,        /* of a push: redone, whatever was done of it */
    MARK_STEP_END    /* likewise */
};

struct kept_journal {
    kept_word mark;
    uint64_t shard;
    uint64_t closure;
    uint64_t ordinal;
    uint64_t after;    /* the progress once it is done */
    uint64_t sums;     /* 1: the step's sums are changed; 0: rows and slots */
    uint64_t segments; /* each `length` elements from starts[i] on */
    uint64_t length;
    uint64_t version; /* MARK_END, MARK_STEP_END: what they will be */
    uint64_t updates;
    uint64_t steps;
    uint64_t count;
    uint64_t starts[PIECE_SEGMENTS];
    char old[PIECE_PARTS][PIECE_BYTES]; /* rows or sums, then slots */
};

/* Guards against faults, not against an adversary. `from` continues another sum. */
static inline uint64_t kept_sum(uint64_t from, const void *bytes, size_t count)
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
