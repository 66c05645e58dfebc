/* SPDX-License-Identifier: Apache-2.0
 * What a parameter server holds: shards of variables, the slots of their optimizers, which pushes
 * were applied; all of it in one piece of memory that outlives the process.
 *
 *     memory (a memfd that the worker daemon keeps)
 *     ┌────────┬─────────────┬──────────────────────┬──────────────────────────────────────────┐
 *     │ header │ applied     │ journals: one for    │ shards: rows | slots of the optimizer |  │
 *     │        │ pushes      │ each thread          │ accumulator | its count                  │
 *     └────────┴─────────────┴──────────────────────┴──────────────────────────────────────────┘
 *
 *     a piece of a push:   old value ─▶ journal, mark ─▶ change it ─▶ progress of the push ─▶
 * unmark
 *
 * A process that dies leaves at most one marked piece for each thread. Opening the memory again
 * puts its old value back, unless the progress was written already; sent again, the push goes on
 * there. So each piece of a push is applied once, whichever process dies.
 *
 * Any thread; a push belongs to one thread at a time. Blocks of different pushes to a shard follow
 * each other in some order; a reader meanwhile may find some blocks of a push and not others. */
#ifndef CADRE_PS_STORE_STORE_H
#define CADRE_PS_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/tensor.h"
#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/library/optimizer/apply.h"
#include "worker/library/optimizer/rule.h"

#define STORE_NAME_BYTES  (LIMIT_NAME_BYTES + 16)
#define STORE_BLOCK_BYTES ((size_t)256 << 10) /* of values: a good size for store_push_block */

struct store;

struct store_options {
    int fd; /* of the memory, stays the caller's; -1: memory that ends with the process */
    struct generation generation; /* memory of another one is emptied */
    bool expects_copy; /* empty memory is to be filled by store_load, and counts as nothing before
                        * that */
    uint64_t limit_bytes; /* 0: the machine's memory */
};

/* *ret_existing: the memory held this generation's variables, and still does; false when a process
 * that expected a copy died before it had it. DATA_LOSS: the memory holds something that no server
 * wrote. RESOURCE_EXHAUSTED. */
cadre_status store_open(const struct store_options *options, struct store **ret_store,
    bool *ret_existing, struct cadre_error *error);
/* The memory stays as it is. NULL is allowed. */
void store_close(struct store *store);

/* Drawn when the memory was emptied: with another number all variables are new ones. */
uint64_t store_nonce(const struct store *store);

/* ---- shards ---- */

/* Rows `first_row` on of the variable `name`. */
struct store_spec {
    char name[STORE_NAME_BYTES]; /* of the variable */
    uint32_t shard;              /* of the variable */
    cadre_dtype dtype;           /* all but CADRE_STRING */
    uint64_t rows;               /* 1 of a scalar; may be 0 */
    uint64_t row_elements;
};

/* Makes a shard of zeros without an optimizer. For the same spec again it returns the same shard,
 * unchanged. ALREADY_EXISTS: there is one of that name and number with another shape;
 * INVALID_ARGUMENT names the field; RESOURCE_EXHAUSTED names the bytes that were requested and that
 * are left. *ret_shard: from 0, in order of creation. */
cadre_status store_create(struct store *store, const struct store_spec *spec, uint32_t *ret_shard,
    struct cadre_error *error);
/* Gives a shard its rule, and slots with their initial values. Once: the same rule again changes
 * nothing, another one is refused with ALREADY_EXISTS. INVALID_ARGUMENT: no valid rule, or the
 * elements are neither f32 nor f64. Of sparse pushes only the rows that they name change, and only
 * these rows' slots; t, and the step of a schedule, is the shard's count of updates all the same.
 * LAMB's norms are of the rows that an update changes (push.trust). */
cadre_status store_train(struct store *store, uint32_t shard, const struct optimizer_rule *rule,
    struct cadre_error *error);
/* The shard's rule; OPTIMIZER_NONE before store_train. */
const struct optimizer_rule *store_rule(const struct store *store, uint32_t shard);
/* How many shards there are. */
uint32_t store_count(const struct store *store);
/* The shard's spec; shard < store_count. */
const struct store_spec *store_spec(const struct store *store, uint32_t shard);
/* How many pushes were applied to it as a whole; the synchronous ones of a step count as one, and
 * assignments by closure 0, which fill variables, do not count. */
uint64_t store_version(const struct store *store, uint32_t shard);
/* How many synchronous steps were applied to it. */
uint64_t store_steps(const struct store *store, uint32_t shard);
/* Drops the contributions to steps that are not complete; their pushes count as applied. `step` is
 * the next one; but where exactly one more was applied (in a batch that failed some shards had all
 * of it) it stays so, and pushes of `step` are ignored. The same call again changes nothing.
 * CADRE_PENDING: a contribution or a step is being applied; call again when it has ended or was
 * abandoned. */
cadre_status store_begin_step(struct store *store, uint32_t shard, uint64_t step);

/* ---- texts by name, which survive like variables: descriptions of whole variables ---- */

/* Stores or replaces the text of `name`. RESOURCE_EXHAUSTED, INVALID_ARGUMENT (the name's
 * length). */
cadre_status store_note(struct store *store, const char *name, const void *bytes, size_t count,
    struct cadre_error *error);
/* The text of `name`, until it is stored again; NULL: there is none. */
const void *store_note_find(const struct store *store, const char *name, size_t *ret_count);
/* The i-th name in order of first storing; NULL: there are no more. */
const char *store_note_at(const struct store *store, uint32_t i);

/* ---- reading ---- */

/* The address of rows [first, first + rows), which may be read without a lock while other threads
 * change them. */
const void *store_rows(const struct store *store, uint32_t shard, uint64_t first, uint64_t rows);
/* The same of an optimizer's slot, in the order of optimizer_slot_name. NULL: it has no such slot.
 * For checkpoints and copies. */
void *store_slot(const struct store *store, uint32_t shard, uint32_t slot);
/* The shard's count of updates. */
uint64_t store_updates(const struct store *store, uint32_t shard);
/* Sets the shard's count of updates, when a checkpoint is restored. */
void store_set_updates(struct store *store, uint32_t shard, uint64_t updates);
/* Copies rows in the order of `ids`, each < rows. */
void store_gather(
    const struct store *store, uint32_t shard, const int64_t *ids, size_t count, void *ret_rows);

/* ---- pushes ---- */

/* ADD and SUB: integers wrap, 16-bit floats are computed in float32; not of bool. ASSIGN: a block
 * that was cut off in its middle has changed some of its elements; sent again, it changes all. */
enum push_kind { PUSH_UPDATE = 1, PUSH_ADD, PUSH_SUB, PUSH_ASSIGN };

#define PUSH_ANY_VERSION UINT64_MAX

struct push {
    uint32_t shard;
    enum push_kind kind;
    /* Which push of which closure; closures are numbered from 1 by the chief. Applied once. 0: not
     * recorded, applied each time that it is sent. */
    uint64_t closure;
    uint32_t ordinal;
    /* Rows `ids`, in any order. When a row comes several times its gradients are added up first,
     * ADD and SUB are applied one after the other, and of ASSIGN the last one counts. */
    bool sparse;
    uint64_t first_row; /* dense: rows [first_row, first_row + rows) */
    uint64_t rows;      /* dense: of them; sparse: of ids */
    const int64_t *ids; /* sparse: all of them, before the first block */
    double rate;        /* of PUSH_UPDATE; NaN: the rule's, by its schedule */
    /* Of PUSH_UPDATE by LAMB: 0: the ratio is of the rows that this push changes; above 0: the
     * ratio of all shards of the variable (store_push_norms), which the push keeps; NaN: the shard
     * is one of several of a variable, and the client does not have the ratio: a synchronous push,
     * whose step waits for it (store_step_settle), else FAILED_PRECONDITION. */
    double trust;
    /* Refused with ABORTED when more than `staleness` pushes were applied to the shard since
     * version `based_on`; PUSH_ANY_VERSION: never. */
    uint64_t based_on;
    uint64_t staleness;
    /* contributions > 0: synchronous, and of a closure that is not 0. Waits until `step` steps were
     * applied, is added to the others of its step, and the last contribution applies the mean of
     * all once (PUSH_ADD, PUSH_SUB: the sum). Rows that none of them names do not change. */
    uint64_t step;
    uint32_t contributions;
};

/* A push in progress. The caller's memory; only push.ids is a pointer. */
struct pushing {
    struct push push;
    uint64_t rows_done; /* dense: how many of its rows are done; the next values are for the row
                         * behind */
    uint64_t done;      /* in elements; sparse: of its rows in ascending order, each once */
    uint32_t thread;
    bool applied;   /* it was applied before: no values are to be given */
    uint64_t count; /* the number of this update of the shard, from 1 */
    double trust;   /* of LAMB, also when it was applied before; 0: not known */
};

#define STORE_THREADS 16

/* Admits a push. `thread` < STORE_THREADS: whose journal and scratch it uses; a number is used by
 * one thread at a time, for any number of pushes in turn. INVALID_ARGUMENT, OUT_OF_RANGE (names the
 * row), FAILED_PRECONDITION (a step that is over, no optimizer), ABORTED (stale),
 * RESOURCE_EXHAUSTED; CADRE_PENDING: its step is not there yet, call again when the version has
 * changed; or the same push is in progress (it was sent again while its first connection is open):
 * call again when that one has ended or was abandoned. A push that was begun before goes on,
 * without a check of its staleness or step. */
cadre_status store_push_begin(struct store *store, uint32_t thread, const struct push *push,
    struct pushing *ret_pushing, struct cadre_error *error);
/* True: all rows have to be given at once, because LAMB computes their norms before it changes the
 * first one. */
bool store_push_is_one(const struct store *store, const struct push *push);
/* What this push adds to the norms of LAMB: the sums of the rows that it would change now, from all
 * of its values; of rows by number in ascending order. Nothing changes. The norms of all shards of
 * a variable are joined in order and give the ratio (store_trust), with which each is pushed. For a
 * push that was begun before they mean nothing, because it has its ratio (pushing.trust). Errors as
 * of store_push_begin, but for ABORTED; FAILED_PRECONDITION: another rule. */
cadre_status store_push_norms(struct store *store, uint32_t thread, const struct push *push,
    const void *values, struct optimizer_norms *ret_norms, struct cadre_error *error);
/* optimizer_trust, but never 0 or NaN. */
double store_trust(const struct optimizer_norms *norms);
/* Dense: the next `rows` rows of it, from rows_done on; any number of them at a time, or all if
 * store_push_is_one. The elements of the first row that were applied before are skipped. */
void store_push_block(
    struct store *store, struct pushing *pushing, const void *values, uint64_t rows);
/* Sparse: all of it, values in the order of its ids; also when some of it was applied before.
 * RESOURCE_EXHAUSTED: no memory to sort ids in; then store_push_abandon. */
cadre_status store_push_rows(
    struct store *store, struct pushing *pushing, const void *values, struct cadre_error *error);
/* All rows are done: the push is recorded as applied; the last one of a step applies that. Does
 * nothing for a push that was applied before. */
void store_push_end(struct store *store, struct pushing *pushing);
/* The rest of its values did not come: what was done is kept for when it is sent again. */
void store_push_abandon(struct store *store, struct pushing *pushing);

/* A synchronous step of a shard of what LAMB updates: with all contributions its sums wait for the
 * ratio of all shards, which a client computes. */
enum store_step_state { STEP_INCOMPLETE, STEP_WAITS, STEP_OVER };
/* WAITS: what its mean adds to the norms, as of store_push_norms; zeros once it has a ratio and is
 * being applied. */
cadre_status store_step_norms(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    enum store_step_state *ret_state, struct optimizer_norms *ret_norms, struct cadre_error *error);
/* Applies the step with the first ratio that was given; *ret_trust: that one, which all shards are
 * to use. The same call again changes nothing; 0: it was applied, with a ratio that is not kept any
 * more. FAILED_PRECONDITION: it does not wait; CADRE_PENDING: it is being applied, call again. */
cadre_status store_step_settle(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    double trust, double *ret_trust, struct cadre_error *error);

/* How many rows of this shard are a block of STORE_BLOCK_BYTES; at least 1. */
uint64_t store_block_rows(const struct store *store, uint32_t shard);

/* Closures with smaller numbers than `closure` are done: their pushes are not sent again; one that
 * arrives all the same counts as applied. */
void store_forget(struct store *store, uint64_t closure);

/* Whether a push of this closure and ordinal was applied to the shard as a whole. */
bool store_applied(const struct store *store, uint32_t shard, uint64_t closure, uint32_t ordinal);

/* ---- copies of a whole store, for backups: a stream of bytes with all shards, slots, applied
 * pushes and notes. Nothing may be pushed meanwhile. ---- */

/* Takes or fills `count` bytes of the stream; an error ends the copy. */
typedef cadre_status store_sink(
    void *user, const void *bytes, size_t count, struct cadre_error *error);
typedef cadre_status store_source(void *user, void *bytes, size_t count, struct cadre_error *error);
/* Writes the whole store. */
cadre_status store_save(
    const struct store *store, store_sink *sink, void *user, struct cadre_error *error);
/* Fills an empty store, which has the nonce of the saved one afterwards. DATA_LOSS: not such a
 * stream. On error the store must be closed; it is empty when it is opened again. */
cadre_status store_load(
    struct store *store, store_source *source, void *user, struct cadre_error *error);

#endif
