/* SPDX-License-Identifier: Apache-2.0
 * Parameters: variables that parameter servers hold, whole or cut into shards along the first axis,
 * used as one. (tf.Variable in the scope of ParameterServerStrategy, ShardedVariable.)
 *
 *     embedding [11, 64], fixed 4, 3 servers, two variables before it
 *
 *       rows     0 1 2 | 3 4 5 | 6 7 8 | 9 10
 *       server     2       0       1      2        round robin, shard by shard
 *
 * The chief creates them; closures and the evaluator find them by name; all of these may read, the
 * chief and closures may write, at any time and all at once. A *push* changes a parameter in one
 * request to each of its servers and returns when all have applied it. Each push of a closure is
 * applied once, however often it is sent or the closure is run again: pushes are told apart by the
 * closure and their order in it, so a closure makes the same pushes each time it runs, in the same
 * order, by one thread. One that a failure cut off may have been applied in some blocks of rows;
 * sent again, the rest is.
 *
 * A pull reads while others push: it may find a push in some rows and not in others. Steps that all
 * workers take together are pushed synchronously (cadre_push_options.contributions):
 *
 *     chief, for step s: schedule n closures, each with s among its arguments; cadre_join; s + 1
 *     closure:           cadre_parameter_pull_step(w, s, ...)      at once: step s - 1 was joined
 *                        compute
 *                        cadre_parameter_update(w, gradient, {.contributions = n, .step = s})
 *
 * The n closures need not run at the same time, and not on n workers: a push returns once it is
 * counted, and the join is the barrier. Each parameter counts its own steps, from 0, and
 * checkpoints have the counts, so a program that goes on from one numbers on: by
 * cadre_strategy_position (one join a step, saved with `wait`), or by a number of its own. When the
 * join returns an error some closures of the step have contributed and some never will: the program
 * goes on from its checkpoint, or says cadre_parameter_begin_step(w, s) for each parameter and
 * schedules step s again. A closure that waits for a step of its own batch (by
 * cadre_parameter_pull_step, or by a push to a later step) gets CANCELLED when that batch fails.
 *
 * A server that dies comes back with all that it held (cadre/parameter_server.h); calls wait for
 * it. UNAVAILABLE when it does not come back in time; DATA_LOSS when it came back empty: the job is
 * to go on from its last checkpoint.
 *
 * The chief's checkpoints (cadre/checkpoint.h) hold each parameter as one tensor under its name,
 * beside the variables, and what its optimizer remembers as "<name>/momentum", "<name>/accumulator"
 * or "<name>/m" and "<name>/v", with "<name>/updates"; "<name>/steps" are its synchronous steps, of
 * each shard (a checkpoint without them: none). They are read from the servers while the
 * file is written, by a thread of the chief and without stopping anybody: each row is as it was at
 * some moment meanwhile. Saved after cadre_join, before more is scheduled, with `wait`, all rows
 * are of one state. */
#ifndef CADRE_PARAMETER_H
#define CADRE_PARAMETER_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/parameter_server.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cadre_parameter cadre_parameter;

typedef enum cadre_optimizer_kind {
    CADRE_OPTIMIZER_NONE = 0,
    CADRE_OPTIMIZER_SGD,      /* v -= rate * g */
    CADRE_OPTIMIZER_MOMENTUM, /* tf.keras.optimizers.SGD(momentum, nesterov) */
    CADRE_OPTIMIZER_ADAGRAD,  /* tf.keras.optimizers.Adagrad */
    CADRE_OPTIMIZER_ADAM      /* tf.keras.optimizers.Adam */
} cadre_optimizer_kind;

/* What a server does with a gradient. Zeroed numbers mean Keras' defaults: momentum 0.9 (of
 * MOMENTUM), initial_accumulator 0.1, beta1 0.9, beta2 0.999, epsilon 1e-7; the rate has to be
 * given. */
typedef struct cadre_optimizer {
    cadre_optimizer_kind kind;
    double rate;
    double momentum;
    bool nesterov;
    double initial_accumulator;
    double beta1;
    double beta2;
    double epsilon;
} cadre_optimizer;

/* Zeroed: zeros, no optimizer, the strategy's partitioner. */
typedef struct cadre_parameter_options {
    cadre_initializer
        initializer;           /* by functions: called with whole rows, at most 4 MiB at a time */
    cadre_optimizer optimizer; /* f32 and f64 only */
    const cadre_partitioner *partitioner; /* instead of the strategy's */
    /* On the same server as this one, whole, and without moving the round robin. */
    const cadre_parameter *colocate_with;
} cadre_parameter_options;

/* On the chief, before or between closures: places it, creates and fills its shards; then others
 * find it. Random initial values are the same whatever the shards are. `name` and shape as in
 * cadre_variable_create, but not CADRE_STRING, and no name that begins with "cadre/". In a job that
 * goes on from a checkpoint it gets its value, and the optimizer's memory, from there, whatever its
 * shards were: NOT_FOUND or INVALID_ARGUMENT when the checkpoint does not hold it, or as another
 * type or shape (after the first step one that it does not hold begins anew); likewise
 * after cadre_restore (cadre/restore.h), where it begins anew when that file does not hold it. The
 * strategy's, and lives as long. INVALID_ARGUMENT names what is wrong, also with what a partitioner
 * gave; FAILED_PRECONDITION: on a worker, a ps, an evaluator; ALREADY_EXISTS: the name is taken, or
 * what it would stand as in checkpoints; RESOURCE_EXHAUSTED names the server that has no room.
 * After an error it can be created again. */
CADRE_API cadre_status cadre_parameter_create(cadre_strategy *strategy, const char *name,
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, const cadre_parameter_options *options,
    cadre_parameter **ret_parameter);

/* By name, in closures, evaluators and on the chief; the same each time, the process's. NOT_FOUND
 * names those that there are. */
CADRE_API cadre_status cadre_parameter_find(const char *name, cadre_parameter **ret_parameter);

/* Any thread; of NULL 0. */
CADRE_API const char *cadre_parameter_name(const cadre_parameter *parameter);
CADRE_API cadre_dtype cadre_parameter_dtype(const cadre_parameter *parameter);
CADRE_API uint32_t cadre_parameter_rank(const cadre_parameter *parameter);
CADRE_API const int64_t *cadre_parameter_dims(const cadre_parameter *parameter);
CADRE_API uint32_t cadre_parameter_shards(const cadre_parameter *parameter);
/* Which rows a shard has, and which server. shard < cadre_parameter_shards. */
CADRE_API cadre_status cadre_parameter_shard(const cadre_parameter *parameter, uint32_t shard,
    int64_t *ret_first, int64_t *ret_rows, uint32_t *ret_server);

/* How many pushes were applied to its least changed shard (synchronous ones: steps), of those that
 * were read. Goes with what a read returned: cadre_push_options.based_on. */
typedef uint64_t cadre_parameter_version;

/* --- reading. Tensors are the caller's, one reference. `ret_version` may be NULL. --- */

/* All of it. (tf.Variable.read_value.) */
CADRE_API cadre_status cadre_parameter_read(
    cadre_parameter *parameter, cadre_tensor **ret_value, cadre_parameter_version *ret_version);
/* The same into memory of the caller: cadre_parameter_bytes of it. */
CADRE_API cadre_status cadre_parameter_pull(
    cadre_parameter *parameter, void *into, cadre_parameter_version *ret_version);
/* Waits until so many steps of synchronous pushes were applied, then reads; other pushes do not
 * count. */
CADRE_API cadre_status cadre_parameter_pull_step(
    cadre_parameter *parameter, uint64_t step, void *into);
CADRE_API size_t cadre_parameter_bytes(const cadre_parameter *parameter);

/* Rows by number, in that order, any number of times: `ids` is i32 or i64 of any rank, the result
 * has its shape and then a row's. OUT_OF_RANGE names the row. (tf.nn.embedding_lookup.) */
CADRE_API cadre_status cadre_parameter_gather(cadre_parameter *parameter, const cadre_tensor *ids,
    cadre_tensor **ret_rows, cadre_parameter_version *ret_version);
/* The same with plain memory: `count` rows into `into`. */
CADRE_API cadre_status cadre_parameter_gather_rows(cadre_parameter *parameter, const int64_t *ids,
    size_t count, void *into, cadre_parameter_version *ret_version);

/* Python's slice [begin:end:step] of the first axis, assembled in that order across shards; missing
 * bounds, or step, by CADRE_SLICE_DEFAULT. INVALID_ARGUMENT: step 0, a scalar.
 * (ShardedVariable.__getitem__.)
 */
#define CADRE_SLICE_DEFAULT INT64_MIN
CADRE_API cadre_status cadre_parameter_slice(
    cadre_parameter *parameter, int64_t begin, int64_t end, int64_t step, cadre_tensor **ret_rows);
/* One row: of rank less by one; negative counts from the end. OUT_OF_RANGE. */
CADRE_API cadre_status cadre_parameter_row(
    cadre_parameter *parameter, int64_t row, cadre_tensor **ret_row);

/* --- pushing. INVALID_ARGUMENT names both types or shapes where they differ; OUT_OF_RANGE a row;
 * FAILED_PRECONDITION in an evaluator. --- */

typedef struct cadre_push_options {
    /* Of cadre_parameter_update: instead of the optimizer's rate; 0: that one. */
    double rate;
    /* Asynchronous, with a bound: refused with ABORTED when `staleness` or more pushes were applied
     * to a shard since `based_on` was read by this thread (0 means no bound, 1 that none may lie
     * between); shards that were not read then are not asked. The closure then reads again, and its
     * next push is that one once more: shards that had not refused it pass it over, so each shard
     * applies one of the attempts. (Outside of closures a retry is another push.) */
    uint64_t staleness;
    cadre_parameter_version based_on;
    /* Synchronous, without a bound: `contributions` pushes of `step` (from 0) are averaged (added:
     * of assign_add), and applied as one when all are there. Returns when this one is counted; who
     * wants to see the step reads with cadre_parameter_pull_step(step + 1). A push waits until the
     * steps before its own are complete. All contributions of a step agree in kind, number and rate
     * (INVALID_ARGUMENT); FAILED_PRECONDITION: the step is over, or has all of them. Of rows: those
     * that no contribution names do not change; the mean is by `contributions`, also of rows that
     * few of them name. */
    uint32_t contributions;
    uint64_t step;
} cadre_push_options;

/* On the chief, while no closure is scheduled or runs, after a batch that failed, or to number
 * steps anew: `step` is the next one. What was contributed to one that is not complete is dropped.
 * A shard that has had all of `step` (and no step behind it) keeps it and passes its pushes over,
 * so that a step that is taken again is applied once to each shard, which then may be of two
 * attempts. FAILED_PRECONDITION: not on the chief. */
CADRE_API cadre_status cadre_parameter_begin_step(cadre_parameter *parameter, uint64_t step);

/* What the optimizer makes of a gradient of the whole parameter. FAILED_PRECONDITION: it was
 * created without one. `options` may be NULL, as everywhere below. */
CADRE_API cadre_status cadre_parameter_update(
    cadre_parameter *parameter, const cadre_tensor *gradient, const cadre_push_options *options);
/* The same from plain memory, and at once what it is afterwards into `into` (may be the same). */
CADRE_API cadre_status cadre_parameter_push(
    cadre_parameter *parameter, const void *gradient, const cadre_push_options *options);
CADRE_API cadre_status cadre_parameter_push_pull(cadre_parameter *parameter, const void *gradient,
    void *into, const cadre_push_options *options);
/* Of the rows `ids` only, which may come several times: those are added up first (for SGD: one
 * after the other, which is the same). What the optimizer remembers of other rows stays as it is
 * (Keras lets it fade), and ADAM's count of updates is the shard's. `rows` has the shape of ids and
 * then a row's. (tf.IndexedSlices.) */
CADRE_API cadre_status cadre_parameter_update_rows(cadre_parameter *parameter,
    const cadre_tensor *ids, const cadre_tensor *rows, const cadre_push_options *options);
CADRE_API cadre_status cadre_parameter_push_rows(cadre_parameter *parameter, const int64_t *ids,
    size_t count, const void *rows, const cadre_push_options *options);

/* tf.Variable.assign, assign_add, assign_sub, of the whole; the operand is cut by the shards. */
CADRE_API cadre_status cadre_parameter_assign(
    cadre_parameter *parameter, const cadre_tensor *value);
CADRE_API cadre_status cadre_parameter_assign_add(
    cadre_parameter *parameter, const cadre_tensor *value, const cadre_push_options *options);
CADRE_API cadre_status cadre_parameter_assign_sub(
    cadre_parameter *parameter, const cadre_tensor *value, const cadre_push_options *options);
/* Rows, as above. (scatter_add, scatter_sub, scatter_update: of a row that comes several times the
 * last one counts.) */
CADRE_API cadre_status cadre_parameter_scatter_add(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows);
CADRE_API cadre_status cadre_parameter_scatter_sub(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows);
CADRE_API cadre_status cadre_parameter_scatter_update(
    cadre_parameter *parameter, const cadre_tensor *ids, const cadre_tensor *rows);

#ifdef __cplusplus
}
#endif
#endif
