/* SPDX-License-Identifier: Apache-2.0
 * The state tables of jobs, generations and workers, and the one function of each that moves. */
#include "coordinator/core/state/states.h"

#include "coordinator/core/state/due.h"

static const struct {
    uint16_t may_become; /* bits of enum job_state */
} job_moves[] = {
    [JOB_QUEUED] = {1 << JOB_STARTING | 1 << JOB_CANCELLED | 1 << JOB_FAILED},
    [JOB_STARTING] = {1 << JOB_RUNNING | 1 << JOB_ENDING | 1 << JOB_QUEUED},
    [JOB_RUNNING] = {1 << JOB_ENDING | 1 << JOB_QUEUED},
    [JOB_ENDING] = {1 << JOB_SUCCEEDED | 1 << JOB_FAILED | 1 << JOB_CANCELLED | 1 << JOB_PREEMPTED},
    [JOB_SUCCEEDED] = {0},
    [JOB_FAILED] = {0},
    [JOB_CANCELLED] = {0},
    [JOB_PREEMPTED] = {0},
};

void job_move(struct core *core, struct job *job, enum job_state state)
{
    CADRE_ASSERT(state <= JOB_PREEMPTED);
    CADRE_ASSERT(job->id.n != 0);
    CADRE_ASSERT((job_moves[job->state].may_become >> state & 1) != 0);
    job->state = state;
    job_due(core, job, DUE_CHANGED);
}

static const struct {
    uint8_t may_become; /* bits of enum phase */
} phase_moves[] = {
    [PHASE_JOIN] = {1 << PHASE_RUN},
    [PHASE_RUN] = {1 << PHASE_RUN | 1 << PHASE_REGROUP | 1 << PHASE_JOIN | 1 << PHASE_DONE},
    [PHASE_REGROUP] = {1 << PHASE_RUN | 1 << PHASE_JOIN},
    [PHASE_DONE] = {1 << PHASE_JOIN},
};

void phase_move(struct job *job, enum phase phase)
{
    CADRE_ASSERT(phase >= PHASE_JOIN && phase <= PHASE_DONE);
    CADRE_ASSERT(phase == PHASE_JOIN || job->generation.number > 0);
    CADRE_ASSERT((phase_moves[job->phase].may_become >> phase & 1) != 0);
    job->phase = phase;
}

static const struct {
    uint8_t may_become; /* bits of enum worker_state */
} worker_moves[] = {
    [WORKER_FREE] = {1 << WORKER_CONNECTED},
    [WORKER_CONNECTED] = {1 << WORKER_CONNECTED | 1 << WORKER_AWAY | 1 << WORKER_FREE},
    [WORKER_AWAY] = {1 << WORKER_CONNECTED | 1 << WORKER_FREE},
};

void worker_move(struct worker *worker, enum worker_state state, enum absence absence)
{
    CADRE_ASSERT(state <= WORKER_AWAY);
    CADRE_ASSERT(state != WORKER_FREE || worker->task_groups.job == NONE);
    CADRE_ASSERT((worker_moves[worker->state].may_become >> state & 1) != 0);
    CADRE_ASSERT((state == WORKER_AWAY) == (absence != ABSENCE_NONE));
    worker->state = state;
    worker->absence = absence;
}

static const struct {
    uint8_t may_become; /* bits of enum preemption */
} preempt_moves[] = {
    [PREEMPT_NOT] = {1 << PREEMPT_NOT | 1 << PREEMPT_WANTED | 1 << PREEMPT_UNSAVED |
                     1 << PREEMPT_STOPS | 1 << PREEMPT_SAVED}, /* the last two: from the store */
    [PREEMPT_WANTED] = {1 << PREEMPT_NOT | 1 << PREEMPT_STOPS | 1 << PREEMPT_UNSAVED},
    [PREEMPT_STOPS] = {1 << PREEMPT_NOT | 1 << PREEMPT_STOPS | 1 << PREEMPT_SAVED |
                       1 << PREEMPT_UNSAVED},
    [PREEMPT_SAVED] = {1 << PREEMPT_REQUEUES},
    [PREEMPT_UNSAVED] = {1 << PREEMPT_REQUEUES},
    [PREEMPT_REQUEUES] = {1 << PREEMPT_NOT},
};

void preempt_move(struct job *job, enum preemption preempt)
{
    CADRE_ASSERT(preempt <= PREEMPT_REQUEUES);
    CADRE_ASSERT((preempt_moves[job->preempt].may_become >> preempt & 1) != 0);
    job->preempt = preempt;
}

static const struct {
    uint8_t may_become; /* bits of enum joining */
} joining_moves[] = {
    [JOINING_NOT] = {1 << JOINING_NOT | 1 << JOINING_WAITS},
    [JOINING_WAITS] = {1 << JOINING_NOT | 1 << JOINING_OUTDATED},
    [JOINING_OUTDATED] = {1 << JOINING_NOT | 1 << JOINING_WAITS | 1 << JOINING_OUTDATED},
};

void joining_move(struct task *task, enum joining joining)
{
    CADRE_ASSERT(joining == JOINING_NOT || task->rank == NONE);
    CADRE_ASSERT(joining <= JOINING_OUTDATED);
    CADRE_ASSERT((joining_moves[task->joining].may_become >> joining & 1) != 0);
    task->joining = joining;
}

static const struct {
    uint8_t may_become; /* bits of enum refill */
} refill_moves[] = {
    [REFILL_AFTER_PLAN] = {1 << REFILL_AFTER_PLAN | 1 << REFILL_NOW | 1 << REFILL_NEXT_PLAN},
    [REFILL_NOW] = {1 << REFILL_AFTER_PLAN | 1 << REFILL_NOW},
    [REFILL_NEXT_PLAN] = {1 << REFILL_AFTER_PLAN},
};

static void count_refill(struct job *job, const struct task *task, uint32_t by)
{
    bool empty = task->state == TASK_WAITING;
    job->refilled += task->refill == REFILL_NOW ? by : 0;
    job->declined += task->refill == REFILL_NEXT_PLAN && empty ? by : 0;
}

void refill_move(struct job *job, struct task *task, enum refill refill)
{
    CADRE_ASSERT(refill <= REFILL_NEXT_PLAN);
    CADRE_ASSERT((refill_moves[task->refill].may_become >> refill & 1) != 0);
    count_refill(job, task, UINT32_MAX);
    task->refill = refill;
    count_refill(job, task, 1);
    CADRE_ASSERT(job->refilled <= job->tasks && job->declined <= job->waiting);
}

bool preempt_stops(const struct job *job)
{
    return job->preempt == PREEMPT_WANTED || job->preempt == PREEMPT_STOPS;
}

bool generation_is_broken(const struct job *job)
{
    CADRE_ASSERT((job->due & DUE_BREAK) == 0 || job->phase == PHASE_RUN);
    return job->phase == PHASE_REGROUP || (job->due & DUE_BREAK) != 0;
}

bool generation_is_void(const struct job *job)
{
    return (job->due & DUE_DISBAND) != 0;
}
