/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model/job.h"

const char *job_state_name(enum job_state state)
{
    switch (state) {
    case JOB_QUEUED:
        return "queued";
    case JOB_STARTING:
        return "starting";
    case JOB_RUNNING:
        return "running";
    case JOB_ENDING:
        return "ending";
    case JOB_SUCCEEDED:
        return "succeeded";
    case JOB_FAILED:
        return "failed";
    case JOB_CANCELLED:
        return "cancelled";
    case JOB_PREEMPTED:
        return "preempted";
    }
    return "unknown";
}

const char *task_state_name(enum task_state state)
{
    switch (state) {
    case TASK_WAITING:
        return "waiting";
    case TASK_STARTING:
        return "starting";
    case TASK_RUNNING:
        return "running";
    case TASK_EXITED:
        return "exited";
    case TASK_LOST:
        return "lost";
    }
    return "unknown";
}
