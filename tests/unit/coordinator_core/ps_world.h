/* SPDX-License-Identifier: Apache-2.0
 * A ps job on a small cluster whose daemons and tasks keep to the protocol: the state of each of
 * them, and of the store. An action is received at once; see test_ps_world.c for the faults. */
#ifndef CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_WORLD_H
#define CADRE_TESTS_UNIT_COORDINATOR_CORE_PS_WORLD_H

#include "common/pure/prng.h"
#include "coordinator/core/core.h"
#include "worker/library/ps/server/backup_record.h"

#define WORKERS  4
#define TASKS    6
#define ATTEMPTS 64

#define INCARNATIONS 4096

enum attempt_state { NOT_THERE = 0, STARTED, HERE, EXITED, NOTIFIED, COLLECTED };

/* One process of a task, as its daemon has it. */
struct attempt {
    enum attempt_state state;
    struct task_ref ref;
    uint32_t worker;
    struct task_exit exit;
    struct generation generation; /* the only one that it has received */
    bool planned;                 /* the chief */
    struct task_member members[TASKS];
    size_t member_count;
};

/* What a server holds of the one before. */
struct ps_copy {
    bool whole;
    uint64_t memory;
    uint64_t value;
    uint64_t of;       /* the newest incarnation that took it or filled it */
    uint64_t attached; /* that changes it; 0: none */
};

/* Of an incarnation; its memory may outlive it. ps_servers.h */
struct ps_server {
    uint64_t predecessor;
    uint32_t worker;
    bool dropped;    /* its daemon was started again, and keeps nothing of it */
    uint64_t memory; /* 0: it has not begun */
    uint64_t value;
    uint64_t with; /* the server whose copy has all of it; 0: none */
    struct generation generation;
    struct task_backed notified;
    struct backup_record backup_record;
    struct ps_copy copy;
};

/* Of a slot. */
struct ps_answered {
    uint64_t memory;
    uint64_t value;  /* changes in it that were answered */
    uint64_t holder; /* the newest incarnation that has it */
};

struct ps_world {
    void *memory;
    struct core *core;
    struct core_actions actions;
    struct prng prng;
    uint64_t now_us;
    uint64_t link_last;
    uint64_t links[WORKERS]; /* 0: down */
    uint64_t boots[WORKERS];
    struct attempt attempts[ATTEMPTS];
    struct core_restore_job stored;
    struct core_restore_task tasks[TASKS];
    struct task_member newest[TASKS]; /* of each slot, as it was last sent */
    uint64_t newest_generation[TASKS];
    uint32_t greets; /* 1 and a worker whose hello is being answered */
    uint64_t seed;
    bool ended;
    enum job_state end;
    unsigned restarts; /* of the coordinator */
    unsigned notified;
    unsigned taken_over; /* incarnations of servers that found their memory */
    struct ps_server servers[INCARNATIONS];
    struct ps_answered answered[TASKS];
    uint64_t memory_last;
    unsigned answers;
    unsigned promoted; /* copies that were taken */
    unsigned empty;    /* incarnations that found neither */
};

static const struct job_id job = {1};

extern const struct core_job_spec ps_world_spec;

/* False once the job is gone. */
bool ps_world_view(const struct ps_world *world, struct core_job_view *ret_view);
/* NULL: it is not known any more. */
struct attempt *ps_world_attempt(struct ps_world *world, struct task_ref ref);
/* Nothing changes when it has ended before. */
void attempt_end(struct attempt *attempt, int32_t code, int32_t signal);

/* The core takes the event; its actions are stored, then received, until it has nothing to do. */
void ps_world_step(struct ps_world *world, struct core_event event);

/* A message of daemon `w`, or one that it relays for a task; lost without a link. */
void ps_world_up(struct ps_world *world, uint32_t w, const struct agent_up *message);
/* A message of a task, which its daemon relays. */
void ps_world_relay(
    struct ps_world *world, const struct attempt *attempt, const struct task_up *message);
/* The task's hello, relayed. */
void ps_world_hello(struct ps_world *world, const struct attempt *attempt);
/* The task's exit, or that it was collected; from its daemon. */
void ps_world_end(struct ps_world *world, const struct attempt *attempt, bool collected);

#endif
