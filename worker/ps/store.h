/* SPDX-License-Identifier: Apache-2.0
 * What a parameter server holds: shards of variables, what their optimizers remember, which pushes
 * were applied; all of it in one piece of memory that outlives the process.
 *
 *     memory (a memfd that the worker daemon keeps)
 *     ┌────────┬─────────────┬──────────────────────┬──────────────────────────────────────────┐
 *     │ header │ applied     │ journals: one for    │ shards: rows | slots of the optimizer |  │
 *     │        │ pushes      │ each thread          │ accumulator | its count                  │
 *     └────────┴─────────────┴──────────────────────┴──────────────────────────────────────────┘
 *
 *     a block of a push:   old value ─▶ journal, mark ─▶ change it ─▶ unmark, one more block is
 * done
 *
 * A process that dies leaves at most one block for each thread that is marked. Opening the memory
 * again puts its old value back, and keeps how many blocks of that push were done: sent again, it
 * goes on behind them. So each block of a push is applied once, whoever dies.
 *
 * Any thread; a push is one thread's at a time. Blocks of different pushes to a shard follow each
 * other in some order; who reads meanwhile may find some blocks of a push and not others. */
#ifndef CADRE_PS_STORE_H
#define CADRE_PS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "common/model/task_message.h"

#define STORE_NAME_BYTES  (LIMIT_NAME_BYTES + 16)
#define STORE_BLOCK_BYTES ((size_t)256 << 10) /* of values; what is applied under one lock */

struct store;

struct store_options {
    int fd; /* of the memory, stays the caller's; -1: it lives with the process */
    struct generation generation; /* memory of another one is emptied */
    uint64_t limit_bytes;         /* 0: what the machine has */
};

/* *ret_kept: the memory held this generation's variables, and still does. DATA_LOSS: it holds
 * something that no server wrote. RESOURCE_EXHAUSTED. */
cadre_status store_open(const struct store_options *options, struct store **ret_store,
    bool *ret_kept, struct cadre_error *error);
/* The memory stays as it is; NULL is allowed. */
void store_close(struct store *store);

/* Drawn when the memory was emptied: another number is another life of the variables. */
uint64_t store_nonce(const struct store *store);

/* ---- shards ---- */

enum store_optimizer {
    STORE_NO_OPTIMIZER = 0, /* PUSH_UPDATE is refused */
    STORE_SGD,              /* v -= rate * g */
    STORE_MOMENTUM,         /* a = momentum * a + g; v -= rate * a, or Nesterov's */
    STORE_ADAGRAD,          /* a += g^2; v -= rate * g / (sqrt(a) + epsilon) */
    STORE_ADAM              /* tf.keras.optimizers.Adam, epsilon as there */
};

struct store_training {
    enum store_optimizer optimizer;
    double rate;
    double momentum; /* MOMENTUM */
    bool nesterov;
    double initial; /* ADAGRAD: of the accumulator */
    double beta1;   /* ADAM */
    double beta2;
    double epsilon;
};

/* Rows `first_row` on of the variable `name`. Optimizers need f32 or f64. */
struct store_spec {
    char name[STORE_NAME_BYTES]; /* of the variable */
    uint32_t shard;              /* of the variable */
    cadre_dtype dtype;           /* all but CADRE_STRING */
    uint64_t rows;               /* 1 of a scalar; may be 0 */
    uint64_t row_elements;
    struct store_training training;
};

/* All zero, until something is assigned. The same once more: the same shard, as it is.
 * ALREADY_EXISTS: one of that name and number and another shape; INVALID_ARGUMENT names the field;
 * RESOURCE_EXHAUSTED says how much was asked for and how much is left. *ret_shard: from 0, in order
 * of creation. */
cadre_status store_create(struct store *store, const struct store_spec *spec, uint32_t *ret_shard,
    struct cadre_error *error);
uint32_t store_count(const struct store *store);
/* shard < store_count. */
const struct store_spec *store_spec(const struct store *store, uint32_t shard);
/* How many pushes were applied to it as a whole; of a synchronous one: how many steps. */
uint64_t store_version(const struct store *store, uint32_t shard);

/* ---- texts by name, which survive like variables: what a variable looks like as a whole ---- */

cadre_status store_note(struct store *store, const char *name, const void *bytes, size_t count,
    struct cadre_error *error);
/* NULL: there is none. Valid until the same name is noted again. The i-th in order of first noting,
 * until NULL. */
const void *store_noted(const struct store *store, const char *name, size_t *ret_count);
const char *store_noted_at(const struct store *store, uint32_t i);

/* ---- reading ---- */

/* Where rows [first, first + rows) lie: to be read while others change them. */
const void *store_rows(const struct store *store, uint32_t shard, uint64_t first, uint64_t rows);
/* The same of an optimizer's memory: slot 0 (momentum, accumulator, m) or 1 (v). NULL: it has none.
 * And its count of updates. For checkpoints and copies. */
void *store_slot(const struct store *store, uint32_t shard, uint32_t slot);
uint64_t store_updates(const struct store *store, uint32_t shard);
/* Copies rows in the order of `ids`, each < rows. */
void store_gather(
    const struct store *store, uint32_t shard, const int64_t *ids, size_t count, void *ret_rows);

/* ---- pushes ---- */

enum push_kind { PUSH_UPDATE = 1, PUSH_ADD, PUSH_SUB, PUSH_ASSIGN };

#define PUSH_ANY_VERSION UINT64_MAX

struct push {
    uint32_t shard;
    enum push_kind kind;
    /* Which push of which closure; closures are numbered from 1 by the chief. Applied once. */
    uint64_t closure;
    uint32_t ordinal;
    bool sparse;        /* rows `ids`, in any order, perhaps several times */
    uint64_t first_row; /* dense: rows [first_row, first_row + rows) */
    uint64_t rows;      /* dense: of them; sparse: of ids */
    const int64_t *ids; /* sparse: all of them, known before the first block */
    double rate;        /* of PUSH_UPDATE; NaN: as the shard was created */
    /* Refused with ABORTED when more than `staleness` pushes were applied to the shard since it had
     * version `based_on`; PUSH_ANY_VERSION: never. */
    uint64_t based_on;
    uint64_t staleness;
    /* contributions > 0: synchronous. Waits until `step` steps were applied, is added to the
     * others' of its step, and the mean of all is applied once (PUSH_ADD: the sum) by the last. */
    uint64_t step;
    uint32_t contributions;
};

/* One that is being applied. The caller's memory; no pointers of others in it. */
struct pushing {
    struct push push;
    uint64_t rows_done; /* rows of it that are done: values are to be given from there on */
    uint32_t thread;
    bool applied;   /* it was applied before: nothing is to be given */
    uint64_t count; /* which update of the shard it is, for ADAM */
};

/* `thread`: below STORE_THREADS; one push at a time for each. INVALID_ARGUMENT, OUT_OF_RANGE (names
 * the row), FAILED_PRECONDITION (a step that is over, no optimizer), ABORTED (stale),
 * CADRE_PENDING: its step is not there yet, ask again when the version has changed. */
#define STORE_THREADS 16
cadre_status store_push_begin(struct store *store, uint32_t thread, const struct push *push,
    struct pushing *ret_pushing, struct cadre_error *error);
/* The next `rows` rows of it, from rows_done on; at most STORE_BLOCK_BYTES, but one row at least.
 */
void store_push_block(
    struct store *store, struct pushing *pushing, const void *values, uint64_t rows);
/* All rows are done: it is recorded as applied. False, never twice. */
void store_push_end(struct store *store, struct pushing *pushing);
/* Its values did not come: what was done of it is kept for when it is sent again. */
void store_push_leave(struct store *store, struct pushing *pushing);

/* How many rows a block of this shard has at most. */
uint64_t store_block_rows(const struct store *store, uint32_t shard);

/* Closures below `closure` are done for good: their pushes will not be sent again. */
void store_forget(struct store *store, uint64_t closure);

/* Whether a push of this closure and ordinal was applied to the shard, whole. */
bool store_applied(const struct store *store, uint32_t shard, uint64_t closure, uint32_t ordinal);

/* ---- copies of a whole store, for backups. As a stream of bytes that holds everything: shards,
 * slots, applied pushes, notes. Nothing may be pushed meanwhile. ---- */

typedef cadre_status store_sink(
    void *user, const void *bytes, size_t count, struct cadre_error *error);
typedef cadre_status store_source(void *user, void *bytes, size_t count, struct cadre_error *error);
cadre_status store_save(
    const struct store *store, store_sink *sink, void *user, struct cadre_error *error);
/* Into an empty one. DATA_LOSS: not such a stream. */
cadre_status store_load(
    struct store *store, store_source *source, void *user, struct cadre_error *error);

#endif
