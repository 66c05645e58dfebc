/* SPDX-License-Identifier: Apache-2.0
 * The state of an open strategy, and its parts. */
#ifndef CADRE_RUNTIME_STRATEGY_H
#define CADRE_RUNTIME_STRATEGY_H

#include <stdbool.h>
#include <stdint.h>

#include "cadre/collective.h"
#include "cadre/cross_device.h"
#include "cadre/input.h"
#include "cadre/replica.h"
#include "cadre/variable.h"
#include "common/base/error.h"
#include "worker/library/device/tensor_memory.h"
#include "worker/library/mesh/mesh.h"
#include "worker/library/runtime/strategy/device_list.h"
#include "worker/library/runtime/api/environment.h"
#include "worker/library/runtime/strategy/strategy_hooks.h"
#include "worker/library/runtime/strategy/step_state.h"
#include "worker/library/runtime/task/task.h"

enum strategy_kind {
    STRATEGY_ONE_DEVICE = 0,
    STRATEGY_MIRRORED,
    STRATEGY_MULTI_WORKER_MIRRORED,
    STRATEGY_CENTRAL_STORAGE, /* one storage of each variable; the computation is replicated */
    STRATEGY_PARAMETER_SERVER /* of a ps job's chief: one replica, and what the ps job adds */
};

/* How a strategy came to be. */
enum strategy_origin {
    STRATEGY_CONSTRUCTED = 0, /* a constructor made it for the program */
    STRATEGY_DEFAULT,         /* it is current outside of all scopes */
    STRATEGY_OF_WORKER        /* of a ps job's worker, for the functions that it runs: closures/ */
};

/* What this task has of the job's state. */
enum strategy_state {
    STATE_PRESENT = 0,
    STATE_WARM,    /* it came later: prepares alone until its program comes to a step, then joins */
    STATE_RESTORES /* the generation goes on from a checkpoint: variables begin with its values, and
                      its position is taken over when all of them are made */
};

struct device;
struct logical_devices;
struct merge;
struct outputs_part;
struct regroup_part;
struct state_part;
struct digests_part;
struct variables_part;
struct input_part;
struct neighbours_part;
struct summaries_part;
struct ps_job_state;
struct worker_strategy;

struct cadre_strategy {
    enum strategy_kind kind;
    enum strategy_origin origin;
    uint64_t number; /* of those that this process has made; unique */
    const struct environment *environment;
    struct strategy_hook_list hooks; /* of its parts */
    struct device_list devices;      /* of the local replicas */
    struct device_list parameter;    /* central storage: where variables are; else none */
    struct task *task;
    struct ps_job_state *ps_job;    /* of a ps job's chief; else NULL */
    struct worker_strategy *worker; /* STRATEGY_OF_WORKER; else NULL */
    struct mesh_listener *listener; /* NULL in a job of one task by hand */
    struct task_roster roster;      /* of the generation it is in; while warm: this task alone */
    struct mesh *mesh;
    struct device **mesh_devices; /* owned; of the local replicas; NULL: all are on the host */
    bool connected; /* all devices are: the mesh carries what is in their memory between them */
    enum strategy_state state;
    uint32_t warm_tasks; /* while warm: tasks of the job's generation */
    uint64_t layout;     /* counts how often the way of cutting batches has changed */
    uint32_t local_replicas;
    uint32_t replica_count;   /* of all tasks */
    uint32_t worker_replicas; /* of a ps job's chief: of each worker, for its closures; else 0 */
    uint32_t replica_first;   /* global id of local replica 0 */
    /* The memory that the replicas' devices copy batches from: mostly the host's. */
    enum tensor_memory_kind batch_memory;
    struct replica_pool *pool;
    struct hang_watch *hang_watch; /* NULL: of one local replica */
    cadre_replica *replicas;       /* [local_replicas] */
    struct step step;
    struct merge *merge;
    struct cadre_error failed; /* code not OK: final, returned by all that follows */
    bool left;                 /* the job left its machines: `failed` has that, and is no fault */
    struct cadre_error undone; /* by hand, code not OK: of a step that none has followed */
    /* What each part keeps is its own (strategy/strategy_hooks.h). */
    struct regroup_part *regroup;
    struct devices_part *devices_part;
    struct collectives_part *collectives;
    struct reductions_part *reductions;
    struct variables_part *variables;
    struct input_part *input;
    struct neighbours_part *neighbours;
    struct summaries_part *summaries;
    struct state_part *state_part;
    struct digests_part *digests;
    struct outputs_part *outputs;
    struct preemption *preemption;
    uint64_t random_key; /* of the random streams, if not the position; 0: by that */
    bool changes;        /* a variable between steps: a step of its own, not of the loop */
    bool catching_up;    /* it joined, and its program has not come to its first step */
};

/* The devices of its variables. */
const struct device_list *strategy_parameter_devices(const cadre_strategy *strategy);

/* CADRE_OK, or the final failure: every function that uses the mesh calls it first. */
cadre_status strategy_check(const cadre_strategy *strategy, struct cadre_error *error);

/* A call of the program's that has the strategy to itself: until it is left, calls of other threads
 * and of functions of the program that it calls are refused. {0}: has none. It is left where the
 * variable goes out of scope. */
struct strategy_call {
    uint32_t registry_slot; /* of the strategy among the open ones, from 1 on */
};
#define STRATEGY_CALL __attribute__((cleanup(strategy_leave))) struct strategy_call
/* Ends the call; nothing when it has no strategy. */
void strategy_leave(struct strategy_call *call);

/* Names what the current call does from now on (a string that stays), in the errors of calls that
 * are refused meanwhile. Returns the former name. */
const char *strategy_set_activity(const cadre_strategy *strategy, const char *what);

/* Every public `function` of cross-replica context calls it first: it checks the context, that the
 * strategy is open (never reading the memory of one that is not), that no other strategy's scope,
 * no running step and no other call is in the way, and that it has not failed. On success `call`
 * has it. */
cadre_status strategy_enter(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* The same, also for a strategy that has failed. */
cadre_status strategy_require(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* The same, for a function that runs no step and may be called inside a merge call or an update of
 * a running one too. There it is a part of that call, and `call` stays empty. */
cadre_status strategy_require_inside(const cadre_strategy *strategy, const char *function,
    struct strategy_call *call, struct cadre_error *error);

/* The same as strategy_enter for a function that only reads what no call changes but a step: it may
 * be called by a function of the program in any call outside of steps. */
cadre_status strategy_enter_readonly(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* Makes any error final, without repair. Returns the code. */
cadre_status strategy_set_failed(cadre_strategy *strategy, struct cadre_error *error);

/* Whether a peer or the coordinator is the reason of `code` of a collective or a wait: then
 * strategy_regroup follows, else strategy_fail. */
bool strategy_is_peer_failure(cadre_status code);

/* Whether the calling thread is a worker of a ps job by hand, and this its chief's strategy. */
bool strategy_is_on_worker(const cadre_strategy *strategy);

/* Whether `function` may be called with the strategy of a ps job's worker, in this thread;
 * FAILED_PRECONDITION. */
cadre_status strategy_allowed_on_worker(
    const cadre_strategy *strategy, const char *function, struct cadre_error *error);

/* Whether this task does not hold the job's whole state yet: it joins, or restores. */
bool strategy_is_warm(const cadre_strategy *strategy);

/* Whether this task joined others that are before a step, and its program is on its way there: what
 * it still does before that step they have done, in the state that it received from them. So it
 * does not meet them, and changes nothing. */
bool strategy_is_catching_up(const cadre_strategy *strategy);

/* The strategy of functions without a strategy argument: that of the context, the scope or the
 * process (scope.h), or the only one that is open. NULL: there is none. */
cadre_strategy *strategy_current(void);

/* Whether it is the default strategy; never reads its memory. Any thread. */
bool strategy_is_default(const cadre_strategy *strategy);

/* Whether it is open. Never reads its memory: it may be NULL, or freed. Any thread. */
bool strategy_is_registered(const cadre_strategy *strategy);

/* The rank of this process's task now, or of its last strategy; 0 before the first. A warm task's
 * is the one after all others. */
uint32_t strategy_rank(void);
/* The rank of this strategy's task. */
uint32_t strategy_rank_of(const cadre_strategy *strategy);

/* Tasks of the job, for the program: a warm one counts itself in. */
uint32_t strategy_tasks(const cadre_strategy *strategy);

/* Steps applied. */
uint64_t strategy_position(const cadre_strategy *strategy);

/* The key of the random streams of the step at `position`. */
uint64_t strategy_random_key(const cadre_strategy *strategy, uint64_t position);

#endif
