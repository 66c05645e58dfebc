/* SPDX-License-Identifier: Apache-2.0
 * The agent's state machine: which tasks run on this host, each from its start until it is
 * collected; the relay between them and the coordinator; and the folding of their arrivals into
 * one. It decides nothing about jobs. Pure: one event in, a bounded list of actions out; the shell
 * (worker/host/agent) owns processes, sockets, files and clocks. */
#ifndef CADRE_WORKER_AGENT_CORE_H
#define CADRE_WORKER_AGENT_CORE_H

#include <stddef.h>

#include "common/model/agent_message.h"

enum agent_task_phase {
    AGENT_TASK_NONE = 0,
    AGENT_TASK_PREPARING, /* files are fetched, folders made */
    AGENT_TASK_RUNNING,
    AGENT_TASK_TERMINATING, /* SIGTERM sent, grace runs */
    AGENT_TASK_KILLED,      /* SIGKILL sent to the group */
    AGENT_TASK_GONE,        /* reaped; logs and outputs are being collected */
    AGENT_TASK_COLLECTED    /* collected; removed when the coordinator acknowledges it */
};

struct agent_options {
    uint32_t slots;
    uint64_t heartbeat_us;
    uint64_t orphan_us; /* without a coordinator for so long, tasks are ended */
    uint64_t grace_us;  /* SIGTERM to SIGKILL when the daemon drains or orphans */
};

/* Datasets of local jobs that are kept to be sent again: all of one job, and a few of each of many.
 * One beyond that is sent when it arrives and not again. */
#define AGENT_STREAMS(slots) (LIMIT_STREAMS + 4 * (slots))

/* Epochs that ended, kept for each generation: what they consumed is sent again. */
#define AGENT_CONSUMED_MAX 66

/* The memory of a core for so many slots (1 to LIMIT_SLOTS_PER_WORKER); alignment of max_align_t.
 */
size_t agent_core_bytes(uint32_t slots);
struct agent_core;
/* In memory that the caller owns and keeps; the core needs no closing. */
struct agent_core *agent_core_init(void *memory, const struct agent_options *options);

enum agent_event_type {
    AGENT_EVENT_TICK = 1,
    /* A new stream to the coordinator: hello is sent at once. What else the coordinator may have
     * missed follows its welcome: nothing is removed before its receipt is known (README.md). */
    AGENT_EVENT_LINK_UP,
    AGENT_EVENT_LINK_DOWN,
    AGENT_EVENT_DOWN,     /* a message from the coordinator, except AGENT_DOWN_LOG_ACK, which the
                           * shell handles */
    AGENT_EVENT_PREPARED, /* the task's files and folders are ready: spawn it. Ignored, as FAILED
                           * is, if the task was stopped before */
    /* Before the first link: an earlier incarnation of this daemon started the task of the START in
     * `down`, and it runs as `pid`, or `ended`: then EXITED follows when its last output is read.
     * At most AGENT_ENTRIES(slots) of them; one for which no slot is left is ended. */
    AGENT_EVENT_ADOPTED,
    AGENT_EVENT_SPAWNED,   /* its process runs: pid. Comes before its first frame. */
    AGENT_EVENT_FAILED,    /* it could not be prepared or spawned: exit and code say why */
    AGENT_EVENT_EXITED,    /* the process was reaped and nothing of its group is left: exit */
    AGENT_EVENT_COLLECTED, /* logs and outputs are at the coordinator, folders are removed: code,
                            * text */
    /* The checkpoint of the task's newest PUBLISH can be read without this host (code OK), or that
     * failed: the shell logs why, and another PUBLISH follows after a pause, as long as the task
     * has a process. No event follows for one that a newer PUBLISH replaced. */
    AGENT_EVENT_PUBLISHED,
    AGENT_EVENT_TASK_UP,     /* a frame from a task, whose socket says which task it is */
    AGENT_EVENT_TASK_CLOSED, /* its socket closed; it may come back */
    AGENT_EVENT_DRAIN        /* SIGTERM to the daemon: tasks have the grace to end by themselves */
};

struct agent_event {
    enum agent_event_type type;
    uint64_t now_us;
    struct task_ref task;
    uint32_t pid;
    bool ended;
    struct task_exit exit;
    cadre_status code;
    const char *text;
    const struct agent_down *down;
    const struct task_up *up;
};

enum agent_action_type {
    /* Up to the coordinator. Strings point into the event or the core: valid until the next step.
     * The shell fills in a hello, except `draining`; its tasks are all that agent_core_task
     * returns, also ended ones, because their exits follow. */
    AGENT_ACTION_SEND = 1,
    AGENT_ACTION_PREPARE, /* the task of the START in this event */
    AGENT_ACTION_SPAWN,
    AGENT_ACTION_SIGNAL,  /* signal number to the task's whole group */
    AGENT_ACTION_COLLECT, /* send what is left of its log and its outputs, then remove its folders.
                           * It may come while the task is being prepared: the shell ends that */
    /* Make the checkpoint of `part` readable without this host; then PUBLISHED. Only the newest of
     * a task counts: it replaces one that is still being published. A shared one is not published:
     * its part is sent at once. */
    AGENT_ACTION_PUBLISH,
    AGENT_ACTION_DELIVER,    /* `down.tell.down` of this event to the task */
    AGENT_ACTION_REFUSE,     /* the frame was not acceptable: send the task code and text, close its
                              * socket */
    AGENT_ACTION_FORGET,     /* remove all that is kept of the task */
    AGENT_ACTION_FORGET_JOB, /* and what is kept between attempts of tasks of task.job */
    AGENT_ACTION_EXIT        /* drained, and all is acknowledged: the daemon may end */
};

struct agent_action {
    enum agent_action_type type;
    struct task_ref task;
    struct agent_up up;
    const struct task_part *part; /* of PUBLISH; owned by the core, valid until the next step */
    int signal;
    cadre_status code;
    char text[LIMIT_TEXT_BYTES];
};

/* Actions that one step may append: after a welcome everything is sent once more. */
#define AGENT_ACTIONS_PER_STEP_MAX(slots)                                                          \
    ((8 + AGENT_CONSUMED_MAX) * AGENT_ENTRIES((size_t)(slots)) + AGENT_STREAMS((size_t)(slots)) +  \
        16)

struct agent_actions {
    struct agent_action *items;
    size_t capacity;
    size_t count;
};

/* Appends to `out`, which has AGENT_ACTIONS_PER_STEP_MAX free. Asserts on events that only a bug of
 * the shell can make (an exit of a task that does not run); what comes in `down` and `up` is
 * checked. */
void agent_core_step(
    struct agent_core *core, const struct agent_event *event, struct agent_actions *out);
/* When a TICK is due; UINT64_MAX: never. */
uint64_t agent_core_wake_us(const struct agent_core *core);

struct agent_task_view {
    struct task_ref task;
    enum agent_task_phase phase;
    uint32_t pid;
    bool over; /* adopted after its end: it has no process */
    bool connected;
    struct generation generation;
    uint64_t up_to;
    uint64_t applied;
};

/* The local tasks, by index below AGENT_ENTRIES(slots); false for an empty entry. */
bool agent_core_task(const struct agent_core *core, uint32_t i, struct agent_task_view *ret_view);

/* Whether the coordinator's welcome was received on this link. */
bool agent_core_linked(const struct agent_core *core);

/* NULL, or the text of the broken invariant. */
const char *agent_core_invariant(const struct agent_core *core);

/* A hash of the state: equal events give equal digests, on every machine and compiler. */
uint64_t agent_core_digest(const struct agent_core *core);

#endif
