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
 *     a piece of a push:   old value ─▶ journal, mark ─▶ change it ─▶ the push is so far ─▶ unmark
 *
 * A process that dies leaves at most one piece for each thread that is marked. Opening the memory
 * again puts its old value back, unless the push was so far already; sent again, the push goes on
 * there. So each piece of a push is applied once, whoever dies.
 *
 * Any thread; a push is one thread's at a time. Blocks of different pushes to a shard follow each
 * other in some order; who reads meanwhile may find some blocks of a push and not others. */
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
#define STORE_BLOCK_BYTES ((size_t)256 << 10) /* of values: what is worth giving at a time */

struct store;

struct store_options {
    int fd; /* of the memory, stays the caller's; -1: it lives with the process */
    struct generation generation; /* memory of another one is emptied */
    bool expects_copy; /* what is empty is to be loaded (store_load): worth nothing before that */
    uint64_t limit_bytes; /* 0: what the machine has */
};

/* *ret_kept: the memory held this generation's variables, and still does; not of one that expected
 * a copy and died before it had it. DATA_LOSS: it holds
 * something that no server wrote. RESOURCE_EXHAUSTED. */
cadre_status store_open(const struct store_options *options, struct store **ret_store,
    bool *ret_existing, struct cadre_error *error);
/* The memory stays as it is; NULL is allowed. */
void store_close(struct store *store);

/* Drawn when the memory was emptied: another number is another life of the variables. */
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

/* All zero, until something is assigned, and without an optimizer. The same once more: the same
 * shard, as it is.
 * ALREADY_EXISTS: one of that name and number and another shape; INVALID_ARGUMENT names the field;
 * RESOURCE_EXHAUSTED says how much was asked for and how much is left. *ret_shard: from 0, in order
 * of creation. */
cadre_status store_create(struct store *store, const struct store_spec *spec, uint32_t *ret_shard,
    struct cadre_error *error);
/* Gives a shard its rule, and slots with what they begin with. Once: the same rule once more
 * changes nothing, another one is refused with ALREADY_EXISTS. INVALID_ARGUMENT: it is no rule, the
 * elements are neither f32 nor f64. Of sparse pushes only the rows that they name change, and only
 * these rows' slots; t, and the step of a schedule, is the shard's count of updates all the same.
 * LAMB's norms are of the rows that an update changes (push.trust). */
cadre_status store_train(struct store *store, uint32_t shard, const struct optimizer_rule *rule,
    struct cadre_error *error);
/* OPTIMIZER_NONE before that. */
const struct optimizer_rule *store_rule(const struct store *store, uint32_t shard);
uint32_t store_count(const struct store *store);
/* shard < store_count. */
const struct store_spec *store_spec(const struct store *store, uint32_t shard);
/* How many pushes were applied to it as a whole; the synchronous ones of a step count as one, and
 * what is assigned by closure 0, which is how variables are filled, does not count. */
uint64_t store_version(const struct store *store, uint32_t shard);
/* How many synchronous steps were applied to it. */
uint64_t store_steps(const struct store *store, uint32_t shard);
/* What was contributed to steps that are not complete is dropped, and its pushes count as applied.
 * `step` is the next one; but where exactly one more was applied (in a batch that failed some
 * shards had all of it) it stays so, and pushes of `step` are passed over. The same once more
 * changes nothing. CADRE_PENDING: a contribution or a step is
 * being applied; ask again when that one ended or was left. */
cadre_status store_begin_step(struct store *store, uint32_t shard, uint64_t step);

/* ---- texts by name, which survive like variables: what a variable looks like as a whole ---- */

cadre_status store_note(struct store *store, const char *name, const void *bytes, size_t count,
    struct cadre_error *error);
/* NULL: there is none. Valid until the same name is noted again. The i-th in order of first noting,
 * until NULL. */
const void *store_note_find(const struct store *store, const char *name, size_t *ret_count);
const char *store_note_at(const struct store *store, uint32_t i);

/* ---- reading ---- */

/* Where rows [first, first + rows) lie: to be read while others change them, without a lock. */
const void *store_rows(const struct store *store, uint32_t shard, uint64_t first, uint64_t rows);
/* The same of an optimizer's memory, in the order of optimizer_slot_name. NULL: it has no such
 * slot. And its count of updates. For checkpoints and copies. */
void *store_slot(const struct store *store, uint32_t shard, uint32_t slot);
uint64_t store_updates(const struct store *store, uint32_t shard);
void store_set_updates(struct store *store, uint32_t shard, uint64_t updates);
/* Copies rows in the order of `ids`, each < rows. */
void store_gather(
    const struct store *store, uint32_t shard, const int64_t *ids, size_t count, void *ret_rows);

/* ---- pushes ---- */

/* ADD and SUB: integers wrap, 16-bit floats are computed in float32; not of bool. ASSIGN: what is
 * cut off in the middle of a block has changed some of its elements; sent again, all. */
enum push_kind { PUSH_UPDATE = 1, PUSH_ADD, PUSH_SUB, PUSH_ASSIGN };

#define PUSH_ANY_VERSION UINT64_MAX

struct push {
    uint32_t shard;
    enum push_kind kind;
    /* Which push of which closure; closures are numbered from 1 by the chief. Applied once. 0: not
     * recorded, applied each time that it is sent. */
    uint64_t closure;
    uint32_t ordinal;
    /* Rows `ids`, in any order. Of a row that comes several times the gradients are added up first,
     * ADD and SUB go one after the other, and of ASSIGN the last one counts. */
    bool sparse;
    uint64_t first_row; /* dense: rows [first_row, first_row + rows) */
    uint64_t rows;      /* dense: of them; sparse: of ids */
    const int64_t *ids; /* sparse: all of them, known before the first block */
    double rate;        /* of PUSH_UPDATE; NaN: the rule's, by its schedule */
    /* Of PUSH_UPDATE by LAMB: 0: its ratio is of the rows that this push changes; above 0: the
     * ratio of all shards of the variable (store_push_norms), which the push keeps; NaN: the shard
     * is a part of a variable, and whoever pushes does not know the ratio: a synchronous push,
     * whose step waits for it (store_step_settle), else FAILED_PRECONDITION. */
    double trust;
    /* Refused with ABORTED when more than `staleness` pushes were applied to the shard since it had
     * version `based_on`; PUSH_ANY_VERSION: never. */
    uint64_t based_on;
    uint64_t staleness;
    /* contributions > 0: synchronous, and of a closure that is not 0. Waits until `step` steps were
     * applied, is added to the others' of its step, and the mean of all is applied once (PUSH_ADD,
     * PUSH_SUB: the sum) by the last. Rows that none of them names do not change. */
    uint64_t step;
    uint32_t contributions;
};

/* One that is being applied. The caller's memory; but for push.ids it points nowhere. */
struct pushing {
    struct push push;
    uint64_t rows_done; /* dense: rows of it that are done: values are to be given from there on */
    uint64_t done;      /* elements; sparse: of its rows in ascending order, each once */
    uint32_t thread;
    bool applied;   /* it was applied before: nothing is to be given */
    uint64_t count; /* which update of the shard it is, from 1 */
    double trust;   /* of LAMB, also of one that was applied before; 0: not known */
};

/* `thread`: below STORE_THREADS: whose journal and scratch it uses; a number is used by one thread
 * at a time, for any number of pushes in turn. INVALID_ARGUMENT, OUT_OF_RANGE (names the row),
 * FAILED_PRECONDITION (a step that is over, no optimizer), ABORTED (stale), RESOURCE_EXHAUSTED;
 * CADRE_PENDING: its step is not there yet, ask again when the version has changed; or the same
 * push is being applied already (it was sent again while its first connection lives): ask again
 * when that one ended or was left. What was begun before goes on without a look at its staleness or
 * step. */
#define STORE_THREADS 16
cadre_status store_push_begin(struct store *store, uint32_t thread, const struct push *push,
    struct pushing *ret_pushing, struct cadre_error *error);
/* Whether all rows have to be given at once: LAMB needs their norms before it changes the first. */
bool store_push_is_one(const struct store *store, const struct push *push);
/* What LAMB needs of this push before its ratio is known: the sums of the rows that it would change
 * now, from all of its values; of rows by number in ascending order. Nothing changes. The parts of
 * one variable are joined in order and give the ratio (store_trust), with which each is pushed. Of
 * a push that was begun before they mean nothing: it has its ratio (pushing.trust). Errors as of
 * store_push_begin, but for ABORTED; FAILED_PRECONDITION: another rule. */
cadre_status store_push_norms(struct store *store, uint32_t thread, const struct push *push,
    const void *values, struct optimizer_norms *ret_norms, struct cadre_error *error);
/* optimizer_trust, but never 0 or NaN. */
double store_trust(const struct optimizer_norms *norms);
/* Dense: the next `rows` rows of it, from rows_done on; any number of them at a time, unless it is
 * one. The first of them may be done in part already: that part is passed over. */
void store_push_block(
    struct store *store, struct pushing *pushing, const void *values, uint64_t rows);
/* Sparse: all of it, values in the order of its ids: also when some of it is done already.
 * RESOURCE_EXHAUSTED: no memory to sort ids in; it is then to be left. */
cadre_status store_push_rows(
    struct store *store, struct pushing *pushing, const void *values, struct cadre_error *error);
/* All rows are done: it is recorded as applied, never twice; the last one of a step applies that.
 * Of one that was applied before: nothing. */
void store_push_end(struct store *store, struct pushing *pushing);
/* Its values did not come: what was done of it is kept for when it is sent again. */
void store_push_abandon(struct store *store, struct pushing *pushing);

/* A synchronous step of a part of what LAMB updates: with all contributions its sums wait for the
 * ratio of all parts, which some client finds. */
enum store_step_state { STEP_INCOMPLETE, STEP_WAITS, STEP_OVER };
/* WAITS: what its mean adds to the norms, as of store_push_norms; zeros once it was told a ratio
 * and is being applied. */
cadre_status store_step_norms(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    enum store_step_state *ret_state, struct optimizer_norms *ret_norms, struct cadre_error *error);
/* Applies it with the ratio that it was told first; *ret_trust: that one, which all parts are to
 * have. The same once more changes nothing; 0: it was applied, with one that is not known any more.
 * FAILED_PRECONDITION: it does not wait; CADRE_PENDING: it is being applied, ask again. */
cadre_status store_step_settle(struct store *store, uint32_t thread, uint32_t shard, uint64_t step,
    double trust, double *ret_trust, struct cadre_error *error);

/* How many rows of this shard are a block of STORE_BLOCK_BYTES; 1 at least. */
uint64_t store_block_rows(const struct store *store, uint32_t shard);

/* Closures below `closure` are done for good: their pushes will not be sent again; one that is all
 * the same counts as applied. */
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
/* Into an empty one, which then lives the life of the one that was saved: it has its nonce.
 * DATA_LOSS: not such a stream. On error it is to be closed; it is empty when it is opened again.
 */
cadre_status store_load(
    struct store *store, store_source *source, void *user, struct cadre_error *error);

#endif
