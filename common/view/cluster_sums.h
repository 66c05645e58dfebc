/* SPDX-License-Identifier: Apache-2.0
 * A cluster in a few numbers, as `cadre top` and the coordinator's page show them. */
#ifndef CADRE_VIEW_CLUSTER_SUMS_H
#define CADRE_VIEW_CLUSTER_SUMS_H

#include "cadre/client.h"

/* All zero at first. */
struct cluster_sums {
    uint32_t workers_ready;
    uint32_t workers_draining;
    uint32_t workers_away; /* those that are expected, too */
    uint32_t slots;        /* these three: of connected workers */
    uint32_t slots_used;
    uint32_t gpus;
    uint32_t jobs_running; /* that have not ended and are not queued */
    uint32_t jobs_queued;
};

/* Counts a worker; its texts and GPUs are not read. */
void cluster_sums_add_worker(struct cluster_sums *sums, const cadre_worker *worker);

/* Counts a job in this state. */
void cluster_sums_add_job(struct cluster_sums *sums, cadre_job_state state);

#endif
