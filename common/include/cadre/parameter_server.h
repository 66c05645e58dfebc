/* SPDX-License-Identifier: Apache-2.0
 * Training with parameter servers: variables are held centrally, by tasks that do nothing else;
 * workers run closures that the chief schedules. (tf.distribute.ParameterServerStrategy, V2.)
 *
 *     chief      the program: creates variables,           cadre/cluster_coordinator.h
 *                schedules closures, saves
 *
 *     worker     runs closures, one at a time, each on     cadre_serve
 *                all of its replicas (`--replicas`)
 *
 *     ps         holds variables (cadre/served.h)          cadre_serve
 *
 *     evaluator  reads variables now and then,             cadre_next_evaluation
 *                tells how good they are
 *
 * One executable is all of them, byte for byte: a task with another one ends the job, with
 * FAILED_PRECONDITION, which names it. What is to run on workers is registered by name before:
 *
 *     cadre_init(&argc, &argv);
 *     cadre_function_register("train_step", train_step, NULL);
 *     if (cadre_task_serves()) {
 *         return cadre_serve();
 *     }
 *     cadre_strategy_parameter_server(NULL, &strategy);
 *
 * Jobs have these tasks with `cadre submit --strategy parameter_server --workers 2 --ps 2`, with
 * `cadre run` likewise, or by TF_CONFIG (jobs "chief", "worker", "ps", "evaluator"). A program that
 * is started by hand is all of them in one process: CADRE_SERVERS servers and CADRE_WORKERS workers
 * (1 each) are threads of it. */
#ifndef CADRE_PARAMETER_SERVER_H
#define CADRE_PARAMETER_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/strategy.h"
#include "cadre/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a task of a job does. (The task types of TF_CONFIG.) */
typedef enum cadre_task_type {
    CADRE_TASK_REPLICA = 0, /* of a job without parameter servers */
    CADRE_TASK_CHIEF,
    CADRE_TASK_WORKER,
    CADRE_TASK_PS,
    CADRE_TASK_EVALUATOR
} cadre_task_type;

/* What this task is; after cadre_init, any thread. By hand: CADRE_TASK_REPLICA until there is a
 * strategy with parameter servers, then CADRE_TASK_CHIEF.
 * (tf.distribute.cluster_resolver.ClusterResolver.task_type.) */
CADRE_API cadre_task_type cadre_task_type_of(void);

/* Which task of its type this one is, from 0; after cadre_init, any thread.
 * (tf.distribute.cluster_resolver.ClusterResolver.task_id.) */
CADRE_API uint32_t cadre_task_index(void);

/* Whether it is a worker or a ps: cadre_serve is then all that its program does. */
CADRE_API bool cadre_task_serves(void);

/* Serves until the chief is done: a worker runs closures, a ps holds variables. Returns what main
 * should return: 0, or 1 after printing why not. In other tasks it says that they have nothing to
 * serve, and returns 1. (tf.distribute.Server.join.) */
CADRE_API int cadre_serve(void);

/* By which rule a variable is cut into shards. */
typedef enum cadre_partitioner_kind {
    CADRE_PARTITIONER_NONE = 0, /* each variable whole, on one server */
    CADRE_PARTITIONER_FIXED,    /* FixedShardsPartitioner: `shards` */
    CADRE_PARTITIONER_MIN_SIZE, /* MinSizePartitioner: `bytes` (0: 256 KiB), at most `shards` (0: 1)
                                 */
    CADRE_PARTITIONER_MAX_SIZE, /* MaxSizePartitioner: `bytes`, at most `shards` (0: any number) */
    CADRE_PARTITIONER_FUNCTION
} cadre_partitioner_kind;

/* Writes into how many pieces each axis is cut: `rank` numbers, 1 for all but the first. A failure
 * is that of the variable's creation. */
typedef cadre_status (*cadre_partitioner_function)(
    cadre_dtype dtype, uint32_t rank, const int64_t *dims, int64_t *ret_pieces, void *user);

/* How variables are cut into shards. INVALID_ARGUMENT where a number is 0 that must not be.
 * (tf.distribute.experimental.partitioners.) */
typedef struct cadre_partitioner {
    cadre_partitioner_kind kind;
    uint64_t shards;
    uint64_t bytes;
    cadre_partitioner_function function;
    void *user;
} cadre_partitioner;

/* How variables are cut into shards, and how long a lost server is waited for. Zeroed: no
 * partitioner, the defaults. */
typedef struct cadre_parameter_server_options {
    cadre_partitioner partitioner;
    /* How long a server that was lost is waited for, in seconds; 0: 120. */
    uint32_t server_patience_s;
} cadre_parameter_server_options;

/* The chief's strategy: one replica on CPU:0. cadre_run with it runs there, and a warning says so
 * once: what is to run on the replicas of workers calls cadre_run in a closure, with the worker's
 * own strategy. cadre_strategy_num_replicas_in_sync is R, the replicas of one worker
 * (cadre/cluster_coordinator.h). Waits until the servers are there. In a job that was
 * submitted with another strategy, in a worker, a ps, in a cluster with ps tasks but no chief or no
 * worker: FAILED_PRECONDITION, which says what to do instead.
 * (tf.distribute.ParameterServerStrategy.) */
CADRE_API cadre_status cadre_strategy_parameter_server(
    const cadre_parameter_server_options *options, cadre_strategy **ret_strategy);

/* The evaluator's loop: waits until `interval_s` seconds have passed since the last call returned
 * (not before the first) and pushes were applied since, to any variable, or the chief has done a
 * step; then true, with how many steps (joins) that are as far as is known. True once more when the
 * chief is done and something has changed since, for servers stay until the evaluator has left;
 * then false: main returns cadre_evaluator_finish(). In other tasks it is false at once. An
 * evaluator finds variables by name and reads them, and has no strategy.
 * (tf.keras.utils.SidecarEvaluator, of the variables themselves.) */
CADRE_API bool cadre_next_evaluation(double interval_s, uint64_t *ret_step);

/* Reports a number of this evaluation, as cadre_report does: `cadre job` and `cadre submit` show it
 * beside the training's. Of a submitted job each value is kept in the curve evaluation_NAME, at the
 * step that cadre_next_evaluation returned: `cadre metrics`. The newest value of a step counts, and
 * those of steps that were undone are removed; an evaluator that is started again goes on. For
 * TensorBoard it is a run of its own, in events/eval (cadre/summary.h). Names are 1 to 116
 * printable ASCII characters without <, > and & (INVALID_ARGUMENT); at most 16 (RESOURCE_EXHAUSTED,
 * also without memory). Outside of an evaluation: FAILED_PRECONDITION. (The summaries of
 * tf.keras.utils.SidecarEvaluator.) */
CADRE_API cadre_status cadre_report_evaluation(const char *name, double value);

/* What main should return: 0, or 1 after printing why not. */
CADRE_API int cadre_evaluator_finish(void);

#ifdef __cplusplus
}
#endif
#endif
