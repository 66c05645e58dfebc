/* SPDX-License-Identifier: Apache-2.0
 * Ps jobs: the tasks have roles. The chief alone is the roster: plans, steps, checkpoints,
 * preemption and the end are those of a job of one task. The other tasks are started, watched and
 * started again in their slots, and receive the addresses of each other; their ends do not end a
 * generation, and no generation waits for them.
 *
 *     MEMBERS    whenever one comes or goes, and after each plan; of the job's own generation, so
 *                not before the chief has a plan, nor between two plans. The engine sends the whole
 *                list to a task that has said hello, then what changes. The larger the job is, the
 *                longer is the shortest time between two
 *     the end    bye to the chief -> workers, evaluator: bye -> all exited -> servers: bye
 *
 * events/, decide/ and emit/ call this. */
#include "coordinator/core/facts/ps_job.h"

#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

/* A shorter wait only means that the last task of a slot is being collected. */
#define NOTICEABLE_US UINT64_C(1000000)

bool ps_job_fits(const struct core_job_spec *spec)
{
    const struct ps_job *ps_job = &spec->ps_job;
    return !ps_job_is_set(ps_job) ||
           (ps_job->workers > 0 && spec->tasks == ps_job_task_count(ps_job) &&
               spec->tasks_min == spec->tasks);
}

void ps_job_init(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state == JOB_QUEUED);
    CADRE_ASSERT(!ps_job_is_set(&job->ps_job) || job->tasks == ps_job_task_count(&job->ps_job));
    for (uint32_t slot = 0; slot < job->tasks && ps_job_is_set(&job->ps_job); slot++) {
        struct task *task = job_task(core, job, slot);
        task->role = ps_job_role(&job->ps_job, slot);
        CADRE_ASSERT(task_is_ps_task(task) == (slot > 0));
    }
}

uint32_t job_members_min(const struct job *job)
{
    CADRE_ASSERT(job->tasks_min > 0 && job->tasks_min <= job->tasks);
    return ps_job_is_set(&job->ps_job) ? 1 : job->tasks_min;
}

uint32_t ps_job_nonserver_count(const struct job *job)
{
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->ps_task_counts[ROLE_CHIEF] == 0);
    return job->ps_task_counts[ROLE_WORKER] + job->ps_task_counts[ROLE_EVALUATOR];
}

uint32_t ps_job_held_slots(const struct core *core, const struct job *job)
{
    const struct task *chief = job_task(core, job, 0);
    bool plain =
        job->generation.number == 0 && chief->state == TASK_EXITED && chief->refill != REFILL_NOW;
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->usable <= 1);
    return job->usable + (plain ? 1 : 0) + ps_job_nonserver_count(job) +
           job->ps_task_counts[ROLE_SERVER];
}

void ps_job_member_changed(struct core *core, struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(!task_is_ps_task(task) || task->rank == NONE);
    if (!task_is_ps_task(task)) {
        return;
    }
    job_due(core, job,
        DUE_PS_JOB |
            (task->role == ROLE_SERVER ? (uint32_t)DUE_MEMBERS : (uint32_t)DUE_MEMBERS_CHIEF));
}

void ps_job_planned(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_RUN);
    CADRE_ASSERT(!ps_job_is_set(&job->ps_job) || job->roster == 1);
    if (ps_job_is_set(&job->ps_job)) {
        job->recalls = false;
        job->members_next_us = 0;
        job_due(core, job, DUE_PS_JOB | DUE_MEMBERS);
    }
}

bool ps_job_delays_members(struct core *core, struct job *job)
{
    const uint32_t members = DUE_MEMBERS | DUE_MEMBERS_CHIEF;
    CADRE_ASSERT(ps_job_members_known(job));
    job->due |= job->members_held;
    job->members_held = 0;
    if (core->now_us < job->members_next_us) {
        job->members_held = job->due & members;
        job->due &= ~members;
        deadline_set(core, job, DEADLINE_MEMBERS, job->members_next_us);
        return true;
    }
    job->members_next_us = core->now_us + core->options.members_us * job->tasks;
    deadline_clear(core, job, DEADLINE_MEMBERS);
    CADRE_ASSERT(job->members_held == 0);
    return false;
}

void ps_job_members_timeout(struct core *core, struct job *job)
{
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    job_due(core, job, job->members_held);
    job->members_held = 0;
    CADRE_ASSERT((job->due & (DUE_MEMBERS | DUE_MEMBERS_CHIEF)) != 0);
}

bool ps_job_members_known(const struct job *job)
{
    return ps_job_is_set(&job->ps_job) && job->phase != PHASE_JOIN && !job->recalls &&
           !job->stopped;
}

void ps_job_send_members(struct core *core, struct job *job, uint32_t slot)
{
    if (ps_job_members_known(job) && (job->due & DUE_MEMBERS) == 0) {
        notify_task(core, job, slot, CORE_MESSAGE_MEMBERS);
    }
}

void ps_job_hello(struct core *core, struct job *job, uint32_t slot, bool known)
{
    const struct task *task = job_task(core, job, slot);
    bool leaves = task->role == ROLE_SERVER ? job->ps_shutdown == PS_SHUTDOWN_SERVERS
                                            : job->ps_shutdown != PS_SHUTDOWN_NONE;
    CADRE_ASSERT(task_is_ps_task(task));
    CADRE_ASSERT(task->joined);
    if (!known) {
        ps_job_member_changed(core, job, slot);
    }
    job_due(core, job, DUE_PS_JOB);
    if (job->phase == PHASE_DONE && leaves &&
        (job->due & (DUE_GOODBYE_WORKERS | DUE_GOODBYE_SERVERS)) == 0) {
        notify_task(core, job, slot, CORE_MESSAGE_GOODBYE);
    } else {
        ps_job_send_members(core, job, slot);
    }
}

void ps_job_task_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->state == TASK_STARTING);
    if (!ps_job_is_set(&job->ps_job)) {
        return;
    }
    bool home = task->home.n != 0 && task->home.n == core->workers[worker].id.n;
    task->attempts++;
    task->attempts_generation = job->generation.number + (job->phase == PHASE_JOIN ? 1 : 0);
    task->predecessor = home ? task->kept : 0;
    task->backed.number = 0; /* the last incarnation sends nothing any more */
    job_due(core, job, DUE_PS_JOB);
    CADRE_ASSERT(task->attempts > 0);
}

void ps_job_task_vacated(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->collected);
    CADRE_ASSERT(task->task_group != NONE);
    if (task->role == ROLE_SERVER) {
        const struct task_group *task_group = job_task_group(core, job, task->task_group);
        task->home = task_group->worker == NONE ? (struct worker_id){0} : task_group->worker_id;
        task->kept = task->incarnation;
    }
}

void ps_job_restart(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    job->recalls = false;
    job->ps_shutdown = PS_SHUTDOWN_NONE;
    for (uint32_t slot = 0; slot < job->tasks && ps_job_is_set(&job->ps_job); slot++) {
        struct task *task = job_task(core, job, slot);
        /* Starts for the next generation count, also those that failed. */
        task->attempts =
            task->attempts_generation == job->generation.number + 1 ? task->attempts : 0;
        task->backed = (struct task_backed){0}; /* no copy of this generation is used */
    }
}

/* The copy may be used as long as this is recorded, and no longer: a server that goes on alone, and
 * its replacement that takes the copy, exclude each other, because messages of a replaced or lost
 * task are dropped (protocol, rule 7). */
void ps_job_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->task_group != NONE);
    if (task->role != ROLE_SERVER || !job->ps_job.backups || backed->number < task->backed.number) {
        return;
    }
    uint32_t first = ps_job_first_slot(&job->ps_job, ROLE_SERVER);
    const struct task *behind =
        job_task(core, job, first + (slot - first + 1) % job->ps_job.servers);
    if (backed->by != 0 && (behind->incarnation != backed->by || !task_is_usable(behind))) {
        return; /* MEMBERS lacks that one, and the server sends another */
    }
    if (backed->number > task->backed.number) {
        task->backed = *backed;
        struct core_record *record = record_add(core, job, CORE_RECORD_BACKED, true);
        record->backed.slot = slot;
        record->backed.incarnation = task->incarnation;
        record->backed.backed = *backed;
    }
    ps_job_send_members(core, job, slot);
}

bool ps_job_only_waits(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(core->now_us >= job->waits_us);
    return ps_job_is_set(&job->ps_job) && core->now_us - job->waits_us < NOTICEABLE_US;
}

/* Starts for an older generation count neither for this one nor for the next. */
void ps_job_restore_attempts(
    const struct job *job, struct task *task, const struct core_restore_task *restore)
{
    task->attempts = restore->attempts_generation >= job->generation.number ? restore->attempts : 0;
    task->attempts_generation = restore->attempts_generation;
    task->backed = restore->attempts_generation >= job->generation.number ? restore->backed
                                                                          : (struct task_backed){0};
    CADRE_ASSERT(task->attempts == 0 || task->attempts_generation >= job->generation.number);
}
