/* SPDX-License-Identifier: Apache-2.0
 * Messages between a task and the coordinator (protocol, section 2). The worker daemon relays;
 * towards the coordinator it folds the arrivals of its local tasks into one (agent_arrived in
 * agent_message.h). Watermarks are cumulative: the newest wins and a resend is harmless. Position p
 * = number of ledger steps applied: the state contains steps 0..p-1. */
#ifndef CADRE_MODEL_TASK_MESSAGE_H
#define CADRE_MODEL_TASK_MESSAGE_H

#include "common/model/job.h"
#include "common/model/trace.h"

/* Of the frames between a program and its daemon; both sides must be equal. Checked first, on both
 * sides. */
#define TASK_FRAME_VERSION 8

#define POSITION_NONE UINT64_MAX

/* Of a plan: no task has the state of its first position. The tasks begin from the start (resume
 * 0), or load the checkpoint that they were started with (rule 9). */
#define SOURCE_NONE UINT32_MAX

/* A halt that takes effect before a step of any stream. */
#define STREAM_ANY UINT32_MAX

/* Which samples a run of ledger steps consumes: from position `begin` on, step i of (stream, epoch)
 * is position first + i, until the program turns to something else. It may turn back: then another
 * run of the same epoch begins. A stream is a distributed dataset, numbered in order of creation
 * from 1; stream 0 has no samples (a cadre_run without a batch, one position each). All tasks must
 * report the same for the same positions. */
struct cursor {
    uint32_t stream;
    uint64_t epoch;
    uint64_t first; /* position of the epoch's step 0, as if all before were of it; at most begin */
    uint64_t begin; /* position where the run begins; the following run has a higher one */
    uint64_t steps; /* of this epoch; 0: not known yet */
    /* Steps are left of an epoch of another stream that the program began before this one, and will
     * turn back to. A joiner's program, which skips what is done, reaches that one first: it cannot
     * begin here. */
    bool nested;
};

enum report_reason {
    REPORT_HALT = 1,   /* reached halt_at in order */
    REPORT_ABORT,      /* the coordinator sent abort */
    REPORT_PEER_ERROR, /* a collective failed because a peer was missing */
    REPORT_FINISHED,   /* the program called cadre_finish at this position */
    REPORT_FAILED, /* the program's own function failed, or the programs disagree: final for the job
                    */
    REPORT_DIVERGED /* the states of replicas at one position are not the same */
};

/* What a halt at position S is for. REGROUP takes effect when the program *begins* step S of
 * `halt_stream`: no part of that step is done, and all that its program does between steps is
 * behind it, so that a joiner can begin there too (rule 20). STOP takes effect when the program
 * begins step S, of any stream: the state is saved there, and the tasks leave their job
 * (preemption). A task that has no such step finishes. */
enum halt_kind { HALT_NONE = 0, HALT_REGROUP, HALT_STOP };

/* What the tables of files record of an epoch. */
enum consumed_files {
    CONSUMED_FILES_NONE = 0, /* it is not divided by whole files */
    CONSUMED_FILES_LEFT,     /* there is more in its files */
    CONSUMED_FILES_DROPPED,  /* all of them are done, and some samples reached no replica */
    CONSUMED_FILES_ALL       /* every sample of them was consumed */
};

/* What was consumed, in all replicas of all tasks, in the applied steps of one epoch of one stream;
 * and what should have been, as its chief derives it from the dataset's definition alone. Both
 * travel with the state: they are sums over the steps that the state holds, of any generation. All
 * tasks at one position hold the same. */
struct consumption {
    uint64_t steps;       /* applied of this epoch */
    uint64_t samples;     /* consumed in them */
    uint64_t consumed[2]; /* common/pure/digest.h */
    uint64_t expected[2]; /* when provable */
    bool provable;        /* the dataset defines what each step should hold */
    /* By whole files: what a step should hold are the samples that the workers agreed on, none of
     * which was consumed before. */
    enum consumed_files files;
};

/* All replicas of the generation held the same state at `position`: their digests were compared, in
 * a collective that all of them took part in. A digest is of the bytes of all variables (of those
 * that are combined when read: their totals) and of registered state. 0: nothing was compared. */
struct verified {
    uint64_t position;
    uint64_t digest;
};

#define DIVERGENCE_CULPRITS_MAX 8

/* What was found where digests were compared and differed. */
struct divergence {
    uint64_t position; /* whose states they were */
    uint64_t verified; /* the newest position before it whose states were found equal; or where the
                          generation began */
    /* Slots of the tasks that differ from the majority, of many the first; 0 of them: there is no
     * majority, as with two replicas that differ. */
    uint32_t culprits[DIVERGENCE_CULPRITS_MAX];
    uint32_t culprit_count;
};

/* The position of one stream, for a joiner. */
struct stream_position {
    uint32_t stream;
    uint64_t epoch; /* the newest that was begun */
    uint64_t steps; /* of it; 0: not known */
    uint64_t applied;
};

/* ---- task -> coordinator ---- */

/* First on every connection: adopt or reset. Present values. */
struct task_hello {
    uint32_t frame_version;
    const char *library_version;
    uint32_t pid;
    uint32_t replicas;            /* local replicas it will run */
    const char *mesh_address;     /* of its mesh listener */
    struct generation generation; /* number 0: a joiner, it was in none */
    uint64_t position;
    bool clean;
    uint64_t released;
    uint64_t arrived;
    bool frozen;
    enum report_reason reason; /* when frozen */
    bool plain; /* its program keeps its state itself, and is in one generation: with other tasks
                 * all begin again, from what it saved */
};

/* A joiner has its variables and datasets, and its program has reached the first step that is left
 * to take: of `stream` (0: one without a batch). It waits for a plan. Sent again after each hello
 * until the plan is there. */
struct task_join {
    uint32_t stream;
    uint64_t epoch; /* the newest of the stream in a task_warm; or 0 */
};

/* A dataset was distributed. Sent by every task, in order of creation; all send the same. */
struct task_stream {
    uint32_t stream;
    const char *name;
    uint64_t samples; /* of its source in an epoch: ids 0 .. samples - 1; 0: not known */
    bool shares; /* each sample goes to one replica (DATA); else no claim is made across tasks */
};

/* Batches of steps under up_to are in hand; steps under applied are applied. The first arrival of
 * each run is sent also when up_to does not rise: what was claimed of a run that is left belongs to
 * the following ones. */
struct task_arrive {
    struct generation generation;
    uint64_t up_to;
    uint64_t applied;
    /* The program has begun step wanted - 1: it takes at least so many steps. At most one more than
     * are released; 0: not given. */
    uint64_t wanted;
    struct cursor cursor;           /* of the run that the program is in */
    struct consumption consumption; /* of the cursor's epoch, in steps below applied */
    struct verified verified;       /* the newest in this generation; at most applied */
};

/* Only when frozen: on abort, on a peer's error, at halt_at, at the end. */
struct task_report {
    struct generation generation;
    uint64_t position;
    bool clean;
    enum report_reason reason;
    cadre_status code; /* of REPORT_FAILED; else CADRE_OK */
    const char *text;  /* what failed; "" for orderly ones */
    bool begun;        /* the program has begun step `position`: it waits for it, or is inside it */
    uint32_t stream;   /* when begun: of that step */
    bool nested;       /* when begun: as that of the step's cursor */
    uint64_t digest;   /* of FINISHED and HALT: of the state; 0: not known */
    /* The newest verified position of this generation, plus 1: when a member is lost, or receives
     * the state of another, the job continues from what is verified. 0: it continues from its
     * position, verified or not. */
    uint64_t trusts;
    struct divergence divergence; /* of DIVERGED */
};

/* A checkpoint is durable: after fsync of its files and their folder. Only the chief sends it,
 * because mirrored state is equal everywhere. The daemon passes it on when the checkpoint can be
 * read without this host. */
struct task_part {
    struct generation generation;
    uint64_t position;
    const char *path;    /* of the manifest, below the output folder or the checkpoint folder */
    bool shared;         /* in the job's checkpoint folder, which all hosts see */
    uint64_t size_bytes; /* of the manifest */
    uint8_t sha256[LIMIT_SHA256_BYTES]; /* of the manifest */
    uint64_t digest; /* of the state that it holds (struct verified); 0: none is compared */
    bool compared;   /* all replicas were found to hold that at its position; sent again when so */
};

/* What a replica has not done, while the others of its task wait for that. */
enum hang_at {
    HANG_NONE = 0,   /* no replica of this task hangs */
    HANG_COLLECTIVE, /* it has not come to a collective */
    HANG_MEETING,    /* to cadre_merge_call */
    HANG_MERGE,      /* all are there, and the function of cadre_merge_call has not returned */
    HANG_RETURN      /* it has not returned from its function */
};

struct task_hang {
    enum hang_at at;
    uint32_t collective; /* of COLLECTIVE: which one of the step, from 1 */
    uint32_t replica;    /* among those of all tasks; the first of this task that hangs */
    uint32_t others;     /* of this task that hang as well */
};

/* The program waits in a collective for another task, or for the release of a step, so long that it
 * is reported to people. It gives no cause. Or replicas of this task wait for one of their own:
 * then `slot` is its own too, and `hang` gives the place. */
struct task_stall {
    struct generation generation;
    uint64_t position;
    uint32_t slot; /* the task that it waits for; its own: for the release */
    uint64_t waited_us;
    struct task_hang hang;
};

/* The task's machine will be taken from it, or its program wants the same: the whole job saves at
 * one step. Sent again after each hello. */
struct task_preempt {
    bool stops;        /* and leaves there; else it goes on, until this is sent once more */
    uint64_t grace_us; /* how long the job has to save; 0: the coordinator's own limit */
};

/* Of a parameter server of a ps job with backups: from now on it answers only with what the copy of
 * `by`, the incarnation of the server behind it, has; 0: there is no whole copy. The coordinator
 * records it, and returns it in task_member.backed. Sent until it does. */
struct task_backed {
    uint64_t number; /* of the statement, from 1 in each incarnation; the highest one counts */
    uint64_t by;
};

struct reported_value {
    uint32_t name; /* index in task_values.names */
    uint64_t step; /* steps that were applied when it was reported */
    double value;  /* may be not finite */
};

/* Values that the program reported (cadre_report, cadre_report_evaluation), oldest first. */
struct task_values {
    struct generation generation;
    /* The steps are the program's own numbers. Else they are those of the ledger, and a generation
     * that does steps again removes their values. */
    bool numbered;
    uint64_t lap; /* 0; of own numbers from 1, and one more whenever they went back */
    const char *const *names;
    size_t name_count;
    const struct reported_value *values;
    size_t value_count;
    uint64_t end; /* how many this process has reported, the last one of these included */
};

/* The answer to a trace_order, and what the task recorded since; each order is answered at once,
 * for the sake of its clock. */
struct task_spans {
    uint64_t id;
    uint64_t asked_ns;              /* of the order that it answers; 0: of none */
    uint64_t answered_ns;           /* the task's clock at the answer */
    uint64_t clock;                 /* which clock that is: the same number on all of one host */
    uint64_t position;              /* of the task; or own_numbers: */
    bool own_numbers;               /* how many collectives of all tasks a plain program has made */
    const struct trace_span *spans; /* each when it ended */
    size_t span_count;
    uint64_t sent; /* spans that were sent before these, in this trace */
    uint64_t lost; /* spans for which there was no room */
    bool ended;    /* nothing follows */
};

enum task_up_type {
    TASK_UP_HELLO = 1,
    TASK_UP_ARRIVE,
    TASK_UP_REPORT,
    TASK_UP_PART,
    TASK_UP_PROGRESS, /* for people; the daemon forwards the newest */
    TASK_UP_JOIN,
    TASK_UP_STREAM,
    TASK_UP_STALL,
    TASK_UP_SHARDS, /* for people, as progress; of one dataset */
    TASK_UP_PREEMPT,
    TASK_UP_BACKED,
    TASK_UP_VALUES, /* of the chief, and of the evaluator; sent until it is acknowledged */
    TASK_UP_SPANS   /* of a trace; what is lost on the way is counted */
};

struct task_up {
    enum task_up_type type;
    union {
        struct task_hello hello;
        struct task_arrive arrive;
        struct task_report report;
        struct task_part part;
        struct progress progress;
        struct task_join join;
        struct task_stream stream;
        struct task_stall stall;
        struct shards_report shards;
        struct task_preempt preempt;
        struct task_backed backed;
        struct task_values values;
        struct task_spans spans;
    };
};

/* ---- coordinator -> task ---- */

struct roster_entry {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t replicas;
    const char *mesh_address;
    uint32_t rank; /* in a part of a roster; in a whole one the index is the rank */
};

/* A new generation. The task finds its entry by its slot and incarnation (rule 12). */
struct task_plan {
    struct generation generation;
    const struct roster_entry *roster;
    size_t roster_count;
    /* 0: the roster is whole. Else it has so many members, and the plan a part of it, in any order:
     * the receiving host's and their neighbours. See roster_tree.h. */
    uint32_t members;
    uint64_t resume; /* position; what was admitted at or beyond it is admitted again */
    uint32_t source; /* rank that sends its state to those not at `resume`; or SOURCE_NONE */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    /* The state of this position is saved while the training goes on; POSITION_NONE: none. At a
     * STOP it is always saved. */
    uint64_t checkpoint_at;
    uint64_t halt_at; /* POSITION_NONE: none */
    enum halt_kind halt_kind;
    uint32_t halt_stream; /* of HALT_REGROUP; STREAM_ANY */
};

/* To a task whose job is under way: it is a joiner. It prepares alone (variables, datasets) until
 * its program reaches the first step that is left, sends task_join and waits for a plan. */
struct task_warm {
    const struct stream_position *streams; /* as far as they are reported */
    size_t stream_count;
    uint32_t tasks; /* of the roster now, for people */
};

/* A task of a ps job, as the others see it. */
struct task_member {
    uint32_t slot;
    uint64_t incarnation;
    uint32_t attempts;   /* how often the slot was started in this generation, from 1 */
    bool here;           /* it has sent hello, and its end is not recorded */
    const char *address; /* where it listens; "" until it sends hello */
    /* Of a parameter server, as it is recorded. number 0: this incarnation has sent nothing yet,
     * and the record is of the one before. Its variables may be taken from that copy, and from no
     * other. */
    struct task_backed backed;
};

/* To the tasks of a ps job: full state, never a delta, sent to all whenever any part changes. The
 * chief receives all slots, the others the chief and the servers. */
struct task_members {
    /* Of the list to the chief, or of that to the others: it rises when one changes, and no two
     * starts of the coordinator give the same ones. */
    uint64_t number;
    /* Only the members that differ from the list of the number before; a task that does not have
     * that ignores the message: the whole list follows, because the task said hello again. */
    bool changes;
    struct generation generation; /* of the chief, and begins with it */
    uint8_t key[LIMIT_JOB_KEY_BYTES];
    const struct task_member *members; /* in order of slot */
    size_t member_count;
};

/* Full state, never a delta: sent whenever any part changes. */
struct task_release {
    struct generation generation;
    uint64_t up_to;
    uint64_t checkpoint_at;
    uint64_t halt_at;
    enum halt_kind halt_kind;
    uint32_t halt_stream;
    uint64_t published; /* position of the newest published checkpoint; POSITION_NONE: none */
};

enum task_down_type {
    TASK_DOWN_PLAN = 1,
    TASK_DOWN_RELEASE,
    TASK_DOWN_ABORT,       /* freeze and report */
    TASK_DOWN_RESET,       /* state is void; exit, a new incarnation is started */
    TASK_DOWN_GOODBYE,     /* exit permission */
    TASK_DOWN_SUPERSEDED,  /* exit without writing anything */
    TASK_DOWN_REFUSED,     /* hello not accepted: code and text say why */
    TASK_DOWN_WARM,        /* the answer to the hello of a joiner */
    TASK_DOWN_MEMBERS,     /* to the tasks of a ps job */
    TASK_DOWN_VALUES_KEPT, /* what of task_values is stored */
    TASK_DOWN_TRACE        /* what the task is to record */
};

struct task_refused {
    cadre_status code;
    const char *text;
};

struct task_down {
    enum task_down_type type;
    struct generation generation; /* of abort and bye */
    union {
        struct task_plan plan;
        struct task_release release;
        struct task_warm warm;
        struct task_members members;
        struct task_refused refused;
        uint64_t values_kept; /* as task_values.end */
        struct trace_order trace;
        const char *reason; /* of abort: one sentence with the lost task, for the program's error */
    };
};

#endif
