/* SPDX-License-Identifier: Apache-2.0
 * The history of a job: what happened to it and when, as the ledger keeps it. An event is recorded
 * with what it describes; a step alone is none. */
#ifndef CADRE_MODEL_HISTORY_H
#define CADRE_MODEL_HISTORY_H

#include "common/model/job.h"

/* The numbers are those of the wire, of the ledger and of client.h: they stay. */
enum history_kind {
    HISTORY_SUBMITTED = 1,
    HISTORY_STARTED, /* placed on workers: `tasks` of them */
    HISTORY_TASK_STARTED,
    HISTORY_TASK_ENDED, /* exit_code, exit_signal, and its last line as text */
    HISTORY_TASK_LOST,
    HISTORY_GENERATION, /* position: where it resumes; tasks, roster, undone, restarted */
    HISTORY_CHECKPOINT, /* published: position */
    HISTORY_CHECKPOINT_LOST,
    HISTORY_STALLED, /* position: the step that does not end; slot: the task that is waited for */
    HISTORY_WENT_ON, /* waited_us: how long it did not end */
    HISTORY_HALTED,  /* position: where all tasks stop */
    HISTORY_DRAINED, /* a worker with tasks of the job */
    HISTORY_PREEMPTED,
    HISTORY_DIVERGED, /* position: where the states of tasks differ */
    HISTORY_ENDING,   /* its tasks are to end: state, code and text of what it will have been */
    HISTORY_ENDED,
    HISTORY_COORDINATOR_RESTARTED /* while the job ran */
};

#define HISTORY_SLOT_NONE UINT32_MAX

/* Texts are borrowed. What does not apply to its kind is 0, "" or HISTORY_SLOT_NONE. */
struct history_event {
    uint64_t number;  /* of the events of its job, from 1 */
    uint64_t time_us; /* wall clock of the coordinator */
    enum history_kind kind;
    uint64_t generation; /* the newest one then */
    uint64_t position;   /* steps committed then, unless its kind has another */
    uint32_t slot;
    uint64_t incarnation;
    uint32_t tasks;
    uint64_t undone; /* steps that were applied by all tasks, and are done again */
    bool restarted;  /* no state was left: from a checkpoint, or from the beginning */
    uint64_t waited_us;
    int32_t exit_code;
    int32_t exit_signal;
    enum job_state state; /* of ENDING and ENDED */
    cadre_status code;
    const char *worker;
    const char *roster; /* the tasks of the generation, as "0-2,5"; ",..." when they are many */
    const char *text;   /* a sentence for people */
};

/* "task_started" and so on; "unknown" for a kind of a later version. */
const char *history_kind_name(enum history_kind kind);

#endif
