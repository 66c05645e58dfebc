/* SPDX-License-Identifier: Apache-2.0
 * The state of the strategy that lives in this process, and the parts that make it up. */
#ifndef CADRE_RUNTIME_STRATEGY_H
#define CADRE_RUNTIME_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "cadre/variable.h"
#include "common/base/error.h"
#include "worker/mesh/mesh.h"
#include "worker/runtime/environment.h"
#include "worker/runtime/replica_pool.h"
#include "worker/runtime/reports.h"
#include "worker/runtime/step.h"
#include "worker/runtime/task.h"

struct cadre_strategy {
    const struct environment *environment;
    struct task *task;
    struct mesh_listener *listener; /* NULL in a job of one task by hand */
    struct task_roster roster;      /* of the generation it is in */
    struct mesh *mesh;
    uint32_t local_replicas;
    uint32_t replica_count; /* of all tasks */
    uint32_t replica_first; /* global id of local replica 0 */
    struct replica_pool *pool;
    cadre_replica *replicas; /* [local_replicas] */
    struct step step;
    struct cursor cursor; /* what the task core was told last */
    uint64_t cursor_end;
    struct cadre_error failed;  /* code not OK: final, given by all that follows */
    cadre_variable **variables; /* in order of creation */
    uint32_t variable_count;
    uint32_t variable_capacity;
    cadre_distributed_dataset **datasets; /* in order of creation: stream 1, 2, ... */
    uint32_t dataset_count;
    uint32_t dataset_capacity;
    cadre_per_replica *outputs[CADRE_OUTPUTS_MAX]; /* of the last run: lent to the program */
    uint32_t output_count;
    struct reports reports;
    struct checkpointer *checkpointer;
    struct registered_state *registered; /* in order of registration */
    uint32_t registered_count;
    uint64_t serial_last; /* of epochs begun, over all datasets */
};

/* CADRE_OK, or the final failure: what every function that needs the mesh asks first. */
cadre_status strategy_check(const cadre_strategy *strategy, struct cadre_error *error);

/* What every public `function` of cross-replica context asks first: that it is called there, with
 * the strategy that lives (never looks into another one), and that this one has not failed. */
cadre_status strategy_enter(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* The same without the question whether it has failed. */
cadre_status strategy_require(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* Makes `error` final and tells the coordinator; an error that only this process knows of, in a job
 * of one task, is repaired instead: its mesh is formed anew. Returns the code. */
cadre_status strategy_fail(cadre_strategy *strategy, struct cadre_error *error);

/* Calls `function` for each local replica, in their threads, outside of steps: for collectives of
 * the library itself. It returns the first failure, CADRE_ABORTED last. */
typedef cadre_status (*strategy_function)(
    cadre_strategy *strategy, uint32_t local, void *user, struct cadre_error *error);
cadre_status strategy_each_replica(
    cadre_strategy *strategy, strategy_function function, void *user, struct cadre_error *error);

/* The strategy that lives, or NULL. */
cadre_strategy *strategy_current(void);

/* Whether it is the one that lives. Never looks into it: it may be NULL, or gone. */
bool strategy_lives(const cadre_strategy *strategy);

/* The rank of the strategy that lives or lived last; 0 before the first. */
uint32_t strategy_rank(void);

/* Steps applied. */
uint64_t strategy_position(const cadre_strategy *strategy);

#endif
