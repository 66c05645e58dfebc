/* SPDX-License-Identifier: Apache-2.0
 * What happened to a job and when, as its coordinator's ledger has it. What cadre_client_history()
 * of cadre/client.h gives; texts and lists live as long as the result that they are in. */
#ifndef CADRE_CLIENT_HISTORY_H
#define CADRE_CLIENT_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cadre/job.h"
#include "cadre/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an event is. Kinds are only added: one of a later coordinator is a higher number. */
typedef enum cadre_event_kind {
    CADRE_EVENT_SUBMITTED = 1,
    CADRE_EVENT_STARTED,         /* placed on workers */
    CADRE_EVENT_TASK_STARTED,    /* a worker started the process of `task` */
    CADRE_EVENT_TASK_ENDED,      /* that exited; `text` is what it printed last */
    CADRE_EVENT_TASK_LOST,       /* with its worker, or it did not answer */
    CADRE_EVENT_GENERATION,      /* a membership began: `roster` goes on from step `position` */
    CADRE_EVENT_CHECKPOINT,      /* the checkpoint of step `position` was published */
    CADRE_EVENT_CHECKPOINT_LOST, /* and is damaged */
    /* Step `position` has not ended for `waited_us`: the coordinator's --slow-after, and
     * --slow-factor times the median of the job's steps. `task` is the one that is waited for. */
    CADRE_EVENT_STALLED,
    CADRE_EVENT_WENT_ON,   /* the stall is over */
    CADRE_EVENT_HALTED,    /* all tasks stop at step `position` */
    CADRE_EVENT_DRAINED,   /* a worker that has tasks of the job */
    CADRE_EVENT_PREEMPTED, /* it gave its slots back, and is queued again */
    CADRE_EVENT_DIVERGED,  /* the states of its tasks differ after `position` steps */
    CADRE_EVENT_ENDING,    /* its tasks are to end */
    CADRE_EVENT_ENDED,
    CADRE_EVENT_COORDINATOR_RESTARTED /* while the job ran */
} cadre_event_kind;

/* "task_started" and so on; "unknown" for a kind that this library does not know. Never NULL. */
CADRE_API const char *cadre_event_kind_name(cadre_event_kind kind);

/* One event. What does not apply to its kind is 0, false or "". */
typedef struct cadre_event {
    uint64_t number;  /* among the events of its job, from 1 */
    uint64_t time_us; /* Unix time by the coordinator's clock */
    cadre_event_kind kind;
    uint64_t generation; /* the newest one then; 0: none yet */
    uint64_t position;   /* steps committed then, unless its kind is described with another one */
    bool of_task;        /* it concerns: */
    uint32_t task;
    uint64_t incarnation;
    uint32_t tasks;     /* of STARTED and GENERATION: how many */
    uint64_t undone;    /* of GENERATION: steps that all had applied, and that are done again */
    bool restarted;     /* of GENERATION: no state was left: from a checkpoint or the beginning */
    uint64_t waited_us; /* of STALLED and WENT_ON */
    int exit_code;      /* of TASK_ENDED, ENDING and ENDED */
    int exit_signal;    /* of TASK_ENDED: the signal that ended it; 0: none did */
    cadre_job_state state; /* of ENDING and ENDED; else 0 */
    cadre_status code;
    const char *worker;
    const char *roster; /* of GENERATION: its tasks, as "0-2,5", and ",..." for what is too long */
    const char *text;   /* a sentence for people */
} cadre_event;

/* A page of a job's history: the result of cadre_client_history(). */
typedef struct cadre_history {
    uint64_t job;
    const char *name;
    cadre_job_state state;     /* of the job, now */
    const cadre_event *events; /* in order of number */
    size_t count;
    uint64_t last;    /* number of the job's newest event; 0: it has none */
    uint64_t dropped; /* events behind the first 64 that are not kept: a job keeps 4096 */
    bool more;        /* there are events behind these: ask again after the last one of them */
} cadre_history;

#ifdef __cplusplus
}
#endif
#endif
