/* SPDX-License-Identifier: Apache-2.0
 * Variables: the state of the training, one copy (component) per replica, kept equal by writing the
 * same everywhere. (tf.Variable in a strategy's scope.)
 *
 * All that an update depends on should be a variable: weights, optimizer slots, learning rates.
 * Variables are what checkpoints hold, what a task that joins is given, and what a step that fails
 * is undone in. How they are changed: cadre/assign.h, cadre/scatter.h.
 *
 *     kind           components of a task    created
 *     mirrored       one per local replica   in a strategy, ON_WRITE
 *     sync on read   one per local replica   in a strategy, ON_READ
 *     aggregating    one                     with central storage, always
 *     regular        one                     outside of any strategy's scope: plain memory
 *     mirrored       one per local replica   in functions of a worker, CADRE_PLACEMENT_PER_WORKER
 *     served         none; shards, on        with parameter servers (cadre/served.h)
 *                    parameter servers
 *
 * Components of mirrored number variables lie where their replicas are, on GPUs too (but with
 * keep_on_host); all others in the memory of the host. Checkpoints are the same either way: a job
 * on GPUs goes on from those of one on CPUs, and back. */
#ifndef CADRE_VARIABLE_H
#define CADRE_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cadre/replica.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A variable of a strategy: one component a replica, or one for all. The strategy's. (tf.Variable.)
 */
typedef struct cadre_variable cadre_variable;
typedef struct cadre_partitioner cadre_partitioner; /* cadre/parameter_server.h */

/* When the components of a variable are made equal. (tf.VariableSynchronization.)
 * ON_READ is for what each replica counts for itself, such as a metric. A replica reads and writes
 * its own component, without a collective; in cross-replica context reading gives what the
 * aggregation makes of all of them: the sum, the mean, the first replica's. Cadre keeps this total
 * on every task, brought up to date at the end of each step by a collective of its own, so that
 * nothing is lost with a replica: a SUM grows by what all replicas changed theirs by in the step,
 * and stays exact whichever replica is lost afterwards (integers to the last unit). MEAN and the
 * first are of the replicas that took part in the last step. The total is the state, in checkpoints
 * too; components are not: on a task that joins later they begin at 0 of a SUM, else at the total,
 * and after a restart from a checkpoint at the n-th part of a SUM. So a replica's own component
 * holds what this replica did since it joined, and only the total what the training did. Without an
 * aggregation there is nothing to read in cross-replica context, nor can one value be assigned
 * there (INVALID_ARGUMENT). What checkpoints hold of it, what a task that joins begins with, and
 * what the comparison of states looks at (CADRE_VERIFY_STATE, cadre/program.h) is the first
 * replica's component; those of the others are in no checkpoint. */
typedef enum cadre_synchronization {
    CADRE_SYNC_AUTO = 0, /* ON_WRITE */
    CADRE_SYNC_NONE,     /* refused, as in TF */
    CADRE_SYNC_ON_WRITE, /* mirrored: all components are equal after each step */
    CADRE_SYNC_ON_READ   /* per replica, combined when read */
} cadre_synchronization;

/* What an assignment in replica context does with the replicas' values, and of ON_READ what reading
 * makes of them. (tf.VariableAggregation.) */
typedef enum cadre_aggregation {
    CADRE_AGGREGATION_NONE = 0, /* each its own; of ON_WRITE the program keeps them equal */
    CADRE_AGGREGATION_SUM,
    CADRE_AGGREGATION_MEAN, /* floating types only */
    CADRE_AGGREGATION_ONLY_FIRST_REPLICA
} cadre_aggregation;

/* What a variable holds at first. (tf.keras.initializers.) */
typedef enum cadre_initializer_kind {
    CADRE_INITIALIZER_ZEROS = 0,
    CADRE_INITIALIZER_CONSTANT, /* `value`; for integers rounded towards zero */
    CADRE_INITIALIZER_UNIFORM,  /* in [low, high), from `seed` and the variable's name */
    CADRE_INITIALIZER_NORMAL,   /* mean, stddev, from `seed` and the variable's name */
    CADRE_INITIALIZER_FUNCTION
} cadre_initializer_kind;

/* Fills `count` elements of `dtype` at `values`, which are zero before; of a variable on servers
 * whole rows, at most 4 MiB at a time. A failure is that of
 * cadre_variable_create; cadre_fail says why. It runs in that call, so other calls with the
 * strategy are refused in it (cadre/strategy.h). */
typedef cadre_status (*cadre_initializer_function)(
    void *values, int64_t count, cadre_dtype dtype, void *user);

/* The first value of a variable. Zeroed: zeros. Each kind uses the members that it names. */
typedef struct cadre_initializer {
    cadre_initializer_kind kind;
    double value;
    double low;
    double high;
    double mean;
    double stddev;
    uint64_t seed;
    cadre_initializer_function function;
    void *user;
} cadre_initializer;

/* What a variable is, as its synchronization, aggregation and placement have made it. */
typedef enum cadre_kind {
    CADRE_VARIABLE_REGULAR = 0,
    CADRE_VARIABLE_MIRRORED,
    CADRE_VARIABLE_SYNC_ON_READ,
    CADRE_VARIABLE_AGGREGATING,
    CADRE_VARIABLE_SERVED
} cadre_kind;

/* Where a variable lies. A model that leaves it AUTO is trained by any strategy. */
typedef enum cadre_variable_placement {
    CADRE_PLACEMENT_AUTO = 0,  /* as the strategy has its variables: with its replicas, or with
                                  parameter servers on those */
    CADRE_PLACEMENT_REPLICAS,  /* in the processes of the replicas; of parameter servers the chief's
                                  own, which closures do not see */
    CADRE_PLACEMENT_SERVERS,   /* on parameter servers, else FAILED_PRECONDITION */
    CADRE_PLACEMENT_PER_WORKER /* in functions that a worker runs, else FAILED_PRECONDITION: each
                                  worker has its own, with its replicas. Made the first time that
                                  it is created there, also after steps, and found then
                                  (INVALID_ARGUMENT: it has another type or shape) */
} cadre_variable_placement;

/* How a variable is made, combined and placed. Zeroed: zeros, AUTO, NONE. */
typedef struct cadre_variable_options {
    cadre_initializer initializer; /* UNIFORM and NORMAL need a floating type */
    cadre_synchronization synchronization;
    cadre_aggregation aggregation;
    /* Share this variable's devices: one of the same strategy (INVALID_ARGUMENT) that lives
     * (FAILED_PRECONDITION). On the same server as one there: whole, and without moving the round
     * robin. (tf.distribute.StrategyExtended.colocate_vars_with.) */
    const cadre_variable *colocate_with;
    /* Of replicas on GPUs: the components lie in the host's memory nevertheless. It is so anyway
     * for all but mirrored variables (ON_READ, central storage, strings). */
    bool keep_on_host;
    cadre_variable_placement placement;
    /* Of one on servers; of others it means nothing. NULL: the strategy's. */
    const cadre_partitioner *partitioner;
} cadre_variable_options;

/* Creates a variable in the strategy's scope. `strategy` NULL: in the scope that the thread is in
 * (cadre_strategy_current); outside of any, and with the default strategy, it is a regular
 * variable, the caller's, to be given to cadre_variable_release: each process has its own, no step
 * undoes it, it is in no checkpoint, its name need not be unique, and synchronization and
 * aggregation mean nothing. Else it belongs to the strategy and lives as long.
 * The chief's first replica evaluates the initial value and all others get it, so all tasks create
 * the same variables in the same order: INVALID_ARGUMENT on all of them otherwise, which names what
 * each creates. (Of ON_READ each component begins with it: a SUM reads as n times the value.)
 *
 *     where                             what it is
 *     before the first step             at once, in all tasks together
 *     between steps of a job under way  a step of the ledger, as a late assignment is: on all
 *                                       tasks, or on none
 *     in a replica function             a part of its step: all replicas call it, and the first
 *                                       time it is two collectives
 *
 * What a step creates is undone with it: when the step fails, or is done again because a
 * task was lost, the variable does not exist, and is created once more with its initial
 * value. From its step on it is in the state of all tasks: in checkpoints (one that was
 * taken before has it not), compared, given to tasks that join. In a replica function the
 * variable that an earlier run of it has created is returned, without a collective; type,
 * shape and options must be the same (INVALID_ARGUMENT), the initializer is not looked at.
 * So a function calls it in each run, and keeps no handle from one run to the next: that of
 * a step which was undone has ended (FAILED_PRECONDITION where it is used), until the
 * variable is created again. The first call for a name in one run gets `name`, the k-th
 * "<name>_<k-1>"; these are names of their own, so where cross-replica context has created a
 * variable of such a name the next is taken. It can be read and written in the step that
 * creates it, and fails the step when it fails. FAILED_PRECONDITION in the function of
 * cadre_merge_call, in an update and in what cadre_on_apply calls, and for another strategy
 * than the replica's. In cross-replica context equal names are made unique: v, v_1, v_2. A
 * task that joins a job that is under way evaluates by itself what it creates before it is
 * let in, and gets the job's values when it comes to its first step; it may create them in
 * another order, for they are matched by their final names, as they are in checkpoints. What
 * the job has and it has not created by then it holds nevertheless, whether its program
 * creates it later or never: a call in cross-replica context that would get such a name
 * returns the variable, at once and alone (checked as above). So a program that creates
 * something late, when it has none, behaves the same in a task that joins; one that creates
 * something repeatedly gives each another name. In a job that goes on from a checkpoint
 * nothing is evaluated before the first step: the variable begins with what that holds of it
 * (NOT_FOUND: nothing; INVALID_ARGUMENT: another type or shape; DATA_LOSS). What it holds
 * and the program has not created by then stays in the job's state, as that of a job does
 * which is joined, and later checkpoints have it; but in a job with parameter servers, where
 * it may be about to be created on those. After cadre_restore (cadre/restore.h) it begins
 * with what that file holds of it, if it does: one that is created late while the first task
 * is one that has restored it. `name`: 1 to 127 bytes of printable ASCII, also with its
 * number. ALREADY_EXISTS: a registered state, or something on parameter servers, is in
 * checkpoints under that name. CADRE_STRING: with zeroed options only; it begins with empty
 * strings, and each assignment is in host memory and in the checkpoint's manifest (16 MiB
 * for all of them). `options` may be NULL. RESOURCE_EXHAUSTED: no memory; a variable takes
 * its bytes once per local replica, as much again once it is written, and once more for
 * checkpoints. The first one, when it is created before the first step, tries whether a
 * checkpoint can be written where it is to go and fails (NOT_FOUND, PERMISSION_DENIED, ...)
 * when it cannot, or when tasks see different folders there: before the training, not after
 * it.
 *
 * On parameter servers (by its placement) the chief places it, creates and fills its shards; then
 * others find it: before or between closures, after the first step too, and it is no step. Its name
 * is unique in the strategy (ALREADY_EXISTS). Random initial values are the same wherever it lies,
 * and whatever its shards are. In a job that goes on from a checkpoint it gets its value, from
 * there, whatever its shards were, or where it lay; after the first step one that the checkpoint
 * does not hold begins with its initial value. FAILED_PRECONDITION: strings, ON_READ, a replica
 * function; INVALID_ARGUMENT also: a name that begins with "cadre/", what is wrong with what a
 * partitioner gave; ALREADY_EXISTS also: its name in checkpoints is taken; RESOURCE_EXHAUSTED names
 * the server that has no room. After an error it can be created again. In a closure the call finds
 * the one that the chief has created: INVALID_ARGUMENT when that has another type or shape,
 * FAILED_PRECONDITION when there is none. (tf.Variable.) */
CADRE_API cadre_status cadre_variable_create(cadre_strategy *strategy, const char *name,
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, const cadre_variable_options *options,
    cadre_variable **ret_variable);

/* Finds a variable by name. `strategy` NULL: of the current one (cadre_strategy_current). In
 * closures and evaluators, and on their chief, also those that parameter servers hold; the same
 * each time, the process's. NOT_FOUND names those that there are. FAILED_PRECONDITION: the strategy
 * has ended, or there is none. Any context and thread. */
CADRE_API cadre_status cadre_variable_find(
    const cadre_strategy *strategy, const char *name, cadre_variable **ret_variable);

/* --- looking at one. Any context and thread. Of NULL, and of one that ended with its strategy,
 * these return "", CADRE_DTYPE_NONE, 0, NULL and false. --- */

/* Its name, borrowed for as long as the strategy. (tf.Variable.name.) */
CADRE_API const char *cadre_variable_name(const cadre_variable *variable);

/* The type of its elements. */
CADRE_API cadre_dtype cadre_variable_dtype(const cadre_variable *variable);

/* How many dimensions it has; 0 for a scalar. */
CADRE_API uint32_t cadre_variable_rank(const cadre_variable *variable);

/* Its `rank` sizes, borrowed for as long as the strategy. */
CADRE_API const int64_t *cadre_variable_dims(const cadre_variable *variable);

/* How many elements it has: the product of its sizes. */
CADRE_API int64_t cadre_variable_count(const cadre_variable *variable);

/* How its components are kept: mirrored, combined when read, ... */
CADRE_API cadre_kind cadre_variable_kind(const cadre_variable *variable);

/* Whether it was created in the scope of this strategy; of the default strategy: in none, so that
 * it is regular. False of one that has ended, and of NULL. Any context.
 * (tf.distribute.StrategyExtended.variable_created_in_scope.) */
CADRE_API bool cadre_variable_created_in_scope(
    const cadre_strategy *strategy, const cadre_variable *variable);

/* --- its components, and its end --- */

/* Components on this task; 1 of CADRE_STRING; of one on servers its shards. */
CADRE_API uint32_t cadre_variable_components(const cadre_variable *variable);

/* Writes the name of a local component into `buffer`, as snprintf does, and returns its length:
 * that of global replica 0 is called as the variable, that of replica r "<name>/replica_<r>", shard
 * s of several "<name>/part_<s>". 0 and "" when there is no such component. */
CADRE_API size_t cadre_variable_component_name(
    const cadre_variable *variable, uint32_t component, char *buffer, size_t size);

/* The device that a local component is on, as cadre/device.h writes it (a shard:
 * "/job:ps/replica:0/task:1/device:CPU:0"); NULL when there is no such component. Valid as long as
 * the variable. */
CADRE_API const char *cadre_variable_device(const cadre_variable *variable, uint32_t component);

/* Which rows a component has: all of them, but of a shard (a scalar is one row). OUT_OF_RANGE. */
CADRE_API cadre_status cadre_variable_component_rows(
    const cadre_variable *variable, uint32_t component, int64_t *ret_first, int64_t *ret_rows);

/* Ends a regular variable. Others belong to their strategy: then, and for NULL, nothing. */
CADRE_API void cadre_variable_release(cadre_variable *variable);

/* --- reading --- */

/* The elements, row-major: of this replica's component. With `replica` NULL: of the replica whose
 * function or update the thread runs, and in cross-replica context of the first local one, or
 * (ON_READ) of the total after the last step. No collective. Valid as long as the variable; the
 * content changes with each write. Of a replica on a GPU it is the GPU's address; in cross-replica
 * context always the host's: a copy, which the call makes when there was a write since the last
 * one (it waits for the GPU), so what an earlier call gave is out of date until the next. Of
 * CADRE_STRING an array of cadre_string, valid until it is assigned. NULL only for a variable that
 * is NULL, or ended with its strategy, or in a step is of another strategy than that, or in
 * cross-replica context is ON_READ without aggregation, or when no copy can be made of one on a
 * GPU, or it lies on parameter servers (use cadre_variable_value): the error names which. */
CADRE_API const void *cadre_variable_read(
    const cadre_replica *replica, const cadre_variable *variable);

/* How a value is read. Zeroed: into a new tensor, as it is now. */
typedef struct cadre_read_options {
    /* Is filled: in the host's memory, of the value's type and shape (INVALID_ARGUMENT), such as
     * one over memory of the program (cadre_tensor_over), which it reaches without a copy. The
     * result is it, with one reference more, and may be left out (`ret` NULL). */
    cadre_tensor *into;
    /* Of one on servers: waits until so many synchronous steps were applied to what is read; other
     * pushes do not count (cadre/served.h). */
    uint64_t step;
} cadre_read_options;

/* The value, wherever the variable lies; what cadre_variable_read sees. Of one in this process a
 * tensor over that memory, without a copy, valid as long as the variable: its content changes with
 * each write. (On a GPU, in replica context, a copy there, in the order of the replica's stream.)
 * Of one on parameter servers a copy, which travels and may fail: UNAVAILABLE, DATA_LOSS,
 * CANCELLED. `options` may be NULL, here and below. The tensor is the caller's, one reference.
 * (tf.Variable.read_value.) */
CADRE_API cadre_status cadre_variable_value(const cadre_replica *replica, cadre_variable *variable,
    const cadre_read_options *options, cadre_tensor **ret_value);

/* Rows by number, in that order, any number of times: `ids` is i32 or i64 of any rank, the result
 * has its shape and then a row's, and is a copy in the host's memory. OUT_OF_RANGE names the row.
 * INVALID_ARGUMENT: a scalar variable, or strings. (tf.nn.embedding_lookup, tf.gather.) */
CADRE_API cadre_status cadre_variable_gather(const cadre_replica *replica, cadre_variable *variable,
    const cadre_tensor *ids, const cadre_read_options *options, cadre_tensor **ret_rows);

#define CADRE_SLICE_DEFAULT INT64_MIN       /* in place of a bound or a step: Python's default */
#define CADRE_SLICE_ROW     (INT64_MIN + 1) /* in place of `end`: one row, whose axis goes */

/* Python's slice [begin:end:step] of the first axis, a copy likewise; missing bounds, or step, by
 * CADRE_SLICE_DEFAULT. With CADRE_SLICE_ROW as `end` the row `begin` alone, of rank less by one,
 * which counts from the end when it is negative: OUT_OF_RANGE. INVALID_ARGUMENT: step 0, a scalar,
 * strings. (ShardedVariable.__getitem__.) */
CADRE_API cadre_status cadre_variable_slice(const cadre_replica *replica, cadre_variable *variable,
    int64_t begin, int64_t end, int64_t step, cadre_tensor **ret_rows);

/* Prints it, and a line's end, as TensorFlow does (cadre/tensor.h), with the components of this
 * task; "SyncOnReadVariable" of one that is combined when read, "ShardedVariable" of several
 * shards, with those:
 *
 *     MirroredVariable:{
 *       0: <cadre_variable 'v:0' shape=() dtype=float32, numpy=1.0>,
 *       1: <cadre_variable 'v/replica_1:0' shape=() dtype=float32, numpy=1.0>
 *     }
 *
 * Of one component (aggregating, regular, strings), and in a replica function or an update, where
 * it is that replica's, the middle alone: <cadre_variable 'v:0' ...>. FAILED_PRECONDITION where
 * cadre_variable_read gives NULL in this process. (print.) */
CADRE_API cadre_status cadre_variable_print(const cadre_variable *variable, FILE *file);

/* All components of this task as they are now: *ret_values has one tensor for each, a copy in the
 * memory of the host, and is the caller's to release. Of a regular variable, an aggregating one and
 * CADRE_STRING it has one, and of one on servers, which is the whole: in any context. No
 * collective; between steps, in the function of cadre_merge_call, and of a regular variable
 * anywhere. FAILED_PRECONDITION in a replica function and in an update, where others write.
 * RESOURCE_EXHAUSTED. (tf.distribute.Strategy.experimental_local_results.) */
CADRE_API cadre_status cadre_variable_local_results(
    const cadre_variable *variable, cadre_per_replica **ret_values);

/* Reads of aggregating variables between enter and leave give what the first of them gave, even
 * after writes: a copy of it, valid until leave. A scope entered in cross-replica context holds for
 * the thread and for the replicas that run meanwhile; one entered in a replica function for that
 * replica, and ends with the function at the latest. INVALID_ARGUMENT: in a scope already. (The
 * variable caching scope of tf.distribute.) */
CADRE_API cadre_status cadre_caching_scope_enter(void);

/* Ends the thread's or replica's caching scope with its copies. FAILED_PRECONDITION: there is none.
 */
CADRE_API cadre_status cadre_caching_scope_leave(void);

/* --- writing --- */

/* This replica's component to write through, in the apply part of a step: after its last
 * collective. On a GPU the GPU's address, to be written by what is launched on the replica's stream
 * before the function returns. The value from before the step is kept and comes back if the step
 * fails. Every replica must write the same, but to ON_READ: their states are compared every so
 * many steps (CADRE_VERIFY_STATE, cadre/program.h), and one that differs is named. NULL,
 * with the reason in cadre_error_message, when there is no memory for the old value, an argument is
 * NULL, the variable holds strings or is of another strategy, the replica's function is not
 * running, or replicas share the component (aggregating). Inside an update `replica` is NULL.
 * Valid until the function returns. Of a regular variable the memory itself, in any context.
 * Keeping the old value costs a copy of it in each step: cadre_on_apply saves that. */
CADRE_API void *cadre_variable_write(cadre_replica *replica, cadre_variable *variable);

/* Writes variables when the step cannot fail any more: by cadre_variable_write(replica, v), which
 * then keeps no old value and gives NULL only for a variable that is not this function's to write:
 * of strings, shared by replicas, or ON_READ, whose total has been made. Reads are allowed too;
 * all that needs others, or fails, is not. */
typedef void (*cadre_apply_function)(cadre_replica *replica, void *user);

/* In a replica function: has `function` called once all replicas of the task have come through the
 * step and it counts, in the replica's thread, before cadre_run returns; several in the order of
 * these calls. It is not called in a step that fails, or that is taken over from other tasks with
 * their variables. For updates of large variables, from gradients that lie in memory of the
 * program: `user` and what it reads live until cadre_run returns. Every replica must write the
 * same. INVALID_ARGUMENT: `function` is NULL. RESOURCE_EXHAUSTED: more than 8 in a step.
 * FAILED_PRECONDITION outside of a replica function. */
CADRE_API cadre_status cadre_on_apply(
    cadre_replica *replica, cadre_apply_function function, void *user);

#ifdef __cplusplus
}
#endif
#endif
