/* SPDX-License-Identifier: Apache-2.0 */
#include "common/view/cluster_sums.h"

void cluster_sums_add_worker(struct cluster_sums *sums, const cadre_worker *worker)
{
    sums->workers_away += !worker->connected;
    sums->workers_draining += worker->connected && worker->draining;
    sums->workers_ready += worker->connected && !worker->draining;
    sums->slots += worker->connected ? worker->slots : 0;
    sums->slots_used += worker->connected ? worker->slots_used : 0;
    sums->gpus += worker->connected ? worker->gpus_usable : 0;
}

void cluster_sums_add_job(struct cluster_sums *sums, cadre_job_state state)
{
    sums->jobs_queued += state == CADRE_JOB_QUEUED;
    sums->jobs_running += !cadre_job_state_is_final(state) && state != CADRE_JOB_QUEUED;
}
