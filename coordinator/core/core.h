/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's core: a pure, deterministic state machine. core_step() takes one event and
 * appends a bounded list of actions. It reads no clock, draws no randomness but from the seed in
 * its options, allocates nothing after core_init() and makes no system calls. The engine
 * (coordinator/engine) carries the actions out in this order: it makes all records of a turn
 * durable, then it sends the messages and answers (protocol, section 4). The core removes a job
 * when it ends; the engine keeps the list of ended jobs.
 *
 * Streams break. On a new stream of the same daemon (same boot nonce) both sides send their newest
 * state again: the agent lists every task it still holds and, after the welcome, repeats what was
 * not acknowledged, among it the hellos of its connected tasks; the core repeats start and stop,
 * and answers a repeated hello with the task's current state. All messages are cumulative or carry
 * an incarnation, so a repetition changes nothing (protocol, rule 19).
 *
 * Strings in events are borrowed for the call. No action points into the core or into the event. */
#ifndef CADRE_COORDINATOR_CORE_H
#define CADRE_COORDINATOR_CORE_H

#include <stddef.h>

#include "common/model/agent_message.h"
#include "common/model/record.h"

/* One stream of one agent. Numbered by the engine from 1, never used again. */
struct link_id {
    uint64_t n;
};

/* A client's pending call. The engine's number; returned in the one answer. 0: no call waits. */
struct call_id {
    uint64_t n;
};

struct core_limits {
    uint32_t workers_max; /* known worker daemons, connected or within their lease */
    uint32_t jobs_max;    /* live jobs */
    uint32_t tasks_max;   /* of all live jobs together */
};

struct core_options {
    struct core_limits limits;
    uint64_t seed; /* nonces of generations are drawn from it */
    /* A worker that sends nothing for so long is lost, with those of its tasks whose jobs a worker
     * that still sends can continue. */
    uint64_t lease_us;
    /* The other tasks are lost after this time, or after agent_hello.orphan_us if that is less,
     * because then their worker ends them itself; a value below the lease counts as the lease. */
    uint64_t rewind_us;
    /* SIGTERM to SIGKILL when a job is stopped. Also how long the other tasks of a job have to
     * follow one that exited with status 0 before cadre_finish; then the job fails. */
    uint64_t grace_us;
    uint64_t collect_us; /* after the last task has exited: longest wait for logs and outputs */
    /* From when all tasks run and one has said hello until all have said it; then the job fails and
     * names the missing. */
    uint64_t form_us;
    /* From an abort until all members have reported their positions; those that have not are lost,
     * and their processes are ended (protocol, rule 21). */
    uint64_t report_us;
    uint64_t wait_us;  /* default of jobs: how long with fewer than the fewest tasks */
    uint64_t stall_us; /* default of jobs: when a task that all wait for is replaced */
    /* A step that takes this many times the median of the job's steps, and at least slow_us, is
     * shown as slow. */
    uint32_t slow_factor;
    uint64_t slow_us;
    /* Shortest time between two MEMBERS messages of a ps job, for each of its tasks: changes in
     * between are sent together. A new generation is sent at once. */
    uint64_t members_us;
    /* Jobs are removed when they end: texts do not suggest `--restore` with their number. */
    bool forgets_jobs;
};

/* Bytes that core_init needs for these limits; alignment of max_align_t. */
size_t core_bytes(const struct core_limits *limits);

struct core;
/* Builds a core in `memory` of core_bytes(), which the caller owns and keeps; nothing to close. */
struct core *core_init(void *memory, const struct core_options *options);

/* ---- events ---- */

enum core_event_type {
    CORE_EVENT_TICK = 1, /* time passed: deadlines, work left over from a full action list */
    CORE_EVENT_SUBMIT,   /* answered with the job's id, or RESOURCE_EXHAUSTED */
    CORE_EVENT_CANCEL,   /* answered at once: OK, NOT_FOUND, FAILED_PRECONDITION (ended already) */
    /* The state is saved at the next step that no task has begun, and the training goes on.
     * Answered at once: OK; NOT_FOUND; FAILED_PRECONDITION (no generation runs now). It is not
     * recorded. */
    CORE_EVENT_CHECKPOINT,
    CORE_EVENT_CHECKPOINT_DAMAGED, /* a published one cannot be read any more */
    /* A client's: the worker of this name gets no tasks, as after AGENT_UP_DRAINING, but its daemon
     * stays; or the end of such a drain. It is recorded, and applies to every daemon of the name
     * until it ends. Answered at once: OK, NOT_FOUND, RESOURCE_EXHAUSTED. */
    CORE_EVENT_DRAIN,
    CORE_EVENT_AGENT_UP,  /* anything but AGENT_UP_LOG, which the engine handles itself. A hello
                             opens the link. */
    CORE_EVENT_LINK_DOWN, /* the stream ended; the lease runs on, the agent may come back with the
                             same boot nonce */
    CORE_EVENT_RESTORE_DRAIN,   /* at start, before anything else: a drain found in the store */
    CORE_EVENT_RESTORE_CULPRIT, /* likewise */
    CORE_EVENT_RESTORE_JOB,     /* then: a live job found in the store */
    CORE_EVENT_RESTORE_DONE     /* no more follow */
};

struct core_submit {
    struct call_id call;
    struct core_job_spec spec;
    bool restores; /* goes on from this checkpoint of another job: */
    struct core_checkpoint checkpoint;
    const char *note; /* for the answer, and for the job's text until there is another; or NULL */
};

struct core_drain {
    struct call_id call;
    bool ends; /* the worker takes tasks again */
    struct core_drained drained;
};

struct core_cancel {
    struct call_id call;
    struct job_id job;
};

struct core_checkpoint_now {
    struct call_id call;
    struct job_id job;
};

/* One task that was placed, as recorded in the store. */
struct core_restore_task {
    uint32_t slot;
    uint64_t incarnation; /* its newest */
    uint32_t rank;        /* in the newest plan; UINT32_MAX: not in it */
    bool gone;            /* its exit is recorded */
    bool lost;            /* its worker was lost: recorded as LOST */
    uint32_t attempts;    /* of a ps job: how often the slot was started in the generation ... */
    uint64_t attempts_generation; /* ... of this number */
    struct task_backed backed;
    char worker[LIMIT_NAME_BYTES];
};

/* A live job of the store; given in ascending order of ids. A queued job is queued again. A started
 * one goes on: its tasks compute meanwhile, and are adopted when their agents say hello; those that
 * no agent has listed after a lease are lost, and the job regroups. A job that no longer fits the
 * limits ends as FAILED with that reason. Pointers are borrowed. */
struct core_restore_job {
    struct job_id job;
    struct core_job_spec spec;
    bool started;    /* false: it is queued, for the first time or (with a generation) again */
    uint64_t ran_us; /* since it was placed first, by the wall clock; 0: never */
    uint64_t incarnation_max; /* highest that was given out */
    uint32_t restarts;
    struct generation generation; /* of the newest plan; number 0: none yet */
    uint32_t roster;              /* members of it; 0: as many as `tasks` name */
    uint64_t resume;              /* of that plan */
    uint64_t released;            /* of the newest watermark of that generation, else resume */
    struct cursor cursor;         /* of that watermark */
    bool has_control;             /* a halt is recorded for this generation: */
    uint64_t halt_at;
    enum halt_kind halt_kind;
    uint32_t halt_stream;
    bool done; /* bye was sent, at: */
    uint64_t done_position;
    bool ending; /* it was being stopped: */
    struct core_ending ending_as;
    bool has_checkpoint;
    struct core_checkpoint checkpoint;
    struct core_position published; /* sent as published, and lost later */
    struct verified verified;       /* as recorded last */
    struct core_position diverged;  /* where states were found to differ last */
    const struct core_restore_task *tasks;
    size_t task_count;
    const struct stream_position *streams; /* of the epochs that are known, newest of each stream */
    size_t stream_count;
};

/* Found by the engine, which keeps the lists of checkpoints. The previous checkpoint counts at
 * once; tasks that were started to go on from the damaged one are started again. */
struct core_checkpoint_damaged {
    struct job_id job;
    uint64_t position;
    bool is_origin;       /* another job's, which this one goes on from */
    struct job_id source; /* that one; 0: not known */
    bool has_previous;    /* the newest of the same job that is older: */
    struct core_checkpoint previous;
    const char *why;
    const char *remedy; /* of an origin with nothing before it: what its job still has */
};

struct core_restore_done {
    uint64_t job_max; /* the highest id ever given out: ids are never used again */
};

struct core_event {
    enum core_event_type type;
    uint64_t now_us; /* monotonic; never less than in an earlier event */
    union {
        struct core_submit submit;
        struct core_cancel cancel;
        struct core_checkpoint_now checkpoint;
        struct core_checkpoint_damaged damaged;
        struct core_drain drain;
        struct {
            struct link_id link;
            const struct agent_up *up;
        } agent;
        struct link_id link_down;
        struct core_drained restore_drain;
        struct core_culprit restore_culprit;
        struct core_restore_job restore;
        struct core_restore_done restore_done;
    };
};

/* ---- actions ---- */

enum core_message {
    CORE_MESSAGE_PLAN = 1,
    CORE_MESSAGE_RELEASE,
    CORE_MESSAGE_ABORT,
    CORE_MESSAGE_GOODBYE,
    CORE_MESSAGE_MEMBERS,         /* to each connected task of the ps job */
    CORE_MESSAGE_GOODBYE_WORKERS, /* the chief is done: to connected workers and evaluators */
    CORE_MESSAGE_GOODBYE_SERVERS  /* and all of these have exited: to the servers */
};

enum core_action_type {
    CORE_ACTION_RECORD = 1,
    CORE_ACTION_ANSWER,    /* to the client's call */
    CORE_ACTION_WELCOME,   /* to an agent */
    CORE_ACTION_REFUSE,    /* to an agent; then the engine ends its stream */
    CORE_ACTION_START_JOB, /* start every task of the job, each through its agent's link */
    CORE_ACTION_STOP_JOB,  /* end every task of the job on every link that has one */
    /* End one that is not wanted (any more). It is also the answer to AGENT_UP_TASK_COLLECTED: the
     * agent may forget the task, so all ends of tasks that are recorded are durable before it. */
    CORE_ACTION_STOP_TASK,
    CORE_ACTION_NOTIFY_JOB,  /* to members of the generation: content by core_job_* when sent */
    CORE_ACTION_NOTIFY_TASK, /* RESET, SUPERSEDED, REFUSED or WARM to one task; the content of WARM
                              by core_job_stream when sent */
    CORE_ACTION_JOB_CHANGED, /* watchers may read it again */
    /* The core has removed it; all final values are in the records of this step. */
    CORE_ACTION_JOB_ENDED,
    /* Start the job's tasks on this link that are STARTING, as in START_JOB: replacements, and on
     * the link of an agent that came back. An agent ignores those that it has. */
    CORE_ACTION_START_TASKS,
    /* The job uses nothing any more that workers keep of its tasks: on this link, or (0) on all.
     * What is recorded of it is durable before. */
    CORE_ACTION_FORGET_JOB
};

struct core_action {
    enum core_action_type type;
    union {
        struct core_record record;
        struct {
            struct call_id call;
            cadre_status code;
            struct job_id job;
            uint32_t queued_before;
            char text[LIMIT_TEXT_BYTES];
        } answer;
        struct {
            struct link_id link;
            struct worker_id worker;
            uint32_t protocol; /* of the agent stream, on this link */
        } welcome;
        struct {
            struct link_id link;
            cadre_status code;
            char text[LIMIT_TEXT_BYTES];
        } refuse;
        struct job_id job; /* START_JOB, STOP_JOB, JOB_CHANGED, JOB_ENDED */
        struct {
            struct job_id job;
            struct link_id link;
        } start_tasks;
        struct {
            struct job_id job;
            struct link_id link;
        } forget_job;
        struct {
            struct link_id link;
            struct task_ref task;
        } stop_task;
        struct {
            struct job_id job;
            enum core_message message;
            struct generation generation;
            bool one; /* only to the task of `slot`, through `link`; else through every link */
            uint32_t slot;
            struct link_id link;
            char reason[LIMIT_TEXT_BYTES]; /* of abort */
        } notify_job;
        struct {
            struct link_id link;
            struct task_ref task;
            enum task_down_type type;
            cadre_status code;
            char text[LIMIT_TEXT_BYTES];
        } notify_task;
    };
};

/* A step appends at most this many actions; when more is due, core_wake_us() returns now_us. */
#define CORE_ACTIONS_PER_STEP_MAX 66

struct core_actions {
    struct core_action *items; /* the caller's array */
    size_t capacity;           /* at least CORE_ACTIONS_PER_STEP_MAX free before each step */
    size_t count;
};

/* Handles one event and appends its actions. Cannot fail: a refusal is an action like any other. */
void core_step(struct core *core, const struct core_event *event, struct core_actions *out);

/* When the core is to get the next TICK: a time that has passed means now, UINT64_MAX never. */
uint64_t core_wake_us(const struct core *core);

/* ---- what the engine reads to carry actions out, and to show jobs and workers ---- */

struct core_task_view {
    uint32_t slot;
    uint64_t incarnation;
    enum task_state state;
    bool starts;             /* it is STARTING: its start is sent, perhaps again */
    struct worker_id worker; /* 0: not placed */
    const char *worker_name; /* until the next step; "": not placed, or its worker is not known */
    struct link_id link;     /* 0: its agent is not connected */
    uint32_t pid;
    bool has_exit;
    struct task_exit exit; /* without its text, which is only in the record */
    bool sent_hello, collected;
    uint32_t rank, replicas; /* rank UINT32_MAX: not in the roster */
    char mesh_address[LIMIT_ADDRESS_BYTES];
    uint32_t hellos;   /* of this task that were accepted */
    bool here;         /* it said hello, is not dismissed and has not exited, as far as is known */
    uint32_t attempts; /* how often the slot was started in this generation; its last task: */
    uint64_t attempts_generation; /* in the one of this number */
    /* Of a parameter server: the incarnation whose memory it takes over; 0: that worker has none */
    uint64_t predecessor;
    struct task_backed backed; /* as in task_member */
    uint64_t waited_us; /* sum of waits of over a second for the slot's tasks, since core_init */
};

/* A step that does not end although no task died, once tasks have waited in it for over a second.
 */
struct core_stall {
    uint64_t waited_us, step; /* for so long; zeroed but for the slot: there is none */
    uint32_t slot;            /* the task that is waited for; UINT32_MAX: not known */
    bool slow;                /* for as long as core_options.slow_us and slow_factor say */
};

struct core_job_view {
    struct job_id job;
    enum job_state state;
    uint32_t tasks, tasks_min;
    uint32_t restarts;
    uint32_t roster;  /* members of the generation; rank r by core_job_member */
    uint32_t workers; /* daemons that have tasks of the job; each by core_job_worker */
    uint32_t queued_before;
    struct generation generation;
    uint64_t resume, released;
    uint32_t source;    /* a rank, or SOURCE_NONE */
    uint64_t committed; /* every member of the generation reported it applied; 0: none formed yet */
    uint64_t checkpoint_at, halt_at;
    enum halt_kind halt_kind;
    uint32_t halt_stream;
    bool has_checkpoint; /* the newest published one */
    struct core_checkpoint checkpoint;
    uint64_t published; /* position in releases, also if it is damaged since; or POSITION_NONE */
    struct verified verified; /* newest position whose states were found equal; digest 0: none */
    bool restores; /* tasks that are started now go on from that checkpoint, not from a peer */
    struct ps_job ps_job;
    bool behind; /* a task knows more than the ledger: the job waits, as its text says */
    bool formed; /* its tasks are in `generation`; else that has ended, with no plan since */
    struct core_stall stall;
};

/* The job's state for showing; false: not live. */
bool core_job(const struct core *core, struct job_id job, struct core_job_view *ret_view);
/* What the job waits for, or why it ends, in a sentence; false: not live. */
bool core_job_text(const struct core *core, struct job_id job, char ret_text[LIMIT_TEXT_BYTES]);
/* A worker or a task, since the start, knew more than the ledger. */
bool core_is_behind(const struct core *core);
/* JOB_QUEUED to JOB_ENDING; false: not live. */
bool core_job_state(const struct core *core, struct job_id job, enum job_state *ret_state);
/* As core_job_view.committed; false: not live. */
bool core_job_committed(const struct core *core, struct job_id job, uint64_t *ret_committed);
/* The task of a slot of a live job. */
void core_job_task(
    const struct core *core, struct job_id job, uint32_t slot, struct core_task_view *ret_view);
/* The slot of rank `rank` of the job's generation. */
uint32_t core_job_member(const struct core *core, struct job_id job, uint32_t rank);
/* The i-th worker daemon of the job (in no order), its link, and how many members it has. */
void core_job_worker(const struct core *core, struct job_id job, uint32_t i,
    struct worker_id *ret_worker, struct link_id *ret_link, uint32_t *ret_members);

/* The positions of a job's streams, as far as is known: i from 0 until false. */
bool core_job_stream(
    const struct core *core, struct job_id job, uint32_t i, struct stream_position *ret_stream);

struct core_worker_view {
    struct worker_id worker;
    struct link_id link; /* 0: not connected, within its lease */
    uint64_t boot_nonce;
    uint32_t slots;
    uint32_t slots_used;
    uint32_t slot_gpus; /* that each slot has at least */
    bool draining;
    const char *drained_by; /* of a client's drain, until the next step; NULL: there is none */
    const char *drained_why;
    bool expected; /* it had tasks when the coordinator was started, and has not said hello since */
    char name[LIMIT_NAME_BYTES];
};

/* The known workers: connected, within their lease, or expected. */
uint32_t core_worker_count(const struct core *core);
/* How many were lost by silence since core_init. */
uint64_t core_workers_lost(const struct core *core);
/* The known workers in the order of their ids; false: no more. *cursor is 0 at first, and valid
 * until the next step. */
bool core_worker_next(const struct core *core, uint32_t *cursor, struct core_worker_view *ret_view);

/* A client's drain of a worker of this name; NULL: there is none. Until the next step. */
const struct core_drained *core_drain_of(const struct core *core, const char *worker);

/* The worker of this name; false: it is not known (any more). */
bool core_worker_named(const struct core *core, const char *name, struct core_worker_view *ret);
/* The worker on this link; false: the link is no worker's (any more). */
bool core_worker_linked(const struct core *core, struct link_id link, struct core_worker_view *ret);

/* ---- for tests and the simulator ---- */

/* The worker of this id; false: it is not known (any more). Reads all before it. */
bool core_worker_find(const struct core *core, struct worker_id id, struct core_worker_view *ret);

/* NULL when all invariants hold, else a sentence about the broken one. Only the objects touched by
 * the last step unless `whole`. */
const char *core_invariant(const struct core *core, bool whole);

/* A hash of the whole state: equal for equal seeds and events, on every machine and compiler. */
uint64_t core_digest(const struct core *core);

#endif
