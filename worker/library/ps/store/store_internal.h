/* SPDX-License-Identifier: Apache-2.0
 * What the files of a store share: the process's view of the memory (store_image.h).
 *
 *     store.c          opening, reading               store_push.c     begin, blocks, end
 *     store_shards.c   making shards                  store_train.c    their optimizers
 *     store_open.c     checks of existing memory      store_sparse.c   blocks of rows by number
 *     store_notes.c    texts                          store_step.c     synchronous pushes
 *     store_applied.c  which pushes were applied      store_recover.c  what a dead process left
 *     store_trust.c    LAMB's ratio                   store_norms.c    what a shard adds to it
 *     store_settle.c   steps that wait for a ratio
 *     store_journal.c  a change that survives         store_copy.c     save, load
 *
 * Locks, in this order: a shard's, `pushes`, `growth`. A shard's is held for one piece at most. */
#ifndef CADRE_PS_STORE_STORE_INTERNAL_H
#define CADRE_PS_STORE_STORE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "worker/library/optimizer/apply.h"
#include "worker/library/ps/store/store_isa.h"
#include "worker/library/ps/store/store_image.h"
#include "worker/library/ps/store/store_memory.h"

#define SHARDS_PER_CHUNK 256
#define SHARD_CHUNKS     1024

struct shard {
    struct store_spec spec;
    struct image_shard *kept;
    char *rows;
    struct optimizer_rule rule;
    atomic_bool trained;          /* `rule` and the slots are set; written once, under the lock */
    char *slots[OPTIMIZER_SLOTS]; /* NULL: there is none */
    uint32_t number;              /* in the store */
    size_t element_bytes;
    uint64_t row_elements;
    pthread_mutex_t lock;
    /* Under the lock; NULL until a synchronous push comes. */
    struct image_step *step;
    char *sums;
    size_t sum_bytes; /* bytes of an element there */
    uint64_t *touched;
    uint64_t begun; /* contributions of this step, whole or not */
    bool settling;  /* a thread applies a step that was given its ratio */
};

/* Memory of a thread to sort and add up in. */
struct sparse_row {
    uint64_t id;
    uint64_t at; /* in the push */
};

struct thread_scratch {
    struct sparse_row *rows;
    struct sparse_row *other;
    size_t room; /* in both */
    uint64_t starts[JOURNAL_SEGMENTS];
    size_t groups[JOURNAL_SEGMENTS + 1]; /* where in `rows` the rows of a segment begin */
    char sum[JOURNAL_BYTES];
};

struct store {
    struct store_memory memory;
    struct image_head *head;
    const struct store_isa *isa;
    struct shard *chunks[SHARD_CHUNKS];
    _Atomic uint32_t count;
    pthread_mutex_t growth;
    pthread_mutex_t creation; /* of shards and notes */
    pthread_mutex_t pushes;
    struct image_table *table; /* NULL: none yet */
    uint64_t used;             /* entries that are not free, with removed ones */
    uint64_t spare_table;      /* where a table of the same capacity was; 0: none */
    struct image_journal *journals[STORE_THREADS];
    struct thread_scratch *scratch[STORE_THREADS];
};

/* ---- memory ---- */

/* Zeroed and aligned; RESOURCE_EXHAUSTED "ps has no room for <format>: ...". */
cadre_status store_alloc(struct store *store, uint64_t bytes, uint64_t *ret_at,
    struct cadre_error *error, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Whether [at, at + bytes) is allocated memory, behind the head. */
bool store_contains(const struct store *store, uint64_t at, uint64_t bytes);

static inline uint64_t store_aligned(uint64_t bytes)
{
    return (bytes + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;
}

/* The address of any offset: an unchecked one must pass store_contains before it is read. */
static inline void *store_at(const struct store *store, uint64_t at)
{
    return (void *)((uintptr_t)store->memory.base + at);
}

/* The bits of a double, for atomic fields. */
static inline uint64_t store_bits(double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline double store_double(uint64_t bits)
{
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t store_offset(const struct store *store, const void *at)
{
    return (uint64_t)((const char *)at - store->memory.base);
}

/* For tests: called between any two stores whose order matters. NULL otherwise. */
extern void (*store_fault_hook)(void);

/* Stores before it are in memory before those after it. A process is killed between two of its
 * instructions, so their order is all that counts. */
static inline void store_order_point(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    if (store_fault_hook != NULL) {
        store_fault_hook();
    }
}

/* ---- shards ---- */

static inline struct shard *store_shard(const struct store *store, uint32_t shard)
{
    return &store->chunks[shard / SHARDS_PER_CHUNK][shard % SHARDS_PER_CHUNK];
}

/* OPTIMIZER_NONE: it has none yet. */
static inline const struct optimizer_rule *shard_rule(const struct shard *shard)
{
    static const struct optimizer_rule none = {.kind = OPTIMIZER_NONE};
    return atomic_load_explicit(&shard->trained, memory_order_acquire) ? &shard->rule : &none;
}
/* Makes the view of a shard's kept rule, whose offsets were checked. */
void shard_view_rule(struct store *store, struct shard *shard, const struct image_rule *kept);
/* Copies the spec; its name is terminated. */
void store_spec_of(const struct image_spec *kept, struct store_spec *ret_spec);
/* Makes the view of a kept shard, whose offsets were checked, as the next shard. */
cadre_status store_view(struct store *store, struct image_shard *kept, struct cadre_error *error);
/* Makes the view of a shard's kept step. */
void store_view_step(struct store *store, struct shard *shard, struct image_step *step);
/* For errors: "shard 2 of `embedding`". */
#define SHARD_TEXT      "shard %u of `%s`"
#define SHARD_ARGS(one) (one)->spec.shard, (one)->spec.name

/* ---- opening ---- */

/* Checks that the head, all records and journals are what a store of this generation left; then
 * makes their views and recovers what was unfinished. DATA_LOSS. */
cadre_status store_open_existing(struct store *store, struct cadre_error *error);
/* Puts old values back, ends what was at its end, applies steps; see store_recover.c. */
cadre_status store_recover(struct store *store, struct cadre_error *error);
/* The sum of the head's constant fields. */
uint64_t store_head_sum(const struct image_head *head);

/* ---- which pushes were applied: any thread ---- */

enum push_state { PUSH_NEW, PUSH_BEGUN, PUSH_ACTIVE, PUSH_WHOLE };

struct push_key {
    uint64_t closure; /* not 0 */
    uint32_t ordinal;
    uint32_t shard;
};

struct push_progress {
    uint64_t done;
    uint64_t count;
    double trust;
    bool synchronous;
};

/* The state of a push, and its progress unless it is PUSH_NEW. */
enum push_state applied_find(
    struct store *store, struct push_key key, struct push_progress *ret_progress);
/* Makes a push active, a new one or one that was begun. RESOURCE_EXHAUSTED. */
cadre_status applied_claim(struct store *store, struct push_key key,
    const struct push_progress *progress, struct cadre_error *error);
/* The push is not active any more; its progress stays. */
void applied_release(struct store *store, struct push_key key);
/* Progress of an active push: elements, or IMAGE_PUSH_WHOLE, which ends it. */
void applied_progress(struct store *store, struct push_key key, uint64_t done);
/* The ratio of an active push, before it changes anything. */
void applied_trust(struct store *store, struct push_key key, double trust);
/* Synchronous pushes to the shard that are not whole count as applied from now on. False: one is
 * active, and nothing was done. */
bool applied_drop(struct store *store, uint32_t shard);
/* At opening: the table was checked; no push is active. */
void applied_open(struct store *store, struct image_table *table);

static inline struct push_key push_key_of(const struct push *push)
{
    return (struct push_key){
        .closure = push->closure, .ordinal = push->ordinal, .shard = push->shard};
}

/* ---- changes that survive ---- */

/* Elements of a shard that are changed together: all segments have one length. */
struct journal_piece {
    struct shard *shard;
    struct push_key key;
    uint64_t after;         /* the progress when it is done */
    bool sums;              /* the sums of its step are changed, not its rows */
    const uint64_t *starts; /* of segments, in elements */
    size_t segments;
    size_t length;
};

/* How many elements a piece has at most. */
size_t journal_piece_elements(const struct shard *shard);

/* Allocates the journal and scratch of the thread, once. RESOURCE_EXHAUSTED. */
cadre_status journal_ready(struct store *store, uint32_t thread, struct cadre_error *error);
/* The caller holds the shard's lock. The old values are in the journal afterwards; then the caller
 * changes them and calls journal_commit. `mark`: MARK_PIECE or MARK_STEP_PIECE. */
void journal_begin(
    struct store *store, uint32_t thread, const struct journal_piece *piece, enum image_mark mark);
/* Writes the progress and clears the mark. */
void journal_commit(struct store *store, uint32_t thread, const struct journal_piece *piece);
/* Puts the old values back. */
void journal_undo(struct shard *shard, const struct image_journal *journal);

/* What a push does to elements. */
struct change {
    enum push_kind kind;
    struct optimizer_update update;
};
/* `rate` NaN: the rule's; count: the number of the update, from 1; trust: of LAMB. */
struct change change_of(
    const struct shard *shard, enum push_kind kind, double rate, uint64_t count, double trust);
/* Changes the elements of the rows (and slots) from `start` on with `length` values. */
void change_run(const struct store *store, struct shard *shard, const struct change *change,
    uint64_t start, const void *values, size_t length);

/* Whether such a push can be made to the shard. INVALID_ARGUMENT, FAILED_PRECONDITION. */
cadre_status push_check_kind(
    const struct shard *shard, const struct push *push, struct cadre_error *error);
/* Whether the rows of the push are in the shard. OUT_OF_RANGE. */
cadre_status push_check_rows(
    const struct shard *shard, const struct push *push, struct cadre_error *error);

/* ---- LAMB's trust ratio: from all that an update changes, before it changes anything ---- */

/* Whether such a push uses one. */
bool trust_is_wanted(const struct shard *shard, enum push_kind kind);
/* What elements [start, start + length) and their gradient add; `index`: how many came before. */
struct trust {
    struct optimizer_norms norms;
    uint64_t index;
};
/* Adds a run of elements and their gradient to the norms; `count`: the number of the update. */
void trust_add(struct shard *shard, uint64_t count, uint64_t start, const void *gradient,
    size_t length, struct trust *trust);
/* The norms of all values of a dense push. */
void dense_norms(
    struct shard *shard, const struct pushing *pushing, const void *values, struct trust *trust);
/* The norms of all rows of a sparse push. False: no memory to sort rows in. */
bool sparse_norms(struct store *store, struct shard *shard, struct pushing *pushing,
    const void *values, struct trust *trust);
/* Stores the ratio with the push: it is used from now on, also after a restart. */
void trust_keep(struct store *store, struct pushing *pushing, double trust);

/* ---- synchronous pushes ---- */

/* True: the step is over, and this shard had all of it before the chief began it again. */
bool step_is_passed(const struct shard *shard, const struct push *push);
/* The caller holds the shard's lock. CADRE_OK: the push may contribute; CADRE_PENDING and errors as
 * of store_push_begin. It begins once its key is claimed. */
cadre_status store_step_admit(
    struct store *store, struct shard *shard, const struct push *push, struct cadre_error *error);
/* Marks the rows of elements [start, start + length) as touched, before their sums change. */
void step_touch(struct shard *shard, uint64_t start, size_t length);
/* Adds `length` values to the sums from `start` on. */
void step_sum(const struct store *store, struct shard *shard, uint64_t start, const void *values,
    size_t length);
/* For a copy: makes a step with nothing in it when there is none. */
cadre_status step_ready(struct store *store, struct shard *shard, struct cadre_error *error);
/* The caller holds the lock. All contributions are whole, and the ratio is not known. */
bool step_waits(const struct shard *shard);
/* The caller holds the lock, which is released between pieces: the sums for LAMB, of the mean. */
void step_norms(struct store *store, uint32_t thread, struct shard *shard, struct trust *trust);
/* All contributions are whole: applies what is left to apply. */
void step_apply(struct store *store, uint32_t thread, struct shard *shard);
/* Completes the end of a step that a dead process had marked. */
void step_redo_end(struct shard *shard, const struct image_journal *journal);

#endif
