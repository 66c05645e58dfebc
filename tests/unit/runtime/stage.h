/* SPDX-License-Identifier: Apache-2.0
 * A job of several tasks under a stand-in for daemon and coordinator: one thread, real sockets,
 * real processes (this test, run again). It plans, releases, aborts and lets joiners in as the real
 * ones do, has no workers and records, and keeps the reports of the tasks. */
#ifndef CADRE_TESTS_RUNTIME_STAGE_H
#define CADRE_TESTS_RUNTIME_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/model/task_message.h"

#define STAGE_TASKS_MAX        8 /* attempts of all tasks together */
#define STAGE_CONSUMPTIONS_MAX 64
#define STAGE_FOLDER_BYTES     80

struct stage_job {
    const char *self; /* this test's executable; a task is started as `self what` */
    const char *what;
    uint32_t tasks;
    uint32_t replicas;
    bool replaces;  /* a task that dies is started again */
    uint32_t grows; /* so many more are started once `grows_at` steps are committed */
    uint64_t grows_at;
    uint64_t greets_at; /* no step from here on before those have sent hello; 0: it does not wait */
    uint64_t asks_at;   /* no step from here on before one of those waits for a step; 0: likewise */
    uint64_t joins_behind; /* this step is released once one of those waits to join, which comes in
                            * behind it: a mark "aligned" is left when all members but one have
                            * begun the next step; 0: anywhere */
    uint64_t waits_at; /* no step from here on before all tasks are there; 0: it does not wait */
    uint64_t kills_at_generation; /* once this one is planned ... */
    uint32_t kills;               /* ... this attempt is killed; generation 0: none */
    uint32_t kills_at_part; /* when a checkpoint is reported: this attempt is killed, + 1; or 0 */
    uint32_t parts_lost;    /* so many reported ones are ignored */
    bool kills_stalled;     /* a task that is waited for in a collective for long is killed ... */
    bool drops_stalled;     /* ... or left out of the next plan, and runs on */
    uint64_t resume;        /* goes on from a checkpoint of this position ... */
    const char *restore;    /* ... with this manifest */
    bool rotates;           /* each plan gives all members other ranks */
    bool spreads;           /* the tasks get all rosters in parts; else those of even generations */
    const char *const *environment; /* for all tasks; ended by NULL; or NULL */
};

struct stage_consumption {
    struct cursor cursor;
    struct consumption consumption;
};

/* What became of it. */
struct stage_end {
    bool done;                       /* all members finished */
    uint64_t position;               /* where */
    char folder[STAGE_FOLDER_BYTES]; /* with what it left */
    uint64_t generations;
    uint32_t roster;                /* of the last one */
    uint32_t started;               /* attempts */
    char text[512];                 /* why it failed */
    char *printed[STAGE_TASKS_MAX]; /* by each attempt, on stdout; owned */
    char *erred[STAGE_TASKS_MAX];
    int exit_code[STAGE_TASKS_MAX]; /* -1: by a signal */
    struct stage_consumption consumptions[STAGE_CONSUMPTIONS_MAX];
    size_t consumption_count;
    struct task_stream streams[4]; /* as last reported; names are copies in stream_names */
    char stream_names[4][128];
    uint32_t stream_count;
    uint32_t stalls;
    uint32_t stall_slot; /* of the last */
    uint64_t published;
    uint64_t published_at_goodbye; /* when the members finished */
    uint32_t parts;                /* checkpoints that were reported as written */
    uint64_t regroup_us;           /* the longest from a task's end to the next release */
};

/* Runs it to its end, at most 20 s. */
void stage_run(const struct stage_job *job, struct stage_end *ret_end);
/* Frees what the end owns. */
void stage_end_free(struct stage_end *end);

#endif
