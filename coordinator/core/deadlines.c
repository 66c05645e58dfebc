/* SPDX-License-Identifier: Apache-2.0
 * All deadlines in one heap: the lease of each worker, and the next of each job. A lease is moved
 * lazily: hearing from a worker costs nothing here, and a deadline that comes up too early is put
 * back to where it belongs. */
#include "coordinator/core/parts.h"

#define LATE_PART 4 /* of a lease: how late is late, and the time that is given then */

void deadline_worker(struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state != WORKER_FREE);
    heap_set(&core->deadlines, worker, w->heard_us + core->options.lease_us);
}

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
                     ((i == DEADLINE_LIMIT || i == DEADLINE_MEMBERS) && job->outcome == 0);
        if (!lasts) {
            job->deadlines[i] = UINT64_MAX;
        }
    }
    job_arm(core, job);
}

/* Whether its lease goes on. One that comes up late says that this process itself stood still, was
 * starved or suspended: then what the worker said meanwhile waits to be read, and it gets the time
 * for that. */
static bool lease_holds(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    uint64_t lease_us = core->options.lease_us;
    uint64_t due_us = w->heard_us + lease_us;
    if (due_us <= core->now_us && core->now_us - due_us > lease_us / LATE_PART) {
        w->heard_us = core->now_us - lease_us + lease_us / LATE_PART;
        due_us = core->now_us + lease_us / LATE_PART;
    }
    return due_us > core->now_us;
}

static void lease_over(struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    char how[LIMIT_TEXT_BYTES];
    struct text text = text_begin(how, sizeof(how));
    text_add(&text, w->expected ? "which did not come back for "
                    : w->state == WORKER_AWAY
                        ? "whose connection ended and which did not come back in "
                        : "which was silent for ");
    text_time(&text, core->options.lease_us);
    if (w->expected) {
        text_add(&text, " after the coordinator was started again");
    }
    core->workers_lost++;
    worker_lose(core, worker, how);
}

static void job_over(struct core *core, struct job *job, enum deadline deadline)
{
    deadline_clear(core, job, deadline);
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
        } else if (lease_holds(core, next.item)) {
            deadline_worker(core, next.item);
        } else {
            lease_over(core, next.item);
        }
    }
}
