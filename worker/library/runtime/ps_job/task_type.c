/* SPDX-License-Identifier: Apache-2.0
 * The program's own task type and index: cadre_task_type and its like. */
#include "worker/library/runtime/ps_job/ps_job.h"
#include "worker/library/runtime/program/program.h"

/* By hand the process has no task type before its strategy exists; threads that act for other tasks
 * have theirs. */
static enum role role_now(uint32_t *ret_index)
{
    const struct ps_job_state *ps_job = ps_job_current();
    const struct environment *environment = program_environment();
    *ret_index = ps_job != NULL ? ps_job->index : environment != NULL ? environment->index : 0;
    return ps_job != NULL ? ps_job->role : environment != NULL ? environment->role : ROLE_NONE;
}

cadre_task_type cadre_task_type_of(void)
{
    static const cadre_task_type types[] = {[ROLE_NONE] = CADRE_TASK_REPLICA,
        [ROLE_CHIEF] = CADRE_TASK_CHIEF,
        [ROLE_WORKER] = CADRE_TASK_WORKER,
        [ROLE_SERVER] = CADRE_TASK_PS,
        [ROLE_EVALUATOR] = CADRE_TASK_EVALUATOR};
    uint32_t index;
    return types[role_now(&index)];
}

uint32_t cadre_task_index(void)
{
    uint32_t index;
    role_now(&index);
    return index;
}

bool cadre_task_serves(void)
{
    uint32_t index;
    enum role role = role_now(&index);
    return role == ROLE_WORKER || role == ROLE_SERVER;
}
