/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/ps_job.h"

#include <stddef.h>
#include <string.h>

#include "common/model/limits.h"

const char *ps_job_fault(const struct ps_job *ps_job, const char *strategy)
{
    bool named = strcmp(strategy, PS_JOB_STRATEGY) == 0;
    if (named && ps_job->servers == 0) {
        return "has the strategy parameter_server and no parameter server: give it one or more";
    }
    if (!named && ps_job->servers > 0) {
        return "has parameter servers, which only the strategy parameter_server uses: name that "
               "strategy, or give it none";
    }
    if (!named) {
        return ps_job->workers > 0 || ps_job->evaluators > 0 || ps_job->backups
                   ? "has no parameter servers, so it has no evaluator and no backups of servers"
                   : NULL;
    }
    if (ps_job->workers == 0) {
        return "has parameter servers and no worker: give it one or more";
    }
    if (ps_job->evaluators > PS_JOB_EVALUATORS_MAX) {
        return "has more than one evaluator: give it one, or none";
    }
    if (ps_job->backups && ps_job->servers < 2) {
        return "has one parameter server, which no other server can hold a copy of: give it two or "
               "more, or no backups";
    }
    if (ps_job_task_count(ps_job) > LIMIT_TASKS_PER_JOB) {
        return "has more than 16384 tasks, chief, workers, servers and evaluator together";
    }
    return NULL;
}
