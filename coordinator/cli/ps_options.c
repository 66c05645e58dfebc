/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/job_options.h"

#include <inttypes.h>

bool ps_options_make(const struct invocation *invocation, const struct ps_options *options,
    const char *strategy, uint32_t workers_min, uint32_t workers, struct ps_job *ret_ps_job,
    int *ret_exit)
{
    *ret_ps_job = (struct ps_job){.workers = options->servers > 0 ? workers : 0,
        .servers = (uint32_t)options->servers,
        .evaluators = (uint32_t)options->evaluators,
        .backups = options->backups};
    const char *fault = ps_job_fault(ret_ps_job, strategy != NULL ? strategy : "");
    if (fault != NULL) {
        *ret_exit = invocation_usage(invocation,
            "the job %s (--strategy parameter_server --workers N --ps N [--evaluators 1] "
            "[--ps-backups])",
            fault);
        return false;
    }
    if (ps_job_is_set(ret_ps_job) && workers_min != workers) {
        *ret_exit = invocation_usage(invocation,
            "--workers %" PRIu32 ":%" PRIu32
            ": a job with parameter servers has a fixed number of workers; one that is lost is "
            "started again: write %" PRIu32,
            workers_min, workers, workers);
        return false;
    }
    return true;
}
