/* SPDX-License-Identifier: Apache-2.0
 * Variables on parameter servers: whole or cut into shards along the first axis, used as one. (What
 * a tf.Variable in the scope of ParameterServerStrategy is, and ShardedVariable.)
 *
 *     embedding [11, 64], fixed 4, 3 servers, two variables before it
 *
 *       rows     0 1 2 | 3 4 5 | 6 7 8 | 9 10
 *       server     2       0       1      2        round robin, shard by shard
 *
 * They are variables like all others (cadre/variable.h): with a strategy by
 * cadre_strategy_parameter_server, cadre_variable_create makes them; closures and evaluators find
 * them by name. All of these may read, the chief and closures may write, at any time, by any thread
 * and all at once:
 *
 *     reads copy, and may fail          cadre_variable_value, _gather, _slice, _print,
 *                                       _local_results
 *     writes are done on the servers    cadre_variable_assign, _assign_literal, _scatter (ADD, SUB,
 *                                       UPDATE), cadre_variable_push
 *     what needs the elements in this   FAILED_PRECONDITION, which names what to call instead:
 *     process, or a step                cadre_variable_read, _write, _assign_values, _update, and
 *                                       cadre_destinations
 *     slots of optimizers are read      cadre_optimizer_slot; all writes of them are refused
 *
 * A write is a *push*: one request to each of the variable's servers, which returns when all have
 * applied it, at once, also in a step of cadre_run, and no step undoes it. Each push of a closure
 * is applied once, however often it is sent or the closure is run again: pushes are identified by
 * the closure and their order in it, so a closure makes the same pushes each time it runs, in the
 * same order, by one thread. One that a failure cut off may have been applied in some blocks of
 * rows; sent again, the rest is.
 *
 * In a step of a closure (cadre_run with the worker's strategy) the replicas of the worker write
 * such a variable together, as the aggregation says that it was created with: their values are
 * added, averaged, or the first one's counts (of rows: all of theirs, one behind the other), and
 * the first replica makes one push of that, in the order of its closure; the others go on when it
 * is applied. A number (cadre_variable_assign_literal) counts once, and is refused with SUM.
 * Without an aggregation INVALID_ARGUMENT, where there are several replicas. Behind cadre_run, and
 * in the function of cadre_merge_call, it is a push as always. Workers do not wait for each other.
 *
 * A read goes on while others push: it may find a push in some rows and not in others. Steps that
 * all workers take together are pushed synchronously (cadre_push_options.contributions):
 *
 *     chief, for step s: schedule n closures, each with s among its arguments; cadre_join; s + 1
 *     closure:  cadre_variable_value(NULL, w, {.step = s}, ...)   at once: s - 1 was joined
 *               compute
 *               cadre_variable_push(NULL, w, CADRE_ASSIGN_UPDATE, gradient, NULL,
 *                   {.contributions = n, .step = s})
 *
 * The n closures need not run at the same time, and not on n workers: a push returns once it is
 * counted, and the join is the barrier. Each variable counts its own steps, from 0, and checkpoints
 * have the counts, so a program that goes on from one numbers on: by cadre_strategy_position (one
 * join a step, saved with `wait`), or by a number of its own. When the join returns an error some
 * closures of the step have contributed and some never will: the program goes on from its
 * checkpoint, or says cadre_variable_begin_step(w, s) for each variable and schedules step s again.
 * A closure that waits for a step of its own batch (by reading with `step`, or by a push to a later
 * step) gets CANCELLED when that batch fails.
 *
 * A server that dies comes back with all that it held (cadre/parameter_server.h); calls wait for
 * it. UNAVAILABLE when it does not come back in time; DATA_LOSS when it came back empty: the job is
 * to go on from its last checkpoint.
 *
 * The chief's checkpoints (cadre/checkpoint.h) hold each of them as one tensor under its name,
 * beside the other variables, and as those do, so that a job goes on from a checkpoint of one whose
 * variables lay elsewhere. What its optimizer remembers is "<name>/momentum", "<name>/accumulator"
 * or "<name>/m" and "<name>/v", with "<name>/updates"; "<name>/steps" are its synchronous steps, of
 * each shard (a checkpoint without them: none). They are read from the servers while the file is
 * written, by a thread of the chief and without stopping anybody: each row is as it was at some
 * moment meanwhile. Saved after cadre_join, before more is scheduled, with `wait`, all rows are of
 * one state. */
#ifndef CADRE_SERVED_H
#define CADRE_SERVED_H

#include <stdint.h>

#include "cadre/assign.h"
#include "cadre/parameter_server.h"
#include "cadre/variable.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How servers apply a push. Zeroed: at once, whenever it comes. */
typedef struct cadre_push_options {
    /* Of CADRE_ASSIGN_UPDATE: instead of the optimizer's rate; 0: that one. */
    double rate;
    /* Asynchronous, with a bound: refused with ABORTED when `staleness` or more pushes were applied
     * to a shard since this closure, or outside of closures this thread, read it last (0 means no
     * bound, 1 that none may lie between); shards that were not read are not contacted, and
     * FAILED_PRECONDITION when nothing was. The closure then reads again, and its next push is that
     * one once more: shards that had not refused it pass it over, so each shard applies one of the
     * attempts. (Outside of closures a retry is another push.) */
    uint64_t staleness;
    /* Synchronous, without a bound: `contributions` pushes of `step` (from 0) are averaged (added:
     * of CADRE_ASSIGN_ADD), and applied as one when all are there. Returns when this one is
     * counted; to see the step, read with cadre_read_options.step = step + 1. A push waits until
     * the steps before its own are complete. All contributions of a step agree in kind, number and
     * rate (INVALID_ARGUMENT); FAILED_PRECONDITION: the step is over, or has all of them. Of rows:
     * those that no contribution names do not change; the mean is by `contributions`, also of rows
     * that few of them name. */
    uint32_t contributions;
    uint64_t step;
    /* Of the whole: is filled with what the variable is afterwards, by the same request; of its
     * type and shape, and may be the tensor that is pushed. That is a read. NULL: nothing. */
    cadre_tensor *into;
} cadre_push_options;

/* Changes a variable on servers as `how` says: with `ids` NULL all of it, by `values` of its type
 * and shape; else those rows: `ids` is i32 or i64 of any rank, `values` has its shape and then a
 * row's. A row may come several times: gradients are added up first (for SGD: one after the other,
 * which is the same), what is added counts each time, of what is assigned the last one. What the
 * optimizer remembers of other rows stays as it is (Keras lets it fade), and ADAM's count of
 * updates is the shard's. Tensors over memory of the program (cadre_tensor_over) are sent from
 * where they are. `replica` as in cadre_variable_assign, `options` may be NULL.
 * INVALID_ARGUMENT names types or shapes that differ; OUT_OF_RANGE a row. FAILED_PRECONDITION: an
 * update of a variable for which no optimizer was built (cadre/optimizer.h); in an evaluator; a
 * variable in this process (use cadre_variable_assign, _scatter). (Optimizer.apply_gradients on a
 * parameter server, with tf.IndexedSlices for rows.) */
CADRE_API cadre_status cadre_variable_push(cadre_replica *replica, cadre_variable *variable,
    cadre_assignment how, const cadre_tensor *values, const cadre_tensor *ids,
    const cadre_push_options *options);

/* Makes `step` the next synchronous step: on the chief, while no closure is scheduled or runs,
 * after a batch that failed, or to number steps again. What was contributed to one that is not
 * complete is dropped. A shard that has had all of `step` (and no step behind it) keeps it and
 * passes its pushes over, so that a step that is taken again is applied once to each shard, which
 * then may be of two attempts. FAILED_PRECONDITION: not on the chief; a variable in this process.
 */
CADRE_API cadre_status cadre_variable_begin_step(cadre_variable *variable, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
