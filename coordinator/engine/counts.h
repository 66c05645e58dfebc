/* SPDX-License-Identifier: Apache-2.0
 * What an engine has counted since it was opened: for monitors, never for a decision. */
#ifndef CADRE_COORDINATOR_ENGINE_COUNTS_H
#define CADRE_COORDINATOR_ENGINE_COUNTS_H

#include "common/base/histogram.h"
#include "common/model/job.h"

/* Why a generation was formed. */
enum engine_formed {
    ENGINE_FORMED_STARTED, /* the first, or after a time in the queue */
    ENGINE_FORMED_LOST,    /* a worker was lost, with tasks */
    ENGINE_FORMED_FAILED,  /* a task failed, or was replaced */
    ENGINE_FORMED_JOINED,  /* it has more tasks than the one before */
    ENGINE_FORMED_DRAINED, /* it has not, and no worker was lost: tasks went elsewhere */
    ENGINE_FORMED_COUNT
};

struct engine_counts {
    uint64_t submitted;
    uint64_t ended[JOB_PREEMPTED + 1]; /* by final state */
    uint64_t restarts;                 /* of jobs, because tasks failed by themselves */
    uint64_t formed[ENGINE_FORMED_COUNT];
    uint64_t tasks_lost;   /* with their worker */
    uint64_t tasks_failed; /* a signal, or a status that is neither 0 nor "preempted" */
    uint64_t tasks_done;   /* the others that ended */
    uint64_t steps;        /* committed, each once however often it was computed */
    uint64_t releases;     /* sent to a generation; one may admit several steps */
    uint64_t checkpoints;  /* published */
    uint64_t commits;      /* of the ledger */
    uint64_t workers_lost; /* given up because they were silent */
    /* From reading the first arrival of a turn to handing the releases of that turn to the
     * transport, the ledger's commit included. */
    struct histogram release;
    struct histogram commit;
};

#endif
