/* SPDX-License-Identifier: Apache-2.0
 * A task's side of the protocol (section 3, "Task"): JOIN -> SYNC -> RUN -> (FROZEN -> SYNC ...) ->
 * EXIT. Pure: one event in, a bounded list of actions out. The runtime (worker/library/runtime) is
 * its shell. */
#ifndef CADRE_WORKER_TASK_CORE_H
#define CADRE_WORKER_TASK_CORE_H

#include <stddef.h>

#include "common/model/task_message.h"

/* The admission window of a fresh task, in steps. It doubles when the program had to wait for a
 * release, and when half of it takes less than SHORT, because messages then cost more than steps.
 * It halves again when half of it takes more than LONG, because halts would take effect late. */
#define TASK_WINDOW_START_STEPS   2
#define TASK_WINDOW_HALF_SHORT_US 100000
#define TASK_WINDOW_HALF_LONG_US  250000

/* So many steps behind a run are claimed before its successor is known, so that short runs share a
 * message. What the ended ones consumed goes before it, and is kept to be sent again. */
#define TASK_STEPS_BEHIND_RUN 192

enum task_phase {
    TASK_JOIN = 1, /* in no generation yet */
    TASK_SYNC,     /* a plan arrived: the mesh is formed and state is received */
    TASK_RUN,
    TASK_FROZEN, /* enters nothing and applies nothing until the next plan, or bye */
    TASK_EXIT    /* ended: it sends and accepts nothing any more */
};

/* Epochs that the program left in this generation: their consumption is sent again on each
 * connection, because the daemon or the coordinator may have been restarted. An arrival is due
 * when so many are not sent yet. */
#define TASK_CONSUMED_MAX 66

struct task_consumed {
    struct cursor cursor;
    uint64_t applied;
    struct consumption consumption;
};

/* The shell reads these fields (under its own lock) and writes none of them. */
struct task_core {
    enum task_phase phase;
    uint32_t slot;
    uint64_t incarnation;
    uint32_t replicas;
    uint32_t pid;
    char mesh_address[LIMIT_ADDRESS_BYTES];
    struct generation generation;
    bool alone; /* the only member of its generation */
    uint64_t resume;
    uint64_t position; /* applied */
    bool clean;
    bool staged;           /* in SYNC: not clean only because it receives beside its own state */
    bool applying;         /* between the last confirmed collective and APPLIED */
    uint64_t ready;        /* batches under it are in hand, or need no message to be had */
    uint64_t arrived;      /* what was last sent as up_to */
    uint64_t sent_applied; /* what was last sent as applied */
    uint64_t ticked;       /* its position at the last tick */
    bool claimed;          /* steps were claimed in this generation */
    /* The program has begun step wanted - 1 in this generation; the resume position: none yet. */
    uint64_t wanted;
    uint64_t wanted_sent; /* what was last sent of it */
    uint64_t released;
    uint64_t checkpoint_at; /* before this step the chief saves the state */
    uint64_t halt_at;
    enum halt_kind halt_kind;
    enum report_reason reason; /* when frozen */
    bool report_due;           /* froze while applying: the report waits for APPLIED */
    bool connected;
    bool finished;         /* the program called cadre_finish in this generation */
    uint32_t behind_steps; /* claimed behind a run; the simulator draws it */
    uint32_t window_steps; /* admission window, adapts between 1 and LIMIT_WINDOW_STEPS */
    uint32_t window_least; /* the widest that waits for releases made: time alone does not narrow it
                            * further */
    uint64_t now_us;
    uint64_t half_over_us; /* when half a window was last over; 0: never yet */
    uint32_t halt_stream;
    struct cursor cursor;           /* of the run of steps that the program is in */
    struct consumption consumption; /* of the cursor's epoch, over the steps that are applied */
    struct task_consumed consumed[TASK_CONSUMED_MAX]; /* the newest is the last */
    uint32_t consumed_count;
    uint32_t consumed_unsent; /* of them, the newest: the next arrival is sent behind them */
    bool warm;                /* until its first SYNCED: the job ran before it, it prepares alone */
    bool joins;               /* warm, and its program has come to a step of join_stream */
    uint32_t join_stream;
    uint64_t join_epoch;      /* the newest epoch of that stream that a WARM named; or 0 */
    bool begun;               /* the program waits for step `position`, or is inside it: */
    uint32_t begun_stream;    /* of this stream, */
    bool begun_nested;        /* in a run that is nested. All three outlive a generation. */
    uint64_t published;       /* newest published checkpoint that it was notified of, or
                               * POSITION_NONE */
    cadre_status code;        /* not OK: the program failed, finally; of REPORT_FAILED */
    struct verified verified; /* the newest in this generation */
    bool verified_sent;       /* an arrival reported it */
    uint64_t digest;          /* of the state at `position`, of an orderly report; 0: not known */
    bool plain; /* set by the shell, before it connects: the program keeps its state itself, so that
                 * of a task that lost a peer is never whole for the others */
    bool verifies_losses; /* set by the shell: the job is to go on from what is verified when a
                             member is lost */
    struct divergence divergence; /* of REPORT_DIVERGED */
    struct task_part part;        /* the newest; its path is part_path */
    char part_path[LIMIT_FILE_NAME_BYTES];
    bool preempted; /* it has to leave, or to save: */
    struct task_preempt preempt;
    char text[LIMIT_TEXT_BYTES]; /* why it froze; "" when in order */
};

enum task_event_type {
    TASK_EVENT_CONNECTED =
        1, /* (again): sends hello with its present values, then what may have been lost */
    TASK_EVENT_DISCONNECTED,
    TASK_EVENT_DOWN, /* a message from the coordinator */
    /* The mesh of the plan's generation is formed and the state is at `resume`, clean. `cursor` and
     * `consumption` are those of the received state; a task that kept its own (`clean` was true
     * before) need not give them. If its program had begun the step before `resume`, this completes
     * it. */
    TASK_EVENT_SYNCED,
    /* The mesh did not form or the state did not arrive: text. A task that held a whole state
     * before still has it, because the shell writes what it receives beside it until SYNCED (rule
     * 11). */
    TASK_EVENT_SYNC_FAILED,
    /* The program begins the step at its position. It is of the run `cursor`, whose input can be
     * had up to `position`; `consumption` of its epoch so far counts when the program turns to
     * another epoch. Required at the first step of each run, at the first of each generation (after
     * SYNCED, also when the program begins again a step that it was inside of: no step is claimed
     * before) and when `position` has risen. Given at every step it costs no message, and `begun`
     * in reports is exact. A step without a batch is a run of stream 0 with one step. */
    TASK_EVENT_READY,
    /* The last collective of step `position` is confirmed on the host: about to write variables.
     * The shell writes them only when `applying` is true afterwards; it stays false when the task
     * was frozen meanwhile (rule 10). */
    TASK_EVENT_APPLY,
    TASK_EVENT_APPLIED, /* step `position` is applied: position is now one more; `consumption` of
                         * the cursor's epoch, that step in it */
    TASK_EVENT_STALLED, /* the program waits for the release of step `position`: widen the window if
                         * that helps, and report the wait. After a READY of this generation. */
    /* A collective failed with ABORTED, UNAVAILABLE or DEADLINE_EXCEEDED: text. While applying, the
     * apply was torn: the state is dirty. */
    TASK_EVENT_PEER_ERROR,
    /* The program itself failed: code, text. Final, in any phase: it is reported in the next
     * generation too. While applying, the apply was torn. */
    TASK_EVENT_FAILED,
    /* A warm task's program has reached its first step, of `cursor.stream`; the newest epoch of it
     * that a WARM named is `cursor.epoch`, or 0. */
    TASK_EVENT_JOIN,
    TASK_EVENT_STREAM, /* a dataset was distributed: stream. Kept by the shell, which sends all of
                        * them again after CONNECTED */
    TASK_EVENT_STALL,  /* a thread has waited for long: stall, whose generation the core fills in */
    TASK_EVENT_FLUSH,  /* its position is to be reported now: a checkpoint waits for it */
    /* About a second has passed since the last one: a task that took no step meanwhile reports its
     * position, if no message has carried it yet. */
    TASK_EVENT_TICK,
    /* The program found the end of the epoch of `cursor`, whose length was not known before: it has
     * cursor.steps steps. Ignored when the program is in another epoch. */
    TASK_EVENT_END,
    /* The program begins the step at its position: all that it does between two steps is done, and
     * no part of the step. Required only where a halt takes effect. `digest` of its state, for the
     * report; 0: not known. */
    TASK_EVENT_PAUSE_POINT,
    TASK_EVENT_PREEMPT, /* the task has to leave its machine, or its program wants that: preempt */
    TASK_EVENT_PART,    /* a checkpoint part is durable: part, whose generation the core fills in */
    /* The program is done with its last step, and in this generation with its last checkpoint:
     * given again in the next one. `digest` as of PAUSE_POINT. */
    TASK_EVENT_FINISH,
    /* The replicas' states at verified.position were found equal. Sent with the next arrival; at
     * once when a checkpoint waits for it. */
    TASK_EVENT_VERIFIED,
    /* They were found not to be the same: divergence, text. A step that is under way is not
     * applied. A task that is frozen already, and not in order, reports it too. */
    TASK_EVENT_DIVERGED
};

struct task_event {
    enum task_event_type type;
    uint64_t now_us; /* monotonic; 0: not known, the window then adapts to waits alone */
    uint64_t position;
    struct cursor cursor;
    struct consumption consumption;
    const struct task_down *down;
    const struct task_part *part;
    const struct task_stream *stream;
    const struct task_stall *stall;
    const struct task_preempt *preempt;
    const struct divergence *divergence;
    struct verified verified;
    uint64_t digest;
    cadre_status code;
    const char *text;
};

enum task_action_type {
    TASK_ACTION_SEND = 1, /* to the coordinator, through the daemon */
    TASK_ACTION_FORM,     /* form the mesh of the plan in the event, take over state if not clean at
                             resume */
    TASK_ACTION_ABORT_MESH, /* wake all threads out of collectives; text is the reason */
    TASK_ACTION_CHANGED,    /* released, phase or halt changed: wake the threads that wait */
    /* Prepare alone; the streams' positions are in the event's down.warm. Once more, with newer
     * ones, after a reconnect, and when the stream that it waits for has ended: then its program
     * may continue and JOIN at another one. */
    TASK_ACTION_WARM,
    TASK_ACTION_EXIT_OK,  /* bye: the program may end */
    TASK_ACTION_EXIT_VOID /* reset, superseded or refused: end without running the user's code after
                             the loop */
};

struct task_action {
    enum task_action_type type;
    struct task_up up;           /* of SEND; strings point into the core or the event */
    char text[LIMIT_TEXT_BYTES]; /* of ABORT_MESH and EXIT_VOID */
};

#define TASK_ACTIONS_PER_STEP_MAX (TASK_CONSUMED_MAX + 16)

struct task_actions {
    struct task_action items[TASK_ACTIONS_PER_STEP_MAX];
    size_t count;
};

/* In JOIN, with the widest strings copied. The struct is the caller's; it needs no closing. */
void task_core_init(struct task_core *core, uint32_t slot, uint64_t incarnation, uint32_t replicas,
    uint32_t pid, const char *mesh_address);
/* `out` is emptied first. Asserts on events that only a bug of the shell can make (a step applied
 * that was not about to be); what comes in `down` is checked. */
void task_core_step(
    struct task_core *core, const struct task_event *event, struct task_actions *out);

/* Whether a replica may enter the first collective of step `position` now (rule 1): RUN, released >
 * position, position < halt_at, not frozen. The shell has saved the checkpoint of checkpoint_at by
 * then, because that is known before the step before it is entered. */
bool task_core_may_enter(const struct task_core *core, uint64_t position);

/* Whether it is where its job is to stop: before the next step its shell gives PAUSE_POINT. */
bool task_core_stops_next(const struct task_core *core);
/* Whether it is before the step at which its generation pauses for a joiner or a leaving task, and
 * has begun it: as soon as no part of that step is left its shell gives PAUSE_POINT. */
bool task_core_halts_next(const struct task_core *core);
/* Whether it has stopped: the state is saved there, and it waits for goodbye. */
bool task_core_stops(const struct task_core *core);

/* NULL, or the text of the broken invariant. */
const char *task_core_invariant(const struct task_core *core);

#endif
