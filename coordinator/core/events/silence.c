/* SPDX-License-Identifier: Apache-2.0
 * Workers that send nothing for a lease (protocol, rule 21). Each job decides for its own tasks:
 *
 *     a worker that can continue the job is alive    the silent tasks are lost, the others go on
 *     no such worker is alive                        perhaps the coordinator is cut off: the job
 *                                                    waits for them, up to the rewind patience
 *
 * So a cut of the coordinator costs no job its state, and a dead host costs a job with live members
 * no more than the lease. A worker of which tasks are waited for is overdue: it is away, its slots
 * are not offered, and it is checked again each quarter of a lease. Declared lost stays lost
 * (rule 7), also when the rest of its worker comes back. */
#include "coordinator/core/events/membership.h"

#include "coordinator/core/events/task_lifecycle.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

#define LATE_PART 4 /* of a lease: from then on a deadline is late, and as much is added */

/* Whether the worker of the server with a copy of this one's memory is alive. */
static bool copy_is_alive(const struct core *core, const struct job *job, uint32_t slot)
{
    uint32_t first = ps_job_first_slot(&job->ps_job, ROLE_SERVER);
    uint32_t next = first + (slot - first + 1) % job->ps_job.servers;
    const struct task *copy = job_task(core, job, next);
    CADRE_ASSERT(job_task(core, job, slot)->role == ROLE_SERVER);
    return job->ps_job.backups && next != slot && task_is_usable(copy) &&
           lease_is_alive(core, job_task_group(core, job, copy->task_group)->worker);
}

/* Whether the job waits for the silent task, because no other task has what it holds. Before the
 * first plan a program without a hello may hold anything; after bye, what it does after training.
 */
static bool task_is_spared(
    const struct core *core, const struct job *job, uint32_t slot, bool carried)
{
    const struct task *task = job_task(core, job, slot);
    bool unknown = job->phase == PHASE_JOIN && job->generation.number == 0 && job->joined == 0;
    CADRE_ASSERT(task->task_group != NONE);
    if (behind_is(job)) {
        return true;
    }
    if (job->outcome != 0 || outcome_is_success(job)) {
        return job->outcome == JOB_SUCCEEDED || job->outcome == 0; /* its outputs are still there */
    }
    if (task->dismissed != DISMISSED_NOT || job->preempt > PREEMPT_STOPS) {
        return false;
    }
    bool shard =
        task->role == ROLE_SERVER && job->phase != PHASE_JOIN && !copy_is_alive(core, job, slot);
    /* A plain job whose generation has ended goes on from no task, only from what was saved. */
    bool useless = job->plain && job->phase == PHASE_REGROUP;
    return unknown || shard || job->phase == PHASE_DONE || (!carried && !useless);
}

/* Loses those of the job's tasks on the worker that it does not wait for. */
static void task_group_is_overdue(
    struct core *core, struct job *job, uint32_t worker, const char *how)
{
    bool carried = job_can_continue(core, job);
    bool spared = false;
    CADRE_ASSERT(core->workers[worker].overdue);
    CADRE_ASSERT(job->task_groups > 0);
    for (uint32_t slot = task_group_first(core, job, worker); slot != NONE;
         slot = task_group_next(core, job, worker, slot)) {
        const struct task *task = job_task(core, job, slot);
        if (!task->collected && task_is_spared(core, job, slot, carried)) {
            spared = true;
        } else {
            task_lose(core, job, slot, how);
        }
    }
    uint32_t number = task_group_find(core, job, worker);
    if (number != NONE && !spared) {
        task_group_orphan(core, job, number);
    }
}

static void how_silent(const struct worker *worker, uint64_t silent_us, char how[LIMIT_TEXT_BYTES])
{
    struct text text = text_begin(how, LIMIT_TEXT_BYTES);
    CADRE_ASSERT(worker->state != WORKER_FREE);
    text_add(&text, worker->absence == ABSENCE_EXPECTED ? "which did not come back for "
                    : worker->absence == ABSENCE_CUT
                        ? "whose connection ended and which did not come back in "
                        : "which was silent for ");
    text_time(&text, silent_us);
    if (worker->absence == ABSENCE_EXPECTED) {
        text_add(&text, " after the coordinator was started again");
    }
}

static void worker_is_overdue(struct core *core, uint32_t worker)
{
    struct worker *w = &core->workers[worker];
    char how[LIMIT_TEXT_BYTES];
    bool leaves = w->leaves;
    how_silent(w, core->options.lease_us, how);
    if (w->state == WORKER_CONNECTED) {
        worker_disconnect(core, worker, "the worker was silent for too long: connect again");
    }
    w->overdue = true;
    w->leaves = false; /* else it would be removed with the first of its tasks */
    struct task_group_ref at = w->task_groups;
    while (at.job != NONE) {
        struct job *job = &core->jobs[at.job];
        struct task_group_ref next = job_task_group(core, job, at.task_group)->next;
        task_group_is_overdue(core, job, worker, how);
        at = next;
    }
    w->leaves = leaves;
    if (w->task_groups.job == NONE) {
        core->workers_lost++;
        worker_lose(core, worker, how);
        return;
    }
    worker_offer(core, worker);
    worker_lease_set(core, worker);
    CADRE_ASSERT(w->overdue && w->state == WORKER_AWAY);
}

/* A deadline that is handled late, and lease_unread_us(), show that this process itself was
 * suspended: messages of the worker may be waiting to be read, so it gets more time. */
static void lease_was_late(struct core *core, struct worker *w, uint64_t allowed_us)
{
    uint64_t part_us = core->options.lease_us / LATE_PART;
    uint64_t due_us = w->last_seen_us + allowed_us;
    uint64_t until_us = lease_unread_us(core);
    CADRE_ASSERT(w->last_seen_us <= core->now_us);
    if (due_us <= core->now_us && core->now_us - due_us > part_us) {
        until_us = core->now_us + part_us;
    }
    if (until_us > due_us) {
        w->last_seen_us = until_us - allowed_us;
    }
    CADRE_ASSERT(w->last_seen_us <= core->now_us);
}

void lease_expired(struct core *core, uint32_t worker, uint64_t due_us)
{
    struct worker *w = &core->workers[worker];
    uint64_t wait_timeout_us = worker_patience_us(core, w);
    bool late =
        core->now_us - due_us > core->options.lease_us / LATE_PART || lease_unread_us(core) > 0;
    CADRE_ASSERT(w->state != WORKER_FREE);
    CADRE_ASSERT(due_us <= core->now_us);
    if (late || !w->overdue) {
        lease_was_late(core, w, w->overdue ? wait_timeout_us : core->options.lease_us);
    }
    if (!w->overdue && w->last_seen_us + core->options.lease_us > core->now_us) {
        worker_lease_set(core, worker);
    } else if (w->task_groups.job == NONE || w->last_seen_us + wait_timeout_us <= core->now_us) {
        char how[LIMIT_TEXT_BYTES];
        how_silent(w, w->task_groups.job == NONE ? core->options.lease_us : wait_timeout_us, how);
        core->workers_lost++;
        worker_lose(core, worker, how);
    } else {
        worker_is_overdue(core, worker);
    }
}
