/* SPDX-License-Identifier: Apache-2.0
 * The state of the coordinator's core, and the functions by which its files use each other. Nothing
 * here is visible outside coordinator/core. Objects are referred to by index; an index never leaves
 * the core.
 *
 * An event changes facts. What has to be said because of them is noted per job in `due` and said by
 * speak.c at the end of the step, as far as the action list has room; the rest is said by the next
 * step. */
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

/* Runs of steps between the least that is known to be applied and the farthest arrival. Each covers
 * at least one position, and honest tasks are within three windows of each other; of more the
 * oldest are forgotten. */
#define STRETCHES_MAX (4 * LIMIT_WINDOW_STEPS)

/* Lengths of epochs that are known to be recorded: a program that goes to and fro between epochs
 * does not cost a record each time. One that is forgotten is recorded again, which changes nothing.
 */
#define ENDS_MAX 8

/* Tasks that agents listed and that have to be ended: more are told to come again. */
#define STRAYS_MAX (4 * LIMIT_SLOTS_PER_WORKER)

#define RECENT_MAX 8

/* An event says at most so much by itself; a job says at most so much per round of speak.c. */
#define ACTIONS_PER_EVENT_MAX 8
#define ACTIONS_PER_JOB_MAX   16
_Static_assert(ACTIONS_PER_EVENT_MAX + 2 * ACTIONS_PER_JOB_MAX <= CORE_ACTIONS_PER_STEP_MAX,
    "after the event itself there is room for its job and for one that was left over");
_Static_assert(STRAYS_MAX >= 2 * LIMIT_SLOTS_PER_WORKER, "one hello always fits an empty ring");
_Static_assert(LIMIT_TASKS_PER_JOB < NONE / 2, "slots fit an index");

enum worker_state { WORKER_FREE = 0, WORKER_CONNECTED, WORKER_AWAY };

/* The tasks of one job on one worker: they arrive as one. Named by (index of the job, index in the
 * job). */
struct party_ref {
    uint32_t job;
    uint32_t party;
};

struct worker {
    struct worker_id id;
    enum worker_state state;
    struct link_id link;
    uint64_t boot_nonce;
    uint64_t heard_us;
    uint32_t slots;
    uint32_t slots_used;
    uint32_t counted_total; /* its share of core.slots_total */
    uint32_t counted_free;  /* its share of core.slots_free */
    bool draining;
    struct party_ref parties; /* first of its list */
    char name[LIMIT_NAME_BYTES];
};

struct party {
    uint32_t worker; /* NONE: lost */
    struct worker_id worker_id;
    uint32_t first_slot; /* slots are contiguous within a party */
    uint32_t tasks;
    uint32_t members; /* of the generation's roster */
    uint64_t up_to;
    uint64_t applied;
    bool again; /* its worker came back and may not have got its start */
    struct party_ref prev;
    struct party_ref next;
};

struct task {
    enum task_state state;
    uint32_t party; /* NONE: not placed */
    uint64_t incarnation;
    uint32_t pid;
    uint32_t rank; /* NONE: not in the roster */
    uint32_t replicas;
    uint32_t next_lost;   /* of job.lost */
    uint64_t listed_step; /* the step whose hello listed it */
    int32_t exit_code;
    int32_t exit_signal;
    bool joined;    /* it said hello */
    bool finished;  /* it reported that the program is done */
    bool froze;     /* it reported that its peers are lost: what it exits with says no more */
    bool collected; /* nothing of it is left on its worker */
    bool has_exit;
    char mesh_address[LIMIT_ADDRESS_BYTES];
};

/* Where the generation stands. */
enum phase {
    PHASE_JOIN = 1, /* hellos are awaited */
    PHASE_RUN,
    PHASE_COLLECT, /* aborted: frozen members report */
    PHASE_DONE     /* bye was said */
};

/* A run of positions that the tasks agree belongs to one epoch of one stream. */
struct stretch {
    struct cursor cursor;
    uint64_t through; /* positions cursor.begin .. through - 1 */
    uint64_t applied; /* a party applied positions below it as part of this stretch */
    uint32_t party;   /* that said so first */
    uint32_t ahead;   /* that applied most of it */
};

/* The length of an epoch is recorded. */
struct ended {
    uint32_t stream; /* 0: free */
    uint64_t epoch;
};

/* The least of a value over the parties, and how many stand there. */
struct low_mark {
    uint64_t least;
    uint32_t holders;
};

enum deadline {
    DEADLINE_NONE = 0,
    DEADLINE_FORM,
    DEADLINE_CULPRIT,
    DEADLINE_EARLY,
    DEADLINE_COLLECT
};

/* What a job still has to say; said in this order. */
enum due {
    DUE_START = 1 << 0,
    DUE_PLAN = 1 << 1,
    DUE_RELEASE = 1 << 2,
    DUE_DONE = 1 << 3,
    DUE_ABORT = 1 << 4,
    DUE_STOP = 1 << 5,
    DUE_CHANGED = 1 << 6
};

struct job {
    struct job_id id; /* 0: free */
    enum job_state state;
    enum phase phase;
    int32_t priority;
    uint32_t tasks;
    uint32_t first; /* index of its slot 0 in core.tasks, core.parties and core.members */
    uint32_t parties;
    uint64_t incarnation_max;
    uint32_t due; /* bits of enum due */
    bool touched; /* in core.touched */
    uint64_t touched_step;

    /* counted over its tasks */
    uint32_t running; /* were seen running, ever */
    uint32_t joined;
    uint32_t gone;
    uint32_t collected;
    uint32_t silent; /* exited with 0 and never said hello */
    uint32_t silent_slot;
    uint32_t early_slot; /* the first that said hello and exited with 0 before bye; NONE */
    uint32_t finished;
    uint32_t finished_slot; /* the first that did */
    uint64_t finished_position;

    struct generation generation;
    struct generation parent;
    uint64_t resume;
    uint32_t roster;
    struct low_mark arrived;
    struct low_mark applied;
    uint64_t wanted; /* the most steps that a member's program is known to take */
    uint32_t wanted_slot;
    uint64_t released;                       /* as recorded and said */
    struct stretch stretches[STRETCHES_MAX]; /* by begin, disjoint */
    uint32_t stretch_count;
    struct ended ends[ENDS_MAX]; /* by number of the stream */
    bool has_checkpoint;
    uint32_t checkpoint_slot;
    uint64_t checkpoint_position;
    char checkpoint_path[LIMIT_FILE_NAME_BYTES];

    enum deadline deadline;
    uint32_t lost;          /* first lost task whose end is not recorded */
    uint32_t agains;        /* parties with `again` */
    bool stopped;           /* its tasks were told to end */
    bool uncollected;       /* the wait for logs and outputs is over */
    char left[LIMIT_TEXT_BYTES]; /* what of the first such task's outputs could not be had; "" */
    enum job_state outcome; /* 0: open; else SUCCEEDED, FAILED or CANCELLED */
    cadre_status code;
    int32_t exit_code;
    char text[LIMIT_TEXT_BYTES]; /* why it ends, or why the generation was aborted */
};

struct stray {
    struct link_id link;
    struct task_ref task;
};

struct core {
    struct core_options options;
    struct prng prng;
    uint64_t now_us;
    uint64_t steps;
    uint64_t worker_last;
    uint64_t job_last;
    uint32_t slots_total; /* of workers that are not draining, connected or away */
    uint32_t slots_free;  /* of connected ones */
    uint32_t tasks_used;  /* end of the used part of the arrays of tasks */
    uint32_t tasks_live;
    bool place_due; /* the queue or the free slots changed */

    struct worker *workers;
    struct list workers_live; /* in order of id */
    struct list workers_free;
    struct map workers_by_link;
    struct map workers_by_name; /* by hash of the name */

    struct job *jobs;
    struct list jobs_live; /* in order of id, which is the order of their tasks in the arrays */
    struct list jobs_free;
    struct list queue;   /* in order of placement */
    struct list touched; /* jobs that may have something to say */
    struct map jobs_by_id;

    struct task *tasks;
    struct party *parties;
    uint32_t *members;           /* slot of rank i of the job at `first` */
    struct map parties_by_place; /* (job index, worker index) -> party index */

    struct stray *strays; /* ring */
    uint32_t stray_first;
    uint32_t stray_count;

    struct heap deadlines; /* workers by index, then jobs */

    /* Jobs that the last step dealt with; more than fit make the check look at all. */
    uint32_t recent[RECENT_MAX];
    uint32_t recent_count;
    uint64_t recent_step;

    struct core_actions *out; /* only within a step */
    size_t out_end;
};

/* core.c */
/* A new action of the step, zeroed but for its type. */
struct core_action *action_add(struct core *core, enum core_action_type type);
/* A new record of the job. */
struct core_record *record_add(
    struct core *core, const struct job *job, enum core_record_type type, bool sync);
size_t actions_left(const struct core *core);

/* workers.c */
void worker_heard(struct core *core, uint32_t worker);
void worker_hello(struct core *core, struct link_id link, const struct agent_hello *hello);
void worker_draining(struct core *core, uint32_t worker);
void worker_link_down(struct core *core, struct link_id link);
/* For good: its tasks are lost, it is forgotten. `how` continues "was lost with worker b, which
 * ...". */
void worker_lose(struct core *core, uint32_t worker, const char *how);
/* Counts what it offers to the queue anew. */
void worker_offer(struct core *core, uint32_t worker);
uint32_t worker_by_link(const struct core *core, struct link_id link);
/* The task is to be ended on this stream as soon as there is room. The ring has room. */
void stray_add(struct core *core, struct link_id link, struct task_ref task);

/* tasks.c */
struct task *job_task(const struct core *core, const struct job *job, uint32_t slot);
struct party *job_party(const struct core *core, const struct job *job, uint32_t party);
struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot);
/* The live task that `ref` names on this worker: NULL when there is none, or it is another
 * incarnation. */
struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job);
void task_move(struct task *task, enum task_state state);
void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started);
void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone);
void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected);
void task_said(struct core *core, uint32_t worker, const struct agent_said *said);
void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how);
/* "task 2 on worker b" */
void task_name(const struct core *core, const struct job *job, uint32_t slot, struct text *text);

/* jobs.c */
void job_submit(struct core *core, const struct core_submit *submit);
void job_cancel(struct core *core, const struct core_cancel *cancel);
struct job *job_find(const struct core *core, struct job_id id);
uint32_t job_index(const struct core *core, const struct job *job);
/* A queued job; there is room for it. */
struct job *job_create(struct core *core, struct job_id id, uint32_t tasks, int32_t priority);
void job_forget(struct core *core, struct job *job);
void job_move(struct core *core, struct job *job, enum job_state state);
/* Notes what is to be said. */
void job_due(struct core *core, struct job *job, uint32_t due);
/* Whether a job of so many tasks can be held; else `text` says why not. */
bool job_fits(const struct core *core, uint32_t tasks, char text[LIMIT_TEXT_BYTES]);
uint32_t job_queued_before(const struct core *core, const struct job *job);

/* placement.c */
/* Places the queue's head as long as it can be placed and there is room to say so. */
void placement_run(struct core *core);
/* "waits for 3 free slots, 1 of 2 is free" */
void placement_text(const struct core *core, const struct job *job, char text[LIMIT_TEXT_BYTES]);

/* generation.c */
void phase_move(struct job *job, enum phase phase);
void generation_hello(
    struct core *core, struct job *job, uint32_t slot, const struct task_hello *hello);
void generation_report(
    struct core *core, struct job *job, uint32_t slot, const struct task_report *report);
void generation_part(
    struct core *core, struct job *job, uint32_t slot, const struct task_part *part);
/* Arms the deadline for the hellos that are missing, once all tasks run and one has joined. */
void generation_await(struct core *core, struct job *job);
/* That deadline passed: the job fails and names who is missing. */
void generation_overdue(struct core *core, struct job *job);

/* barrier.c */
/* Everybody stands at `resume`. */
void barrier_open(struct core *core, struct job *job);
void barrier_arrived(struct core *core, uint32_t worker, const struct agent_arrived *arrived);
/* Whether a member wants a step that another has finished without: then the job fails. */
bool barrier_deserted(struct core *core, struct job *job);

/* line.c */
/* Whether a party's claim agrees with what others said; if so it is kept. Else the job fails. */
bool line_claim(
    struct core *core, struct job *job, uint32_t party, const struct agent_arrived *arrived);
/* The cursor of a position; zeroed while nobody is known to have begun its run. */
struct cursor line_at(const struct job *job, uint64_t position);
/* What all have applied is not asked for again. */
void line_trim(struct job *job);

/* ending.c */
/* The first reason stands; a later one is ignored. */
void job_fail(
    struct core *core, struct job *job, cadre_status code, int32_t exit_code, const char *text);
void job_stop(struct core *core, struct job *job);
/* A task is gone (exit given) or lost (`how` given): what follows for the job. */
void ending_task_gone(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const char *how);
/* A deadline of the job passed. */
/* Stops it at any stage; the answer is the caller's. */
void ending_cancel(struct core *core, struct job *job);
void ending_early_over(struct core *core, struct job *job);
void ending_culprit_over(struct core *core, struct job *job);
/* Some joined and some exited with status 0 without. */
void ending_silent(struct core *core, struct job *job);
bool ending_complete(const struct job *job);
/* Its last records; then it is forgotten. */
void ending_settle(struct core *core, struct job *job);

/* speak.c */
/* Says what is due, as far as there is room. */
void speak_run(struct core *core);
/* Something waits for room. */
bool speak_waits(const struct core *core);
/* To one task that said hello again: what it has to know now. */
void speak_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan);

/* deadlines.c */
void deadline_worker(struct core *core, uint32_t worker);
void deadline_job(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us);
void deadlines_run(struct core *core);

/* restore.c */
void restore_job(struct core *core, const struct core_restore_job *restore);
void restore_done(struct core *core, const struct core_restore_done *done);

/* signals.c */
/* "Killed"; NULL for a number without a name. */
const char *signal_name(int32_t signal);

#endif
