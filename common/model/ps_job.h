/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job with parameter servers, by type. Its slots are in a fixed order, so a task's
 * type and index follow from its slot alone:
 *
 *     slot   0       1 .. workers   then servers   then at most one
 *            chief   worker 0 ..    ps 0 ..        evaluator
 *
 * A ps_job without servers is none: then all tasks of a job are alike. (The task types of
 * TF_CONFIG.)
 */
#ifndef CADRE_MODEL_PS_JOB_H
#define CADRE_MODEL_PS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define PS_JOB_STRATEGY       "parameter_server" /* of a job that is one, and of no other */
#define PS_JOB_EVALUATORS_MAX 1

enum role { ROLE_NONE = 0, ROLE_CHIEF, ROLE_WORKER, ROLE_SERVER, ROLE_EVALUATOR };

struct ps_job {
    uint32_t workers;
    uint32_t servers;    /* 0: this is no ps job */
    uint32_t evaluators; /* 0 or 1 */
    bool backups;        /* each server holds a copy of another one's variables */
};

static inline bool ps_job_is_set(const struct ps_job *ps_job)
{
    return ps_job->servers > 0;
}

/* Tasks, the chief too. */
static inline uint64_t ps_job_task_count(const struct ps_job *ps_job)
{
    return 1 + (uint64_t)ps_job->workers + ps_job->servers + ps_job->evaluators;
}

/* The slot of the first task of a role. */
static inline uint32_t ps_job_first_slot(const struct ps_job *ps_job, enum role role)
{
    return role == ROLE_CHIEF    ? 0
           : role == ROLE_WORKER ? 1
           : role == ROLE_SERVER ? 1 + ps_job->workers
                                 : 1 + ps_job->workers + ps_job->servers;
}

static inline uint32_t ps_job_role_count(const struct ps_job *ps_job, enum role role)
{
    return role == ROLE_CHIEF    ? 1
           : role == ROLE_WORKER ? ps_job->workers
           : role == ROLE_SERVER ? ps_job->servers
                                 : ps_job->evaluators;
}

/* ROLE_NONE when it is no ps job; slot < ps_job_task_count. */
static inline enum role ps_job_role(const struct ps_job *ps_job, uint32_t slot)
{
    return !ps_job_is_set(ps_job)                             ? ROLE_NONE
           : slot == 0                                        ? ROLE_CHIEF
           : slot < ps_job_first_slot(ps_job, ROLE_SERVER)    ? ROLE_WORKER
           : slot < ps_job_first_slot(ps_job, ROLE_EVALUATOR) ? ROLE_SERVER
                                                              : ROLE_EVALUATOR;
}

/* Of a slot, among those of its role. */
static inline uint32_t ps_job_role_index(const struct ps_job *ps_job, uint32_t slot)
{
    return slot -
           (ps_job_is_set(ps_job) ? ps_job_first_slot(ps_job, ps_job_role(ps_job, slot)) : 0);
}

/* NULL, or why this ps_job does not fit a job with this strategy: "needs at least one worker". */
const char *ps_job_fault(const struct ps_job *ps_job, const char *strategy);

/* "chief", "worker", "ps", "evaluator": TF_CONFIG's names; "" of none. */
static inline const char *role_name(enum role role)
{
    static const char *const names[] = {"", "chief", "worker", "ps", "evaluator"};
    return names[role];
}

#endif
