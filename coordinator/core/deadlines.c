/* SPDX-License-Identifier: Apache-2.0
 * All deadlines in one heap: the lease of each worker, and the next of each job. A lease is moved
 * lazily: hearing from a worker costs nothing here, and a deadline that comes up too early is put
 * back to where it belongs (lease.c). */
#include "coordinator/core/parts.h"

static void job_arm(struct core *core, const struct job *job)
{
    uint32_t item = core->options.limits.workers_max + job_index(core, job);
    uint64_t next_us = UINT64_MAX;
    for (uint32_t i = 0; i < DEADLINES; i++) {
        next_us = job->deadlines[i] < next_us ? job->deadlines[i] : next_us;
    }
    if (next_us == UINT64_MAX) {
        heap_remove(&core->deadlines, item);
    } else {
        heap_set(&core->deadlines, item, next_us);
    }
}

bool deadline_armed(const struct job *job, enum deadline deadline)
{
    return job->deadlines[deadline] != UINT64_MAX;
}

void deadline_set(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us)
{
    CADRE_ASSERT(due_us != UINT64_MAX);
    job->deadlines[deadline] = due_us;
    job_arm(core, job);
}

void deadline_clear(struct core *core, struct job *job, enum deadline deadline)
{
    if (deadline_armed(job, deadline)) {
        job->deadlines[deadline] = UINT64_MAX;
        job_arm(core, job);
    }
}

void deadlines_clear(struct core *core, struct job *job)
{
    bool stops = job->outcome == 0 && preempt_stops(job); /* whatever becomes of the generation */
    for (uint32_t i = 0; i < DEADLINES; i++) {
        bool lasts = (i == DEADLINE_PREEMPT && stops) ||
                     ((i == DEADLINE_LIMIT || i == DEADLINE_MEMBERS || i == DEADLINE_BACKOFF) &&
                         job->outcome == 0);
        if (!lasts) {
            job->deadlines[i] = UINT64_MAX;
        }
    }
    job_arm(core, job);
}

/* What is given up when one of these is over may be missing because nobody of the job is heard. */
static bool waits_for_hearing(enum deadline deadline)
{
    return deadline == DEADLINE_FORM || deadline == DEADLINE_EARLY || deadline == DEADLINE_REPORT ||
           deadline == DEADLINE_DRAIN || deadline == DEADLINE_PREEMPT ||
           deadline == DEADLINE_STALL || deadline == DEADLINE_CREW;
}

static void job_over(struct core *core, struct job *job, enum deadline deadline)
{
    deadline_clear(core, job, deadline);
    if (waits_for_hearing(deadline) && lease_cut_off(core, job)) {
        deadline_set(core, job, deadline, core->now_us + core->options.lease_us);
        return;
    }
    switch (deadline) {
    case DEADLINE_FORM:
        generation_overdue(core, job);
        break;
    case DEADLINE_EARLY:
        failure_early(core, job);
        break;
    case DEADLINE_REPORT:
        regroup_report_over(core, job);
        break;
    case DEADLINE_WAIT:
        regroup_wait_over(core, job);
        break;
    case DEADLINE_DRAIN:
        drain_over(core, job);
        break;
    case DEADLINE_PREEMPT:
        preempt_over(core, job);
        break;
    case DEADLINE_SLOW:
        health_slow(core, job);
        break;
    case DEADLINE_STALL:
        health_over(core, job);
        break;
    case DEADLINE_CREW:
        crew_over(core, job);
        break;
    case DEADLINE_MEMBERS:
        crew_members_over(core, job);
        break;
    case DEADLINE_LIMIT:
        overtime_over(core, job);
        break;
    case DEADLINE_BACKOFF:
        failure_waited(core, job);
        break;
    case DEADLINE_COLLECT:
        job->uncollected = true;
        job_due(core, job, 0);
        break;
    case DEADLINES:
        break;
    }
}

static void jobs_over(struct core *core, struct job *job)
{
    for (uint32_t i = 0; i < DEADLINES; i++) {
        if (job->deadlines[i] <= core->now_us) {
            job_over(core, job, (enum deadline)i);
        }
    }
}

/* Each may say one thing at once (a lost worker's stream is ended); the room for speak_run() is
 * left. */
void deadlines_run(struct core *core)
{
    struct heap_entry next;
    while (heap_top(&core->deadlines, &next) && next.due_us <= core->now_us &&
           actions_left(core) > 2 * ACTIONS_PER_JOB_MAX) {
        uint32_t workers_max = core->options.limits.workers_max;
        if (next.item >= workers_max) {
            jobs_over(core, &core->jobs[next.item - workers_max]);
        } else {
            lease_over(core, next.item, next.due_us);
        }
    }
}
