/* SPDX-License-Identifier: Apache-2.0
 * The invariants between two steps (protocol, section 6). The counts of a job are compared with
 * each other after every step, and with the tasks themselves when the whole core is checked. Tests
 * and the simulator call core_invariant(). */
#include "coordinator/core/state/state.h"

#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

#define HOLDS(condition, broken)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return broken;                                                                         \
        }                                                                                          \
    } while (0)

static const char *barrier_holds(const struct job *job)
{
    bool runs = job->phase == PHASE_RUN;
    HOLDS(job->resume <= job->released, "a release is below the generation's first position");
    HOLDS(!runs || job->present == 0 || job->released <= job->arrived.least,
        "a step was released that not all are ready for");
    HOLDS(!runs || job->applied.least <= job->released, "a step was applied that was not released");
    HOLDS(!runs || job->arrived.least <= job->released + LIMIT_WINDOW_STEPS,
        "the window is too wide");
    HOLDS(job->wanted <= job->released + 1, "a step is wanted that is out of reach");
    /* A program that was stopped has not finished: it may have more steps. */
    HOLDS(job->finished == 0 || job->wanted <= job->finished_position || job->outcome != 0 ||
              job->preempt == PREEMPT_SAVED,
        "a program waits for a step that another has finished without");
    HOLDS(job->finished <= job->roster, "more tasks finished than are in the roster");
    HOLDS(job->phase != PHASE_DONE || job->finished == job->roster || job->preempt != PREEMPT_NOT,
        "bye came before the end");
    HOLDS(!runs || !job->has_checkpoint || job->restarted || job->generation.number == 1 ||
              job->checkpoint.position <= job->released,
        "a checkpoint is ahead of the watermark");
    HOLDS(!runs || !job->has_checkpoint ||
              (job->published != POSITION_NONE && job->published >= job->checkpoint.position),
        "releases lack the newest checkpoint");
    HOLDS(
        !job->has_part || job->part.position <= job->released, "a part is ahead of the watermark");
    HOLDS((job->halt_kind == HALT_NONE) == (job->halt_at == POSITION_NONE), "half a halt");
    HOLDS(job->halt_kind == HALT_NONE || job->released <= job->halt_at,
        "a step was released beyond a halt");
    for (uint32_t i = 1; i < job->step_range_count; i++) {
        HOLDS(job->step_ranges[i - 1].through <= job->step_ranges[i].cursor.begin,
            "two step ranges overlap");
    }
    return NULL;
}

/* A published and compared state was found equal on all; so was the final one before goodbye. */
static const char *verified_holds(const struct job *job)
{
    const struct core_checkpoint *newest = &job->checkpoint;
    bool ours = job->has_checkpoint && newest->digest != 0 &&
                newest->generation.number == job->generation.number;
    HOLDS(job->verified.digest != 0 || job->verified.position == 0, "half a verified position");
    HOLDS(job->phase != PHASE_RUN || job->verified.position <= job->released,
        "states were compared that no task may have");
    HOLDS(job->phase != PHASE_RUN || !ours || job->verified.position >= newest->position,
        "a checkpoint was published that is not verified");
    HOLDS(!job->diverged || job->outcome != 0 || job->behind || generation_is_broken(job),
        "a generation goes on whose states differ");
    return NULL;
}

static const char *counts_hold(const struct job *job)
{
    HOLDS(job->waiting + job->alive + job->gone == job->tasks, "a task is in no state");
    HOLDS(job->running <= job->alive, "more tasks run than are alive");
    HOLDS(job->usable <= job->alive, "more tasks are usable than are alive");
    HOLDS(job->ready <= job->usable, "more tasks are ready than are usable");
    HOLDS(job->present <= job->usable, "more members than usable tasks");
    HOLDS(job->present <= job->roster, "more members are present than there are");
    HOLDS(job->reported <= job->present, "more members reported than there are");
    HOLDS(job->unconfirmed <= job->present, "more members are unconfirmed than there are");
    HOLDS(job->joiners <= job->usable - job->present, "a member would join");
    HOLDS(job->collected <= job->gone, "a task was collected before it was gone");
    HOLDS(job->refilled <= job->gone, "more tasks are to be placed again than are gone");
    HOLDS(job->declined <= job->waiting, "a slot is declined that is not empty");
    return NULL;
}

static const char *phase_holds(const struct job *job)
{
    bool open = job->outcome == 0 && !job->behind;
    switch (job->phase) {
    case PHASE_JOIN:
        HOLDS(job->roster == 0, "a roster without a plan");
        HOLDS(job->halt_kind == HALT_NONE, "a halt without a plan");
        HOLDS(job->generation.number == 0 || job->restart_all, "a plan was forgotten");
        break;
    case PHASE_RUN:
        HOLDS(job->roster > 0, "a plan without a roster");
        HOLDS(!deadline_armed(job, DEADLINE_REPORT), "reports are awaited of a running job");
        HOLDS(!deadline_armed(job, DEADLINE_WAIT) || ps_job_is_set(&job->ps_job),
            "a running job waits");
        break;
    case PHASE_REGROUP:
        /* A member reports or is dismissed; when all have reported, regroup_decide() runs once. */
        HOLDS(!open || deadline_armed(job, DEADLINE_REPORT) || (job->due & DUE_REGROUP) != 0 ||
                  (job->reported == job->present && deadline_armed(job, DEADLINE_WAIT)),
            "a regroup without an end");
        break;
    case PHASE_DONE:
        HOLDS(!preempt_stops(job), "it stops after the end");
        HOLDS(job->usable == job->present, "a joiner after the end");
        HOLDS(job->fresh == NONE || !open, "a place after the end");
        break;
    }
    HOLDS(job->phase == PHASE_JOIN || job->generation.number > 0, "a phase without a plan");
    return NULL;
}

static const char *preempt_holds(const struct job *job)
{
    bool runs = job->phase == PHASE_RUN || job->phase == PHASE_REGROUP;
    bool open = job->outcome == 0 && !job->behind;
    HOLDS(!open || !preempt_stops(job) || runs, "it stops and does not run");
    HOLDS(!open || !preempt_stops(job) || deadline_armed(job, DEADLINE_PREEMPT),
        "it stops without a deadline");
    HOLDS(!open || job->halt_kind != HALT_STOP || job->preempt == PREEMPT_STOPS ||
              job->preempt == PREEMPT_SAVED,
        "a stop without a preemption");
    HOLDS(job->preempt != PREEMPT_SAVED || !open || job->phase == PHASE_DONE, "it left too early");
    HOLDS(job->preempt <= PREEMPT_SAVED || !open || job->phase == PHASE_JOIN,
        "it leaves and is still in a generation");
    HOLDS(job->state != JOB_QUEUED || job->preempt == PREEMPT_NOT, "preempted in the queue");
    return NULL;
}

static const char *ps_job_holds(const struct job *job)
{
    const uint32_t *ps_task_counts = job->ps_task_counts;
    HOLDS(ps_job_is_set(&job->ps_job) ||
              ps_task_counts[ROLE_WORKER] + ps_task_counts[ROLE_SERVER] == 0,
        "ps tasks without a ps job");
    HOLDS(ps_task_counts[ROLE_NONE] == 0 && ps_task_counts[ROLE_CHIEF] == 0,
        "the chief is a ps task");
    HOLDS(job->usable + ps_task_counts[ROLE_WORKER] + ps_task_counts[ROLE_SERVER] +
                  ps_task_counts[ROLE_EVALUATOR] <=
              job->alive,
        "more tasks are used than are alive");
    HOLDS(!ps_job_is_set(&job->ps_job) || job->roster <= 1, "a ps task is in the roster");
    HOLDS(job->ps_shutdown == PS_SHUTDOWN_NONE || job->phase == PHASE_DONE || job->outcome != 0,
        "a ps job ends too early");
    HOLDS(job->ps_shutdown != PS_SHUTDOWN_SERVERS ||
              ps_task_counts[ROLE_WORKER] + ps_task_counts[ROLE_EVALUATOR] + job->present == 0,
        "servers leave before the others");
    return NULL;
}

static const char *job_holds(const struct job *job)
{
    bool placed = job->state != JOB_QUEUED;
    const char *broken = counts_hold(job);
    if (broken == NULL) {
        broken = phase_holds(job);
    }
    if (broken == NULL) {
        broken = preempt_holds(job);
    }
    if (broken == NULL) {
        broken = ps_job_holds(job);
    }
    if (broken == NULL) {
        broken = verified_holds(job);
    }
    if (broken != NULL) {
        return broken;
    }
    HOLDS(!job_state_is_final(job->state), "a job that ended is still here");
    HOLDS(placed || job->waiting == job->tasks, "a job is queued and placed");
    HOLDS(placed || job->task_groups == 0, "a queued job is on a worker");
    HOLDS(job->tasks_min >= 1 && job->tasks_min <= job->tasks, "the fewest tasks are too many");
    HOLDS(job->restarts <= job->max_restarts || job->outcome != 0, "restarted too often");
    HOLDS(job->state != JOB_ENDING || job->outcome != 0, "a job is ending without an outcome");
    HOLDS(job->outcome == 0 || job->alive > 0 || job->state == JOB_ENDING || !placed,
        "no task is left and the job goes on");
    HOLDS(!job->stopped || job->outcome != 0, "a job was stopped without a reason");
    HOLDS(job->outcome != JOB_SUCCEEDED || job->alive == 0, "it succeeded too early");
    HOLDS(job->agains <= job->task_groups, "more task groups are started again than there are");
    HOLDS(!job->underfilled || (placed && job->outcome == 0 && job->waiting > 0),
        "a job is underfilled that fills no slot");
    return job->phase == PHASE_JOIN ? NULL : barrier_holds(job);
}

static const char *task_holds(const struct core *core, const struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    HOLDS((task->task_group == NONE) == (task->state == TASK_WAITING), "a place without a task");
    HOLDS(task->state != TASK_WAITING || task->dismissed == DISMISSED_NOT,
        "an empty slot is dismissed");
    HOLDS(task->refill != REFILL_NOW || task->state == TASK_EXITED || task->state == TASK_LOST,
        "the slot of a running task is to be filled");
    HOLDS(task->rank == NONE ||
              (task->rank < job->roster && core->members[job->first + task->rank] == slot),
        "rank and roster differ");
    HOLDS(task->joining == JOINING_NOT || task->rank == NONE, "a member would join");
    HOLDS(task->incarnation <= job->incarnation_max, "an incarnation that was not given out");
    HOLDS(task->state != TASK_LOST || task->collected, "a lost task holds a slot");
    HOLDS(!task_is_ps_task(task) || (task->rank == NONE && task->joining == JOINING_NOT),
        "a ps task in the ledger");
    HOLDS(task->role == ps_job_role(&job->ps_job, slot), "a slot has the role of another");
    HOLDS(task->dismissed == DISMISSED_NOT || task->rank == NONE, "a member is dismissed");
    return NULL;
}

static const char *tasks_hold(const struct core *core, const struct job *job)
{
    struct job seen = {.id = job->id};
    uint64_t common_digest = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        const char *broken = task_holds(core, job, slot);
        bool member = task_is_usable(task) && task->rank != NONE;
        bool counts = task_is_usable(task) && !task_is_ps_task(task);
        bool gone = task->state == TASK_EXITED || task->state == TASK_LOST;
        if (broken != NULL) {
            return broken;
        }
        seen.waiting += task->state == TASK_WAITING;
        seen.alive += !gone && task->state != TASK_WAITING;
        seen.running += task->state == TASK_RUNNING;
        seen.gone += gone;
        seen.collected += task->collected;
        seen.usable += counts;
        seen.ps_task_counts[task->role] += task_is_usable(task) && task_is_ps_task(task);
        seen.joined += task->joined;
        seen.ready += counts && task->joined;
        seen.present += member;
        seen.reported += member && task->reported;
        seen.unconfirmed += member && !task->joined;
        seen.finished += task->finished;
        seen.joiners += task_is_usable(task) && task->joining != JOINING_NOT;
        seen.refilled += task->refill == REFILL_NOW;
        seen.declined += task->state == TASK_WAITING && task->refill == REFILL_NEXT_PLAN;
        if (job->phase == PHASE_DONE && task->rank != NONE && task->digest != 0) {
            HOLDS(common_digest == 0 || common_digest == task->digest,
                "bye was sent to states that differ");
            common_digest = task->digest;
        }
    }
    HOLDS(seen.waiting == job->waiting, "the waiting are miscounted");
    HOLDS(seen.alive == job->alive, "the alive are miscounted");
    HOLDS(seen.running == job->running, "the running are miscounted");
    HOLDS(seen.gone == job->gone, "the gone are miscounted");
    HOLDS(seen.collected == job->collected, "the collected are miscounted");
    HOLDS(seen.usable == job->usable, "the usable are miscounted");
    HOLDS(seen.joined == job->joined, "the joined are miscounted");
    HOLDS(seen.ready == job->ready, "the ready are miscounted");
    HOLDS(seen.present == job->present, "the members are miscounted");
    HOLDS(seen.reported == job->reported, "the reports are miscounted");
    HOLDS(seen.unconfirmed == job->unconfirmed, "the unconfirmed are miscounted");
    HOLDS(seen.finished == job->finished, "the finished are miscounted");
    HOLDS(seen.joiners == job->joiners, "the joiners are miscounted");
    HOLDS(seen.refilled == job->refilled, "the tasks to be placed again are miscounted");
    HOLDS(memcmp(seen.ps_task_counts, job->ps_task_counts, sizeof(seen.ps_task_counts)) == 0,
        "the ps tasks are miscounted");
    HOLDS(seen.declined == job->declined, "the declined are miscounted");
    return NULL;
}

static const char *task_group_holds(const struct core *core, const struct job *job, uint32_t number)
{
    const struct task_group *task_group = job_task_group(core, job, number);
    uint32_t tasks = 0;
    uint32_t members = 0;
    uint32_t prev = NONE;
    for (uint32_t slot = task_group->first; slot != NONE; slot = job_task(core, job, slot)->next) {
        const struct task *task = job_task(core, job, slot);
        HOLDS(task->task_group == number && task->prev == prev, "a task is in another task group");
        prev = slot;
        members += task->rank != NONE;
        HOLDS(++tasks <= job->tasks, "a task group has no end");
    }
    HOLDS(task_group->last == prev && tasks == task_group->tasks,
        "the tasks of a task group are miscounted");
    HOLDS(tasks > 0, "a task group without tasks");
    HOLDS(members == task_group->members, "the members of a task group are miscounted");
    HOLDS(job->phase != PHASE_RUN || members == 0 || task_group->up_to >= job->arrived.least,
        "a task group is behind the lowest arrival");
    HOLDS(job->phase != PHASE_RUN || members == 0 || task_group->applied <= task_group->up_to,
        "a task group applied what it had no batch for");
    if (task_group->worker != NONE) {
        HOLDS(core->workers[task_group->worker].state != WORKER_FREE,
            "a task group on a lost worker");
        HOLDS(core->workers[task_group->worker].id.n == task_group->worker_id.n,
            "a task group moved");
        HOLDS(
            task_group_find(core, job, task_group->worker) == number, "a task group is not found");
    }
    return NULL;
}

static const char *task_groups_hold(const struct core *core, const struct job *job)
{
    uint32_t tasks = 0;
    uint32_t agains = 0;
    uint32_t lowest = 0;
    uint32_t unarrived = 0;
    for (uint32_t i = 0; i < job->task_groups; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        const char *broken = task_group_holds(core, job, i);
        if (broken != NULL) {
            return broken;
        }
        tasks += task_group->tasks;
        agains += task_group->again;
        lowest += task_group->members > 0 && task_group->up_to == job->arrived.least;
        unarrived += task_group->members > 0 && !task_group->arrived;
    }
    HOLDS(tasks == job->tasks - job->waiting, "not every placed task is in a task group");
    HOLDS(agains == job->agains, "the task groups to be started again are miscounted");
    HOLDS(job->phase != PHASE_RUN || lowest == job->arrived.holders,
        "the task groups at the lowest arrival are miscounted");
    HOLDS(job->phase != PHASE_RUN || unarrived == job->unarrived,
        "the task groups that have not arrived are miscounted");
    return NULL;
}

static const char *jobs_hold(const struct core *core)
{
    uint32_t tasks = 0;
    uint32_t drained = core->drained.first;
    uint64_t last = 0;
    const struct list *live = &core->jobs_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        const struct job *job = &core->jobs[i];
        const char *broken = job_holds(job);
        HOLDS(job->id.n > last && job->id.n <= core->job_last, "ids of jobs do not rise");
        HOLDS(map_get(&core->jobs_by_id, job->id.n) == i, "a job is not found by its id");
        HOLDS(job->first >= tasks, "the tasks of two jobs overlap");
        HOLDS(!job->draining || drained == i, "a job that drains is not listed as such");
        drained = job->draining ? core->drained.nodes[i].next : drained;
        HOLDS(job->first + job->tasks <= core->tasks_used, "tasks lie beyond the end");
        if (broken == NULL) {
            broken = tasks_hold(core, job);
        }
        if (broken == NULL) {
            broken = task_groups_hold(core, job);
        }
        if (broken != NULL) {
            return broken;
        }
        last = job->id.n;
        tasks = job->first + job->tasks;
    }
    HOLDS(drained == LIST_NONE, "a job is listed that does not drain");
    const struct list *underfilled = &core->underfilled;
    for (uint32_t i = underfilled->first; i != LIST_NONE; i = underfilled->nodes[i].next) {
        HOLDS(core->jobs[i].underfilled && core->jobs[i].id.n != 0,
            "a job is listed that is not underfilled");
    }
    return queue_fault(core);
}

/* Each worker counts for all jobs that ask for no more GPUs than its slots have. */
static const char *slots_hold(const struct core *core)
{
    const struct list *live = &core->workers_live;
    uint64_t total[LIMIT_GPUS_PER_WORKER + 1] = {0};
    uint64_t unused[LIMIT_GPUS_PER_WORKER + 1] = {0};
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        const struct worker *worker = &core->workers[i];
        HOLDS(worker->slot_gpus <= LIMIT_GPUS_PER_WORKER, "a slot has too many GPUs");
        HOLDS(worker->slot_gpus == worker->counted_gpus, "GPUs of a worker are not counted");
        total[worker->slot_gpus] += worker->counted_total;
        unused[worker->slot_gpus] += worker->counted_free;
    }
    uint64_t total_sum = 0;
    uint64_t unused_sum = 0;
    for (uint32_t gpus = LIMIT_GPUS_PER_WORKER + 1; gpus-- > 0;) {
        total_sum += total[gpus];
        unused_sum += unused[gpus];
        HOLDS(total_sum == core->slots_total[gpus], "the slots of the cluster are miscounted");
        HOLDS(unused_sum == core->slots_free[gpus], "the free slots of the cluster are miscounted");
    }
    return NULL;
}

static const char *workers_hold(const struct core *core)
{
    uint64_t last = 0;
    const struct list *live = &core->workers_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        const struct worker *worker = &core->workers[i];
        uint32_t used = 0;
        HOLDS(worker->state != WORKER_FREE, "a worker is listed that is not there");
        HOLDS(worker->id.n > last, "ids of workers do not rise");
        HOLDS((worker->state == WORKER_CONNECTED) == (worker->link.n != 0),
            "a link without a worker");
        HOLDS((worker->state == WORKER_AWAY) == (worker->absence != ABSENCE_NONE),
            "a worker is away for no reason");
        HOLDS(!worker->overdue || worker->state == WORKER_AWAY, "a connected worker is overdue");
        HOLDS(worker->draining == (worker->leaves || worker->drained), "half a drain");
        HOLDS(worker->drained == (drain_of(core, worker->name) != NULL),
            "a drain that its worker lacks");
        HOLDS(worker->link.n == 0 || worker_by_link(core, worker->link) == i,
            "a worker is not found by its link");
        HOLDS(core->deadlines.positions[i] != HEAP_NONE, "a worker without a lease");
        for (struct task_group_ref ref = worker->task_groups; ref.job != NONE;) {
            const struct task_group *task_group =
                job_task_group(core, &core->jobs[ref.job], ref.task_group);
            HOLDS(task_group->worker == i, "a worker has a task group of another");
            for (uint32_t slot = task_group->first; slot != NONE;) {
                const struct task *task = job_task(core, &core->jobs[ref.job], slot);
                used += !task->collected;
                slot = task->next;
            }
            ref = task_group->next;
        }
        HOLDS(used == worker->slots_used, "the used slots of a worker are miscounted");
        last = worker->id.n;
    }
    HOLDS(core->workers_by_name.count == live->count, "names and workers differ");
    const char *broken = offers_fault(core);
    return broken != NULL ? broken : slots_hold(core);
}

const char *core_invariant(const struct core *core, bool whole)
{
    if (!whole && core->recent_count <= RECENT_MAX) {
        for (uint32_t i = 0; core->recent_step == core->steps && i < core->recent_count; i++) {
            const struct job *job = &core->jobs[core->recent[i]];
            const char *broken = job->id.n == 0 ? NULL : job_holds(job);
            if (broken != NULL) {
                return broken;
            }
        }
        return NULL;
    }
    const char *broken = jobs_hold(core);
    return broken != NULL ? broken : workers_hold(core);
}
