/* SPDX-License-Identifier: Apache-2.0
 * Measures what tasks and the host use, once a heartbeat, and reports it to the coordinator. */
#ifndef CADRE_WORKER_DAEMON_USAGE_REPORT_H
#define CADRE_WORKER_DAEMON_USAGE_REPORT_H

#include "common/base/error.h"
#include "worker/host/usage/usage.h"

struct daemon;
struct usage_report;

/* Of one task, or of the host. */
struct usage_account {
    struct usage_reading reading; /* the newest */
    struct resource_usage usage;  /* since the one before */
};

/* Begins to measure. RESOURCE_EXHAUSTED: there is no memory for it. */
cadre_status usage_report_open(struct daemon *daemon, struct cadre_error *error);
/* Ends it; a thread may still read, file_work_pool_wait() waits for it. */
void usage_report_close(struct daemon *daemon);
/* Frees it, once no thread reads and the loop is closed; NULL is allowed. */
void usage_report_free(struct usage_report *report);

/* What the host uses. */
const struct usage_account *usage_report_host(const struct usage_report *report);
/* CPU time that all readings took. */
uint64_t usage_report_cost_us(const struct usage_report *report);

#endif
