/* SPDX-License-Identifier: Apache-2.0
 * Reports to the coordinator how far the fetches of tasks are that take longer than a moment. */
#ifndef CADRE_WORKER_DAEMON_FETCH_REPORT_H
#define CADRE_WORKER_DAEMON_FETCH_REPORT_H

#include "common/checkpoint/choose.h"
#include "common/model/job.h"

struct daemon;
struct task_files;

/* Of one task. */
struct fetch_account {
    enum fetch_kind kind;                   /* FETCH_NONE: nothing is fetched */
    uint64_t begun_us;                      /* monotonic */
    const struct checkpoint_counts *counts; /* of the fetch; a thread may write them */
};

/* Opens the timer. */
void fetch_report_open(struct daemon *daemon);
/* Closes it. */
void fetch_report_close(struct daemon *daemon);

/* The task begins with this kind: the counts are reported every half second, until
 * fetch_report_end(). Nothing when it has begun with it already. */
void fetch_report_begin(
    struct task_files *task, enum fetch_kind kind, const struct checkpoint_counts *counts);
/* Nothing of the task is fetched any more. */
void fetch_report_end(struct task_files *task);

#endif
