/* SPDX-License-Identifier: Apache-2.0
 * The inside of a plain program: a task that is in one generation in its whole incarnation. It does
 * not report that its state is whole until its end, so a job that loses a task has no state to go
 * on from and starts again, all tasks together. Steps, replicas and strategies are not used. */
#ifndef CADRE_RUNTIME_PLAIN_H
#define CADRE_RUNTIME_PLAIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cadre/plain.h"
#include "common/model/job.h"
#include "common/model/limits.h"
#include "worker/library/runtime/plain/plain_group.h"
#include "worker/library/runtime/plain/plain_sender.h"
#include "worker/library/runtime/task/membership.h"

struct plain;
struct event_log;

struct plain_report {
    bool numbered; /* the program has named a step */
    uint64_t step;
    uint64_t steps;
    uint64_t reported_us;
    bool changed;   /* since it was last sent or drawn */
    bool bar_drawn; /* a bar that is redrawn is on the terminal */
    uint32_t metric_count;
    struct metric metrics[LIMIT_METRICS]; /* names point into `names` */
    uint64_t reported[LIMIT_METRICS];     /* how often each was */
    char names[LIMIT_METRICS][LIMIT_NAME_BYTES];
    uint64_t event_step;      /* of the last value for the event file */
    struct event_log *events; /* NULL: none, or closed */
};

/* Opens the log of event files, if any are wanted. */
cadre_status plain_report_open(struct plain *plain, struct cadre_error *error);

/* Sends or prints what is new, at the end, and ends the bar on the terminal and the event file. */
void plain_report_end(struct plain *plain);

/* A state is about to be saved: the values up to it are in the event file before it counts. */
void plain_report_flush(struct plain *plain);

/* Frees what is left. */
void plain_report_close(struct plain *plain);

/* The thread that calls the program's function when the job is over. */
struct plain_abort_watch {
    bool runs;
    bool stop; /* under the task's lock */
    pthread_t thread;
    struct task *task;
    cadre_abort_function function;
    void *user;
};

/* The state that the program has saved, and where it stands among the steps of the job. */
struct plain_saves {
    bool synced;       /* since the first save this task is at a step of its job */
    uint64_t position; /* of the job: states that were saved before */
    bool left;         /* the job goes on in other processes; its state is saved */
    char run[33];      /* rank 0: the run whose files it may remove; "": not known yet */
};

struct plain {
    const struct environment *environment;
    struct mesh_listener *listener;
    struct task *task;
    struct task_roster roster;
    struct cadre_plain_group all;     /* the tasks */
    struct cadre_plain_group *groups; /* that are open */
    struct plain_sender sender;
    _Atomic(const char *) busy; /* the function that is under way; NULL: none */
    struct cadre_error failed;  /* code not OK: final, returned by all that follows */
    struct plain_abort_watch watch;
    struct plain_report report;
    struct plain_saves saves;
};

struct plain_ranks;
/* The process is a task of that plain program from now on, with these ranks for good. */
void plain_current_begin(struct plain *plain, const struct plain_ranks *at);
/* The end of the program, after which no function can be called. */
void plain_current_end(struct plain *plain);

/* NULL before the beginning and after the end. */
const struct plain *plain_current(void);

/* Whether the calling thread is the one of cadre_on_abort. */
bool plain_is_abort_watch(void);

/* Begins a call of `function`: FAILED_PRECONDITION before the beginning, after the end, and while
 * another is under way. Ends with plain_leave, on success. */
cadre_status plain_enter(const char *function, struct plain **ret_plain, struct cadre_error *error);
/* Ends the call. */
void plain_leave(struct plain *plain);
/* plain_enter for the last call, also when the program has failed. */
cadre_status plain_enter_last(
    const char *function, struct plain **ret_plain, struct cadre_error *error);

/* A collective of `plain` has returned `status`: an error of a peer or the mesh is final from now
 * on, and is reported to the coordinator. Returns the status. */
cadre_status plain_end_collective(
    struct plain *plain, cadre_status status, struct cadre_error *error);

/* Ends the thread of cadre_on_abort, if there is one. */
void plain_abort_watch_close(struct plain_abort_watch *watch);

/* The ranks of this task. */
struct plain_ranks {
    uint32_t rank;
    uint32_t tasks;
    uint32_t local_rank;
    uint32_t local_tasks;
};
/* Whether the process is a task of a plain program, also after its end; then *ret_standing is set.
 */
bool plain_get_ranks(struct plain_ranks *ret_standing);

#endif
