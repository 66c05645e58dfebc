/* SPDX-License-Identifier: Apache-2.0
 * All deadlines in one heap: the lease of each worker, and at most one per job. A lease is moved
 * lazily: hearing from a worker costs nothing here, and a deadline that comes up too early is put
 * back to where it belongs. */
#include "coordinator/core/state.h"

void deadline_worker(struct core *core, uint32_t worker)
{
    const struct worker *w = &core->workers[worker];
    CADRE_ASSERT(w->state != WORKER_FREE);
    heap_set(&core->deadlines, worker, w->heard_us + core->options.lease_us);
}

void deadline_job(struct core *core, struct job *job, enum deadline deadline, uint64_t due_us)
{
    uint32_t item = core->options.limits.workers_max + job_index(core, job);
    job->deadline = deadline;
    if (deadline == DEADLINE_NONE) {
        heap_remove(&core->deadlines, item);
    } else {
        heap_set(&core->deadlines, item, due_us);
    }
}

static void lease_over(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    char how[LIMIT_TEXT_BYTES];
    struct text text = text_begin(how, sizeof(how));
    text_add(&text, w->state == WORKER_AWAY
                        ? "whose connection ended and which did not come back in "
                        : "which was silent for ");
    text_add_u64(&text, core->options.lease_us / 1000);
    text_add(&text, " ms");
    worker_lose(core, worker, how);
}

static void job_over(struct core *core, struct job *job)
{
    enum deadline deadline = job->deadline;
    CADRE_ASSERT(deadline != DEADLINE_NONE);
    deadline_job(core, job, DEADLINE_NONE, 0);
    switch (deadline) {
    case DEADLINE_NONE:
        break;
    case DEADLINE_FORM:
        generation_overdue(core, job);
        break;
    case DEADLINE_CULPRIT:
        ending_culprit_over(core, job);
        break;
    case DEADLINE_EARLY:
        ending_early_over(core, job);
        break;
    case DEADLINE_COLLECT:
        job->uncollected = true;
        job_due(core, job, 0);
        break;
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
            job_over(core, &core->jobs[next.item - workers_max]);
        } else if (core->workers[next.item].heard_us + core->options.lease_us > core->now_us) {
            deadline_worker(core, next.item);
        } else {
            lease_over(core, next.item);
        }
    }
}
