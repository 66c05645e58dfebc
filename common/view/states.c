/* SPDX-License-Identifier: Apache-2.0
 * The public names of states, and that their numbers are the model's. */
#include <stdio.h>
#include <string.h>

#include "cadre/client.h"
#include "common/model/job.h"

_Static_assert((int)CADRE_JOB_QUEUED == (int)JOB_QUEUED, "public states are the model's");
_Static_assert((int)CADRE_JOB_SUCCEEDED == (int)JOB_SUCCEEDED, "public states are the model's");
_Static_assert((int)CADRE_JOB_PREEMPTED == (int)JOB_PREEMPTED, "public states are the model's");
_Static_assert((int)CADRE_TASK_WAITING == (int)TASK_WAITING, "public states are the model's");
_Static_assert((int)CADRE_TASK_LOST == (int)TASK_LOST, "public states are the model's");

/* `name`, or "unknown (NUMBER)" for a number without a name in this version. */
static const char *known_or_number(const char *name, int number)
{
    static _Thread_local char texts[8][32];
    static _Thread_local unsigned next;
    if (strcmp(name, "unknown") != 0) {
        return name;
    }
    char *text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "unknown (%d)", number);
    return text;
}

const char *cadre_job_state_name(cadre_job_state state)
{
    return known_or_number(job_state_name((enum job_state)state), (int)state);
}

const char *cadre_task_state_name(cadre_task_state state)
{
    return known_or_number(task_state_name((enum task_state)state), (int)state);
}

bool cadre_job_state_is_final(cadre_job_state state)
{
    return job_state_is_final((enum job_state)state);
}
