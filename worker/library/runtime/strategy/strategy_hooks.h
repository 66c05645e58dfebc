/* SPDX-License-Identifier: Apache-2.0
 * A part of a strategy takes part in its opening and closing, its steps, its generations. Each part
 * has a table with a function for each moment; strategy->hooks lists the tables once, from top to
 * bottom (lifecycle/hook_list.c), and step/ and regroup/ go over that list and name no part. A part
 * may use those beneath it, and is called by none of them.
 *
 *     what begins a step goes down the list: the datasets first, the devices last
 *     what ends it comes up: devices are at rest before variables get their old values
 *
 * NULL: the part does nothing then. All but `exit`, `bind`, `returned`, `diverged`, `complete`,
 * `digest`, `compare_layout` and `pass` are called in the program's thread, with no replica
 * running. */
#ifndef CADRE_RUNTIME_STRATEGY_HOOKS_H
#define CADRE_RUNTIME_STRATEGY_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/replica.h"
#include "common/base/error.h"
#include "common/model/task_message.h"
#include "worker/library/runtime/strategy/step_state.h"

struct member_status;
struct sync_decision;

/* The point of the program's loop, by its calls: its changes of registered state come between
 * these. */
enum loop_point {
    LOOP_BETWEEN_STEPS = 0, /* outside of the next two */
    LOOP_IN_NEXT,           /* in cadre_next, with a batch for the step at the position */
    LOOP_IN_RUN             /* in cadre_run, with that step */
};

/* A step that the program has ordered, from its first attempt until it is applied. */
struct step_order {
    cadre_strategy *strategy;
    uint64_t position;
    cadre_per_replica *input; /* a batch, or other values; NULL: none */
    cadre_per_replica *batch; /* the input, if it is a batch; else NULL */
    bool consumes;            /* the batch, which was not run before */
    uint32_t n_outputs;
    cadre_per_replica **values;      /* [n_outputs] for its outputs; NULL once they are lent */
    cadre_per_replica **ret_outputs; /* the program's array for them */
    uint32_t stream;                 /* of its input; 0: none */
    struct step_consumption own;     /* of this task; the datasets fill it in, in `begin` */
    struct consumption
        consumption; /* of the epoch with it, once it is applied; likewise in `commit` */
};

/* What is passed on when a generation forms, for one task. */
struct sync_plan {
    uint32_t source; /* the rank that has it */
    bool gives;      /* this task is that */
    bool state;      /* a member lacks the state ... */
    bool step;       /* ... or was frozen in the step before it, and gets its outputs */
    bool takes_state;
    bool takes_step;
};

/* How a task takes over a state that was another's, or a checkpoint's. */
enum install_mode {
    INSTALL_ADOPTED_STEP, /* it was frozen in the step before, and its program goes on */
    INSTALL_JOINED        /* it is a joiner: its program re-enters the job at its position */
};

struct strategy_hooks {
    const char *name;

    /* --- opening and closing --- */

    /* Up the list, before there is a task, a mesh or a thread of a replica. */
    cadre_status (*open)(cadre_strategy *strategy, struct cadre_error *error);
    /* Down: ends what it does, while mesh and task are still open. Also of one not opened. */
    void (*close)(cadre_strategy *strategy);
    /* Down: frees what it holds. Mesh and task are closed. Also of one not opened. */
    void (*free)(cadre_strategy *strategy);
    /* The process ends by exit(), and the strategy has not been closed. Any thread, whatever the
     * program's thread does meanwhile. */
    void (*exit)(cadre_strategy *strategy);

    /* --- a step --- */

    /* The arguments of the program; INVALID_ARGUMENT, FAILED_PRECONDITION: it was misused. */
    cadre_status (*check)(const struct step_order *order, struct cadre_error *error);
    /* The program's loop is at this point. `reached`: for sure; else it has called cadre_next, and
     * whether there is a batch is not determined yet. */
    void (*loop_point)(cadre_strategy *strategy, enum loop_point loop_point, bool reached);
    /* A step may begin here, or the job stops for good: then an error, which is final. */
    cadre_status (*halt)(cadre_strategy *strategy, struct cadre_error *error);
    /* The generation may pause before the step, because a task joins or leaves: nothing of the step
     * is left. An error as that of the step. */
    cadre_status (*before_pause)(cadre_strategy *strategy, struct cadre_error *error);
    /* Down: an attempt begins. An error is the program's own failure. */
    cadre_status (*begin)(struct step_order *order, struct cadre_error *error);
    /* Down, in the replica's thread: before its function, and before other functions of the program
     * that are called there. */
    cadre_status (*bind)(const cadre_replica *replica, struct cadre_error *error);
    /* Up, in the replica's thread: its function has returned; `failure` NULL: OK. */
    void (*returned)(cadre_replica *replica, const struct cadre_error *failure);
    /* In the replica's thread, in a collective that all replicas are in: the digests that they sent
     * in it differ. Always an error, the same on all of them. */
    cadre_status (*diverged)(cadre_replica *replica, struct cadre_error *error);
    /* Down, in the replica's thread: its function and what came before returned OK. What is left to
     * do before the step can be applied. */
    cadre_status (*complete)(cadre_replica *replica, struct cadre_error *error);
    /* Whether the replica's failure is one of its own, whatever else failed with it. */
    bool (*is_cause)(const cadre_replica *replica);
    /* Up: the step is applied. Cannot fail. */
    void (*commit)(struct step_order *order);
    /* Up: the attempt does not count. `aborted`: the mesh was, for a replica that failed. False:
     * the process cannot go on, and *cause has that after its former text. */
    bool (*undo)(cadre_strategy *strategy, bool aborted, struct cadre_error *cause);
    /* Up: others had applied the step, and the state after it came from them. INVALID_ARGUMENT:
     * they ran another one. */
    cadre_status (*adopt)(struct step_order *order, struct cadre_error *error);
    /* The step is applied, here or by others, and the coordinator has the report. */
    void (*report)(const struct step_order *order);

    /* On a replica, outside of steps: the digest of its state, to be compared with those of all
     * others. Stays 0: there is no comparison. */
    cadre_status (*digest)(
        cadre_strategy *strategy, uint32_t local, uint64_t *ret_digest, struct cadre_error *error);

    /* --- a generation --- */

    /* It is over for this task, which is about to report that to the coordinator. */
    void (*generation_end)(cadre_strategy *strategy);

    /* Fills in its own fields of this task's status. */
    void (*fill_status)(const cadre_strategy *strategy, struct member_status *member_status);
    /* The statuses of all members, by rank. The generation may still not come about. */
    void (*members)(cadre_strategy *strategy, const struct member_status *statuses, uint32_t count);
    /* On every replica: the state of `rank` has another layout than that of some members that are
     * to receive it. CADRE_OK: they have less, and will make the rest; else why it does not fit.
     * `differs`: this task's is another one. */
    cadre_status (*compare_layout)(cadre_strategy *strategy, uint32_t local, uint32_t rank,
        bool differs, struct cadre_error *error);
    /* At rank 0 of a job that goes on from a checkpoint: loads what its program does not hold. */
    cadre_status (*load)(cadre_strategy *strategy, struct cadre_error *error);
    /* Down: prepares what this task gives or takes. What it takes is kept beside what it has. */
    cadre_status (*prepare)(
        cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
    /* Down, on every replica of every task: passes it on. */
    cadre_status (*pass)(cadre_strategy *strategy, uint32_t local,
        const struct sync_plan *sync_plan, struct cadre_error *error);
    /* A joiner has received the state of `rank`. In every task. */
    cadre_status (*joined)(cadre_strategy *strategy, uint32_t rank, struct cadre_error *error);
    /* Up: checks what was taken, which may be malformed. */
    cadre_status (*read)(
        cadre_strategy *strategy, const struct sync_plan *sync_plan, struct cadre_error *error);
    /* Up: what was taken, or loaded, is this task's from now on. */
    cadre_status (*install)(
        cadre_strategy *strategy, enum install_mode install_mode, struct cadre_error *error);
    /* Up, at the end of each synchronization: frees what was prepared. What was taken and not
     * installed is undone. */
    void (*cleanup)(cadre_strategy *strategy);
    /* Down: the generation has begun, and may have another layout than the one before. */
    cadre_status (*reopen)(cadre_strategy *strategy, struct cadre_error *error);
};

#define STRATEGY_HOOK_COUNT                                                                        \
    ((sizeof(struct strategy_hooks) - offsetof(struct strategy_hooks, open)) /                     \
        sizeof(void (*)(void)))

/* The tables of the parts, from top to bottom, and for each moment which have it: bit i is
 * tables[i]. A step calls only those. */
struct strategy_hook_list {
    const struct strategy_hooks *const *tables;
    uint32_t having[STRATEGY_HOOK_COUNT];
};

#endif
