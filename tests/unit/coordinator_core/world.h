/* SPDX-License-Identifier: Apache-2.0
 * A small cluster of tasks and daemons that keep to the protocol, around one core and one job, and
 * what a store would have of it. A message is received at once; the test chooses the next event. */
#ifndef CADRE_TESTS_COORDINATOR_CORE_WORLD_H
#define CADRE_TESTS_COORDINATOR_CORE_WORLD_H

#include "common/pure/prng.h"
#include "tests/unit/coordinator_core/watch.h"

#define SECOND  UINT64_C(1000000)
#define WORKERS 4
#define SLOTS   3
#define STEPS   40

enum attempt { /* of a process, as its daemon has it */
    NOT_THERE = 0,
    STARTED,
    SENT_HELLO,
    WARM,
    JOINS,
    RUNS,
    FREEZES,
    FROZEN,
    EXITS,
    EXITED,
    COLLECTED
};

struct process {
    enum attempt attempt;
    struct task_ref ref;
    uint32_t worker;
    struct generation generation;
    uint64_t position;
    uint64_t released;
    uint64_t notified; /* arrived; POSITION_NONE: not in this generation */
    uint64_t sent_applied_count;
    enum report_reason reason;
    struct task_exit exit;
};

/* What a store would have. */
struct stored {
    struct core_restore_job job;
    struct core_restore_task tasks[SLOTS];
    uint64_t synced; /* the watermark that also a machine that died has */
};

struct world {
    const struct core_options *options;
    struct stored stored;
    void *memory;
    struct core *core;
    struct watch *watch;
    struct prng prng;
    uint64_t now_us;
    uint64_t link_last;
    uint64_t links[WORKERS];
    uint64_t boots[WORKERS];
    struct process processes[64];
    uint32_t faults;
    uint64_t generations;
    bool ended;
};

/* One event, and all that follows of it. */
void world_step(struct world *world, struct core_event event);
/* A message of an agent. */
void world_up(struct world *world, uint32_t worker, const struct agent_up *message);
/* A record, into what the store has. */
void world_keep(struct world *world, const struct core_record *record);
/* An action of the core. */
void world_receive(struct world *world, const struct core_action *action);

/* One thing that the task, or its daemon for it, does next. */
void process_act(struct world *world, struct process *process);
/* The task's hello. */
void process_send_hello(struct world *world, const struct process *process);
/* The task's report, if it is frozen. */
void process_send_report(struct world *world, const struct process *process);
/* The task's join. */
void process_send_join(struct world *world, const struct process *process);
/* The process exits with this code or signal. */
void process_exits(struct process *process, int32_t code, int32_t signal);

#endif
