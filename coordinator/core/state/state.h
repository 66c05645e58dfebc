/* SPDX-License-Identifier: Apache-2.0
 * The state of the coordinator's core. Nothing here is visible outside coordinator/core. Objects
 * are referred to by index; an index never leaves the core.
 *
 * An event changes facts. What follows from them is noted per job in `due`: outcomes are decided at
 * the end of the step (turn/turn.c), the rest is decided and sent then, as far as the action list
 * has room, or in the next step. */
#ifndef CADRE_COORDINATOR_CORE_STATE_H
#define CADRE_COORDINATOR_CORE_STATE_H

#include "common/pure/assert.h"
#include "common/pure/heap.h"
#include "common/pure/list.h"
#include "common/pure/map.h"
#include "common/pure/prng.h"
#include "common/pure/text.h"
#include "coordinator/core/core.h"

#define NONE UINT32_MAX

/* Step ranges between the lowest position that is known to be applied and the highest arrival. Each
 * covers at least one position; beyond this count the oldest are dropped, and only the mesh finds
 * that programs differ in them. */
#define STEP_RANGES_MAX 256

/* Epochs whose recorded length is remembered, so that a program that changes between epochs does
 * not cost a record each time. One that is dropped is recorded again, which changes nothing.
 */
#define ENDS_MAX LIMIT_STREAMS

/* Epochs whose consumption is counted; one that is dropped for another is recorded as it is. */
#define SAMPLE_AUDITS_MAX 8

/* Tasks that agents listed and that have to be ended: a hello that lists more is refused. */
#define STRAYS_MAX (4 * LIMIT_SLOTS_PER_WORKER)

#define RECENT_MAX 8

/* Most actions of an event itself, and of a job per turn. */
#define ACTIONS_PER_EVENT_MAX 8
#define ACTIONS_PER_JOB_MAX   29
_Static_assert(ACTIONS_PER_EVENT_MAX + 2 * ACTIONS_PER_JOB_MAX <= CORE_ACTIONS_PER_STEP_MAX,
    "after the event itself there is room for its job and for one that was left over");

/* A plan records what was consumed before it, besides the job's other actions. */
#define ACTIONS_PER_PLAN_MAX (SAMPLE_AUDITS_MAX + ACTIONS_PER_JOB_MAX)
_Static_assert(ACTIONS_PER_EVENT_MAX + ACTIONS_PER_PLAN_MAX <= CORE_ACTIONS_PER_STEP_MAX,
    "the first job of a step has room for a plan");
_Static_assert(
    STRAYS_MAX >= AGENT_ENTRIES(LIMIT_SLOTS_PER_WORKER), "one hello always fits an empty ring");
_Static_assert(LIMIT_TASKS_PER_JOB < NONE / 2, "slots fit an index");

enum worker_state { WORKER_FREE = 0, WORKER_CONNECTED, WORKER_AWAY };

/* Why a worker is away. */
enum absence {
    ABSENCE_NONE = 0, /* it is not */
    ABSENCE_CUT,      /* its stream ended */
    ABSENCE_SILENT,   /* the core ended its stream, because nothing came on it */
    ABSENCE_EXPECTED  /* known from the store alone: the next hello with its name is its own */
};

/* The tasks of one job on one worker: they arrive as one. Named by (index of the job, index in the
 * job). */
struct task_group_ref {
    uint32_t job;
    uint32_t task_group;
};

struct worker {
    struct worker_id id;
    enum worker_state state;
    enum absence absence;
    struct link_id link;
    uint32_t protocol; /* version of the agent stream, on this link */
    uint64_t boot_nonce;
    uint64_t last_seen_us;
    uint32_t slots;
    uint32_t slots_used;
    uint32_t leftovers;     /* tasks that are not collected there, and of no job that is known */
    bool keeps;             /* among them are tasks that the ledger does not have: facts/behind.c */
    uint32_t slot_gpus;     /* that each of its slots has at least */
    uint32_t counted_total; /* counted in core.slots_total, for each number up to: */
    uint32_t counted_free;  /* counted in core.slots_free, likewise */
    uint32_t counted_gpus;  /* slot_gpus as it was counted */
    bool draining;          /* takes no new tasks, and its tasks are moved elsewhere */
    bool leaves;            /* the daemon drains itself: it exits when the last task is collected */
    bool drained;           /* a client drains it */
    bool overdue; /* silent for a lease: its remaining tasks are waited for (events/silence.c) */
    uint64_t orphan_us; /* it ends its tasks after so long without a coordinator; 0: not known */
    struct task_group_ref task_groups; /* first of its list */
    char name[LIMIT_NAME_BYTES];
};

struct task_group {
    uint32_t worker; /* NONE: it was lost */
    struct worker_id worker_id;
    uint32_t first; /* slot of the first of its tasks, linked by task.next */
    uint32_t last;
    uint32_t tasks;
    uint32_t members; /* of the generation's roster */
    uint64_t up_to;
    uint64_t applied;
    bool arrived; /* in this generation: all its members have the state */
    bool again;   /* its worker may not have received the start of all of them */
    struct task_group_ref prev;
    struct task_group_ref next;
};

/* Why a running task is to end. */
enum dismissal {
    DISMISSED_NOT = 0,
    DISMISSED_SUPERSEDED, /* the job goes on, or ended, without it */
    DISMISSED_RESET,      /* its state is void */
    DISMISSED_SILENT,     /* it does not report */
    DISMISSED_LEAVES      /* its state is saved, and void: it ends by itself, or is stopped then */
};

/* How far a joiner is: one that is in no roster. */
enum joining {
    JOINING_NOT = 0,
    JOINING_WAITS,   /* it waits at a step of join_stream */
    JOINING_OUTDATED /* that stream ended, or is in another epoch: WARM is to be sent */
};

/* When the slot of an exited task is filled again. */
enum refill {
    REFILL_AFTER_PLAN = 0, /* once the job has a plan */
    REFILL_NOW,            /* it ended before the first plan because of its worker or a signal */
    REFILL_NEXT_PLAN       /* it found nothing to do: the slot stays empty until the next plan */
};

struct task {
    enum task_state state;
    uint32_t task_group; /* NONE: not placed */
    uint32_t next;       /* of its task group */
    uint32_t prev;
    uint64_t incarnation;
    uint32_t pid;
    uint32_t rank; /* NONE: not in the roster */
    uint32_t replicas;
    uint32_t next_fresh;     /* next of the list job.fresh */
    uint32_t next_lost;      /* next of the list job.lost */
    uint32_t next_dismissed; /* next of the list job.dismissed */
    uint64_t listed_step;    /* the step whose hello listed it */
    int32_t exit_code;
    int32_t exit_signal;
    enum dismissal dismissed;
    enum joining joining;
    enum refill refill;
    bool placement_unrecorded; /* in job.fresh: its placement is not recorded yet */
    bool stop_unsent;          /* in job.dismissed: its stop is not sent yet */
    bool end_unrecorded;       /* in job.lost: its end is not recorded yet */
    bool joined;               /* it said hello, since the coordinator was started */
    uint32_t hellos;           /* so many times */
    bool adopted;              /* it was placed before that */
    bool finished;             /* it reported that the program is done */
    bool reported;             /* it is frozen, and its position is known */
    bool collected;            /* its worker holds nothing of it any more */
    /* facts/ps_job.c; the rest of these outlives the task and belongs to the slot */
    enum role role;               /* of a ps job; else ROLE_NONE */
    uint32_t attempts;            /* how often it was started in this generation */
    uint64_t attempts_generation; /* the number of that in which its last task was */
    struct worker_id home;        /* of a server: the worker of its last incarnation */
    uint64_t kept;                /* the number of that incarnation */
    uint64_t predecessor;         /* the incarnation whose memory this one takes over */
    uint64_t waited_us; /* facts/health.c: so long others waited for the slot's task, in stalls */
    struct task_backed backed; /* of a server: `by` is the slot's, the number this incarnation's */
    /* of its report */
    bool clean;
    bool begun;
    enum report_reason reason;
    uint32_t stream;
    bool nested;
    uint64_t position;
    uint64_t digest; /* of its state there, after an orderly report; 0: not known */
    uint64_t trusts; /* as reported (struct task_report) */
    uint32_t join_stream;
    /* facts/health.c: which task it waits for; valid while the stamp is the job's */
    uint64_t stall_stamp;
    uint32_t waits_for;
    uint32_t waited_by;
    char mesh_address[LIMIT_ADDRESS_BYTES];
};

/* The state of the generation. */
enum phase {
    PHASE_JOIN = 1, /* waits for hellos: a new job, or one that begins again */
    PHASE_RUN,
    PHASE_REGROUP, /* frozen members report; or too few are left and it waits for others */
    PHASE_DONE     /* bye was sent */
};

/* Positions that all tasks assign to one epoch of one stream. */
struct step_range {
    struct cursor cursor;
    uint64_t through;    /* positions cursor.begin .. through - 1 */
    uint64_t applied;    /* a task group applied positions below it as part of this range */
    uint32_t task_group; /* that claimed it first; NONE: it was removed */
    uint32_t ahead;      /* that applied most of it */
};

/* An epoch whose length is recorded. */
struct ended {
    uint32_t stream; /* 0: free */
    uint64_t epoch;
};

/* The samples of one epoch, as far as they are counted. */
struct sample_audit {
    struct cursor cursor;           /* stream 0: free */
    struct consumption consumption; /* as of position `at`, which all have applied */
    uint64_t at;
    struct consumption ahead; /* the highest that arrived, of position ahead_at */
    uint64_t ahead_at;
    uint64_t recorded; /* `at` of the newest record; POSITION_NONE: none */
};

/* The least of a value over the task groups, and how many have it. */
struct low_mark {
    uint64_t least;
    uint32_t holders;
};

/* Tasks failed by themselves: the job fails with this if it has no restart left. */
struct failure {
    cadre_status code; /* CADRE_OK: none */
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES];
};

enum deadline {
    DEADLINE_FORM = 0, /* hellos are missing */
    DEADLINE_EARLY,    /* a task left with status 0 before cadre_finish */
    DEADLINE_REPORT,   /* reports of members are missing (protocol, rule 21) */
    DEADLINE_WAIT,     /* too few tasks */
    DEADLINE_DRAIN,    /* members have not reached the halt of a drain (protocol, rule 20), or
                        * have not exited behind a halt that ended their generation */
    DEADLINE_PREEMPT,  /* a preempted job has not reached its step, saved, or exited */
    DEADLINE_SLOW,     /* a step does not end: show it */
    DEADLINE_STALL,    /* a step does not end: replace the task that others wait for */
    DEADLINE_PS_JOB,   /* hellos or exits of ps tasks are missing */
    DEADLINE_MEMBERS,  /* changes of members are to be sent */
    DEADLINE_LIMIT,    /* the time limit */
    DEADLINE_BACKOFF,  /* its tasks fail again and again: none is placed before */
    DEADLINE_COLLECT,  /* logs and outputs are missing */
    DEADLINES
};

/* The state of a preemption (facts/preempt.c). */
enum preemption {
    PREEMPT_NOT = 0,
    PREEMPT_WANTED,  /* a step to stop at is to be found */
    PREEMPT_STOPS,   /* it is found and recorded */
    PREEMPT_SAVED,   /* bye was sent: its tasks exit */
    PREEMPT_UNSAVED, /* there was nothing to save, or no time: its tasks are ended */
    PREEMPT_REQUEUES /* they have exited; it is queued again when all are collected */
};

/* The end of a ps job whose chief is done (decide/ps_job_decide.c). */
enum ps_shutdown {
    PS_SHUTDOWN_NONE = 0,
    PS_SHUTDOWN_WORKERS, /* bye to workers and the evaluator, which may read from the servers once
                            more */
    PS_SHUTDOWN_SERVERS
};

/* What of a job is to be decided and sent; in this order. */
enum due {
    DUE_REGROUP = 1 << 0,
    DUE_CONTROL = 1 << 1,
    DUE_START = 1 << 2,
    DUE_CONSUMED = 1 << 3,
    DUE_PUBLISH = 1 << 4,
    DUE_PLAN = 1 << 5,
    DUE_HALT = 1 << 6,
    DUE_RELEASE = 1 << 7,
    DUE_RELEASE_RESEND = 1 << 8,
    DUE_DONE = 1 << 9,
    DUE_ENDING = 1 << 10,
    DUE_ABORT = 1 << 11,
    DUE_STOP = 1 << 12,
    DUE_CHANGED = 1 << 13,
    DUE_QUEUED = 1 << 14,
    DUE_UNSAVED = 1 << 15,
    DUE_PS_JOB = 1 << 16,
    DUE_MEMBERS = 1 << 17,
    DUE_MEMBERS_CHIEF = 1 << 18, /* only the chief is to receive the change */
    DUE_GOODBYE_WORKERS = 1 << 19,
    DUE_GOODBYE_SERVERS = 1 << 20,
    /* Outcomes: facts that decide how the job goes on. All that an event made due are decided at
     * its end, in this order, before anything is placed or sent. */
    DUE_BREAK = 1 << 21,     /* the generation lacks a member: the others are to freeze */
    DUE_FINISH = 1 << 22,    /* all members finished at one position */
    DUE_PART = 1 << 23,      /* a part is durable: perhaps all have applied its position */
    DUE_HALTED = 1 << 24,    /* perhaps all are at the stop, and it is saved */
    DUE_RESTART = 1 << 25,   /* the state that the tasks began with is void: all begin again */
    DUE_DISBAND = 1 << 26,   /* the generation is over, and no task goes on from it */
    DUE_FAILED = 1 << 27,    /* it has an outcome, and its tasks are to be ended */
    DUE_TASK_GONE = 1 << 28, /* a task exited or was lost: perhaps it was the last */
    DUE_REQUEUE = 1 << 29,   /* a slot of a job that leaves is empty: perhaps all are */
    DUE_VERIFIED = 1 << 30   /* sent like those above */
};

#define DUE_OUTCOMES                                                                               \
    ((uint32_t)(DUE_BREAK | DUE_FINISH | DUE_PART | DUE_HALTED | DUE_RESTART | DUE_DISBAND |       \
                DUE_FAILED | DUE_TASK_GONE | DUE_REQUEUE))

struct job {
    struct job_id id; /* 0: free */
    enum job_state state;
    enum phase phase;
    int32_t priority;
    uint32_t tasks;
    uint32_t tasks_min;
    uint32_t gpus; /* that the slot of each task has at least */
    uint32_t max_restarts;
    uint64_t wait_us;
    uint64_t stall_us;
    uint64_t time_limit_us; /* 0: none */
    uint32_t first; /* index of its slot 0 in core.tasks, core.task_groups and core.members */
    uint32_t task_groups;
    uint32_t initial; /* tasks that it was first placed with */
    bool plain;       /* its programs keep their state themselves, and are in one generation: where
                       * tasks join or leave all begin again (decide/plain.c) */
    uint32_t regains; /* of a plain job that begins again: the tasks that it had */
    uint64_t incarnation_max;
    uint32_t due;     /* bits of enum due */
    bool touched;     /* in core.touched */
    bool undecided;   /* in core.undecided */
    bool underfilled; /* in core.underfilled: it is placed, and has slots to fill */
    bool draining;    /* some of its tasks may be on workers that drain */
    bool behind;      /* facts/behind.c: its ledger is older than one of its tasks; `note`: how */
    uint64_t touched_step;

    /* Counted over its tasks, as they are now: a slot that is empty again counts as waiting. */
    uint32_t waiting;
    uint32_t alive; /* starting or running */
    uint32_t running;
    uint32_t gone;
    uint32_t refilled; /* gone, to be placed again before the first plan */
    uint32_t declined; /* waiting, and not to be filled before the next plan */
    uint32_t collected;
    uint32_t usable;
    uint32_t joined; /* said hello, gone or not */
    uint32_t ready;  /* usable and joined */
    uint32_t silent; /* exited with 0 and never said hello */
    uint32_t silent_slot;
    uint32_t early_slot; /* the first that said hello and exited with 0 before bye; NONE */
    uint32_t joiners_of[LIMIT_STREAMS + 1]; /* usable, by the stream at whose steps they wait */
    uint32_t joiners;                       /* all of these */
    bool outdated;                          /* some of them may be */
    uint64_t joiner_us;                     /* when the newest of them came */

    struct generation generation;
    struct generation parent;
    uint64_t resume;
    uint32_t roster;
    uint32_t source;  /* a rank, or SOURCE_NONE */
    bool restarted;   /* the plan begins again from the checkpoint, or from nothing */
    bool restart_all; /* PHASE_JOIN after all state was lost */
    /* Counted over the roster. */
    uint32_t present; /* usable */
    uint32_t reported;
    uint32_t finished;      /* also those that have exited */
    uint32_t unconfirmed;   /* present, without a hello since the coordinator was started */
    uint32_t finished_slot; /* the first that did */
    uint64_t finished_position;

    struct low_mark arrived;
    struct low_mark applied;
    uint32_t unarrived; /* task groups with members that have not arrived in this generation */
    uint64_t wanted;    /* the most steps that a member's program takes, as far as is known */
    uint32_t wanted_slot;
    uint64_t released; /* as recorded and sent */
    bool raised;       /* by a task's or agent's message; not recorded yet */
    uint64_t halt_at;
    enum halt_kind halt_kind;
    uint32_t halt_stream;
    uint64_t checkpoint_at; /* the chief saves before this step; POSITION_NONE: none */
    bool checkpoint_asked;  /* a position for that is to be found */
    enum preemption preempt;
    bool requeues;                       /* it is queued again afterwards */
    bool over_time_limit;                /* it ran longer than it may */
    bool saves;                          /* all are at the step, and it is being saved */
    char preempt_text[LIMIT_TEXT_BYTES]; /* the reason */
    uint32_t step_range_count;
    struct ended ends[ENDS_MAX]; /* by number of the stream */
    struct sample_audit sample_audits[SAMPLE_AUDITS_MAX];
    struct stream_position streams[LIMIT_STREAMS]; /* by number; stream 0: not known */
    uint64_t streams_recorded;                     /* bits */
    bool has_checkpoint;
    struct core_checkpoint checkpoint; /* the newest published one */
    uint64_t published; /* facts/published.c: the position in releases; or POSITION_NONE */
    bool has_part;
    struct core_checkpoint part; /* durable, and not applied by all yet or not verified */
    bool part_compared;          /* its digest is what was compared at its position */
    /* facts/verified.c */
    struct verified verified;   /* the newest; position 0 and digest 0: none */
    uint64_t verified_recorded; /* the position that is recorded; of this timeline */
    uint64_t verified_next_us;  /* not to be recorded before */
    /* facts/divergence.c */
    bool diverged;                      /* in this generation: its states are void */
    struct core_position diverged_last; /* as recorded */

    /* facts/ps_job.c; no servers: it is no ps job */
    struct ps_job ps_job;
    /* Usable ps tasks, by role: in no count above but those of states, and in `joined`. */
    uint32_t ps_task_counts[ROLE_EVALUATOR + 1];
    uint32_t members_held;    /* of DUE_MEMBERS and DUE_MEMBERS_CHIEF: deferred */
    uint64_t members_next_us; /* not to be sent before */
    bool recalls; /* the coordinator was started again, and hellos of some ps tasks are missing */
    uint32_t recalled; /* of lower slots no hello is missing */
    enum ps_shutdown ps_shutdown;

    /* Of the last or current loss of the generation. */
    bool counted;      /* a failure of this generation is counted */
    bool excused;      /* a worker that was lost or drained explains its end */
    bool guess;        /* `reason` is what was noticed, not what happened */
    bool grows;        /* `reason` is that tasks join, which is no loss */
    uint64_t waits_us; /* since when too few are left */
    uint32_t restarts;
    uint64_t cut_us; /* facts/lease.c: when no worker that could continue it was alive; 0: never */
    uint32_t restarts_without_step; /* of them, since a generation last applied a step */
    bool formed;                    /* a generation was formed since the last of these */
    uint64_t aborted_us;
    char reason[LIMIT_TEXT_BYTES]; /* why the generation was aborted */
    char note[LIMIT_TEXT_BYTES];   /* what followed from it, for people; "" */
    struct failure followed;       /* of a task that had lost its peers before */

    /* facts/health.c */
    uint64_t progress_us; /* when the last step was applied by all */
    uint64_t median_us;   /* of a step; 0: not known */
    uint64_t stall_stamp;
    uint64_t step_begun_us;  /* when `released` or `wanted` rose last */
    uint64_t stall_since_us; /* when the step before it was applied, or an only task began it */
    uint32_t stall_slot;     /* the task that most others wait for; NONE */
    uint32_t waited_slot;    /* the one that held up the step when that was last known; NONE */
    uint64_t stall_position; /* the highest position at which a task waits */
    bool stalled;            /* a task has waited for long */
    bool slow;               /* it is shown */
    /* A task whose replicas wait for one of their own, by its newest message; NONE: no such task.
     */
    uint32_t hang_slot;
    uint64_t hang_position;
    uint64_t hang_reported_us;
    struct task_hang hang;

    uint64_t deadlines[DEADLINES]; /* UINT64_MAX: not armed */
    uint32_t fresh;                /* first placed task that is not recorded */
    uint32_t fresh_last;
    uint32_t lost;               /* first lost task whose end is not recorded */
    uint32_t dismissed;          /* first task whose stop is to be sent */
    uint32_t agains;             /* task groups with `again` */
    bool stopped;                /* its tasks are to end */
    bool uncollected;            /* the wait for logs and outputs is over */
    char left[LIMIT_TEXT_BYTES]; /* what of a task's outputs could not be collected; "" */
    enum job_state outcome;      /* 0: open; else SUCCEEDED, FAILED or CANCELLED */
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES]; /* why it ends */
    /* By begin, disjoint. Only `step_range_count` are set, because these are most of a job's memory
     * and a queued job has none. */
    struct step_range step_ranges[STEP_RANGES_MAX];
};

struct stray {
    struct link_id link;
    struct task_ref task;
};

/* Of the workers below a node of the tournament (offers.c). */
struct offer {
    uint32_t worker;   /* NONE: none of them has a free slot */
    uint32_t gpus_max; /* the most GPUs per slot of any that has free ones */
};

struct core {
    struct core_options options;
    struct prng prng;
    uint64_t now_us;
    uint64_t paused_us; /* until then this process was suspended; 0: never yet */
    uint64_t steps;
    uint64_t worker_last;
    uint64_t job_seen; /* facts/behind.c: the newest of which a worker holds anything */
    bool relists; /* a job that waited for a newer ledger is cancelled: workers with tasks of it
                   * that the ledger does not have are to list them again */
    uint64_t job_last;
    uint64_t workers_lost; /* lost by silence since the start; for people */
    /* By the GPUs that a slot has at least: [0] is of all slots. */
    uint32_t slots_total[LIMIT_GPUS_PER_WORKER + 1]; /* of workers that are not draining, connected
                                                        or away */
    uint32_t slots_free[LIMIT_GPUS_PER_WORKER + 1];  /* of connected ones */
    uint32_t tasks_used; /* end of the used part of the arrays of tasks */
    uint32_t tasks_live;
    uint32_t end_unrecorded; /* lost tasks of all jobs whose end is not recorded yet */
    bool placement_due;      /* the queue, the empty slots of jobs or the free slots changed */

    struct worker *workers;
    struct list workers_live; /* in order of id */
    struct list workers_free;
    struct map workers_by_link;
    struct map workers_by_name; /* by hash of the name */
    struct offer *offers;       /* a tree: the children of i are 2 i and 2 i + 1, its root is 1 */

    struct job *jobs;
    struct list jobs_live; /* in order of id, which is the order of their tasks in the arrays */
    struct list jobs_free;
    struct list queue;       /* in order of placement */
    uint32_t *queue_numbers; /* by job: rising along the queue by 1, if queue_numbered */
    bool queue_numbered;
    bool queue_head_known;
    uint32_t queue_head;     /* the first that the cluster could hold if it were empty, or NONE */
    struct list underfilled; /* placed jobs with empty slots, in that order; shares the nodes */
    struct list undecided;   /* jobs with an outcome that is due; none between two steps */
    struct list touched;     /* jobs with due bits, or tasks to send something about */
    struct list drained;     /* jobs that are `draining`, in order of id */
    struct map jobs_by_id;

    struct task *tasks;
    struct task_group *task_groups;
    uint32_t *members;                /* slot of rank i of the job at `first` */
    struct map task_groups_by_worker; /* (job index, worker index) -> task group index */

    struct core_drained *drains; /* of clients, whether these workers are known or not */
    uint32_t drain_count;
    struct core_culprit *culprits; /* likewise */
    uint32_t culprit_count;

    struct stray *strays; /* ring */
    uint32_t stray_first;
    uint32_t stray_count;

    struct heap deadlines; /* workers by index, then jobs */

    /* Jobs that the last step changed; when they are more than fit, core_invariant() checks all. */
    uint32_t recent[RECENT_MAX];
    uint32_t recent_count;
    uint64_t recent_step;

    struct core_cancel cancel; /* only within a step: the one to be answered */
    struct core_actions *out;  /* only within a step */
    size_t out_end;
};

#endif
