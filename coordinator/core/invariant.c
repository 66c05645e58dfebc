/* SPDX-License-Identifier: Apache-2.0
 * What is true between two steps, whatever happened. The counts of a job are compared with each
 * other after every step, and with the tasks themselves when the whole core is checked. */
#include "coordinator/core/state.h"

#define HOLDS(condition, broken)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            return broken;                                                                         \
        }                                                                                          \
    } while (0)

static const char *barrier_holds(const struct job *job)
{
    HOLDS(job->resume <= job->released, "a release is below the generation's first position");
    HOLDS(job->released <= job->arrived.least, "a step was released that not all are ready for");
    HOLDS(job->applied.least <= job->released, "a step was applied that was not released");
    HOLDS(job->arrived.least <= job->released + LIMIT_WINDOW_STEPS, "the window is too wide");
    HOLDS(job->wanted <= job->released + 1, "a step is wanted that is out of reach");
    HOLDS(job->finished == 0 || job->wanted <= job->finished_position || job->outcome != 0,
        "a program waits for a step that another has finished without");
    HOLDS(job->finished <= job->roster, "more tasks finished than are in the roster");
    HOLDS(job->phase != PHASE_DONE || job->finished == job->roster, "bye came before the end");
    HOLDS(!job->has_checkpoint || job->checkpoint_position <= job->released,
        "a checkpoint is ahead of the watermark");
    for (uint32_t i = 1; i < job->stretch_count; i++) {
        HOLDS(job->stretches[i - 1].through <= job->stretches[i].cursor.begin,
            "two stretches of the line overlap");
    }
    return NULL;
}

static const char *job_holds(const struct job *job)
{
    bool placed = job->state != JOB_QUEUED;
    HOLDS(!job_state_is_final(job->state), "a job that ended is still here");
    HOLDS(placed == (job->parties > 0), "a job is placed on nobody, or queued and placed");
    HOLDS(job->incarnation_max == (placed ? job->tasks : 0), "incarnations do not match the tasks");
    HOLDS(job->running <= job->tasks, "more tasks ran than there are");
    HOLDS(job->joined <= job->running, "a task joined that never ran");
    HOLDS(job->gone <= job->tasks, "more tasks are gone than there are");
    HOLDS(job->collected <= job->gone, "a task was collected before it was gone");
    HOLDS(job->silent + job->joined <= job->tasks, "a task joined and did not");
    HOLDS(job->state != JOB_ENDING || job->outcome != 0, "a job is ending without an outcome");
    HOLDS(job->gone < job->tasks || job->state == JOB_ENDING, "all are gone and it goes on");
    HOLDS(!job->stopped || job->outcome != 0, "a job was stopped without a reason");
    HOLDS(job->outcome != JOB_SUCCEEDED || job->gone == job->tasks, "it succeeded too early");
    HOLDS(job->agains <= job->parties, "more parties are started again than there are");
    HOLDS((job->phase == PHASE_JOIN) == (job->generation.number == 0), "a phase without a plan");
    return job->phase == PHASE_JOIN ? NULL : barrier_holds(job);
}

static const char *tasks_hold(const struct core *core, const struct job *job)
{
    uint32_t joined = 0;
    uint32_t gone = 0;
    uint32_t collected = 0;
    uint32_t finished = 0;
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool is_gone = task->state == TASK_EXITED || task->state == TASK_LOST;
        HOLDS((task->state == TASK_WAITING) == (job->state == JOB_QUEUED), "a task waits alone");
        HOLDS((task->party == NONE) == (job->state == JOB_QUEUED), "a task is placed alone");
        HOLDS(task->has_exit == (task->state == TASK_EXITED), "an exit without a process");
        HOLDS(task->rank == NONE || core->members[job->first + task->rank] == slot,
            "rank and roster differ");
        joined += task->joined;
        gone += is_gone;
        collected += task->collected;
        finished += task->finished;
    }
    HOLDS(joined == job->joined, "the joined are miscounted");
    HOLDS(gone == job->gone, "the gone are miscounted");
    HOLDS(collected == job->collected, "the collected are miscounted");
    HOLDS(finished == job->finished, "the finished are miscounted");
    return NULL;
}

static const char *parties_hold(const struct core *core, const struct job *job)
{
    uint32_t slot = 0;
    uint32_t members = 0;
    uint32_t agains = 0;
    uint32_t lowest = 0;
    for (uint32_t i = 0; i < job->parties; i++) {
        const struct party *party = job_party(core, job, i);
        HOLDS(party->first_slot == slot, "the parties of a job do not tile its slots");
        HOLDS(party->up_to >= job->arrived.least || party->members == 0, "a party is overtaken");
        HOLDS(party->applied <= party->up_to, "a party applied what it was not ready for");
        slot += party->tasks;
        members += party->members;
        agains += party->again;
        lowest += party->members > 0 && party->up_to == job->arrived.least;
        if (party->worker != NONE) {
            uint64_t place = (uint64_t)job_index(core, job) << 32 | party->worker;
            HOLDS(core->workers[party->worker].state != WORKER_FREE, "a party on a lost worker");
            HOLDS(core->workers[party->worker].id.n == party->worker_id.n, "a party moved");
            HOLDS(map_get(&core->parties_by_place, place) == i, "a party is not found");
        }
    }
    HOLDS(job->state == JOB_QUEUED || slot == job->tasks, "not every task is in a party");
    HOLDS(members == job->roster, "the roster is miscounted");
    HOLDS(agains == job->agains, "the parties to be started again are miscounted");
    HOLDS(job->phase == PHASE_JOIN || lowest == job->arrived.holders,
        "those at the watermark are miscounted");
    return NULL;
}

static const char *jobs_hold(const struct core *core)
{
    uint32_t tasks = 0;
    uint64_t last = 0;
    const struct list *live = &core->jobs_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        const struct job *job = &core->jobs[i];
        const char *broken = job_holds(job);
        HOLDS(job->id.n > last && job->id.n <= core->job_last, "ids of jobs do not rise");
        HOLDS(map_get(&core->jobs_by_id, job->id.n) == i, "a job is not found by its id");
        HOLDS(job->first >= tasks, "the tasks of two jobs overlap");
        HOLDS(job->first + job->tasks <= core->tasks_used, "tasks lie beyond the end");
        if (broken == NULL) {
            broken = tasks_hold(core, job);
        }
        if (broken == NULL) {
            broken = parties_hold(core, job);
        }
        if (broken != NULL) {
            return broken;
        }
        last = job->id.n;
        tasks = job->first + job->tasks;
    }
    const struct list *queue = &core->queue;
    for (uint32_t i = queue->first; i != LIST_NONE; i = queue->nodes[i].next) {
        uint32_t next = queue->nodes[i].next;
        HOLDS(core->jobs[i].state == JOB_QUEUED, "a job is queued and placed");
        HOLDS(next == LIST_NONE || core->jobs[i].priority >= core->jobs[next].priority,
            "the queue is out of order");
    }
    return NULL;
}

static const char *workers_hold(const struct core *core)
{
    uint64_t total = 0;
    uint64_t unused = 0;
    uint64_t last = 0;
    const struct list *live = &core->workers_live;
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        const struct worker *worker = &core->workers[i];
        uint32_t used = 0;
        HOLDS(worker->state != WORKER_FREE, "a worker is listed that is not there");
        HOLDS(worker->id.n > last, "ids of workers do not rise");
        HOLDS((worker->state == WORKER_CONNECTED) == (worker->link.n != 0),
            "a link without a worker");
        HOLDS(worker->link.n == 0 || worker_by_link(core, worker->link) == i,
            "a worker is not found by its link");
        HOLDS(core->deadlines.places[i] != HEAP_NONE, "a worker without a lease");
        for (struct party_ref ref = worker->parties; ref.job != NONE;) {
            const struct party *party = job_party(core, &core->jobs[ref.job], ref.party);
            HOLDS(party->worker == i, "a worker holds a party of another");
            for (uint32_t k = 0; k < party->tasks; k++) {
                used += !job_task(core, &core->jobs[ref.job], party->first_slot + k)->collected;
            }
            ref = party->next;
        }
        HOLDS(used == worker->slots_used, "the used slots of a worker are miscounted");
        total += worker->counted_total;
        unused += worker->counted_free;
        last = worker->id.n;
    }
    HOLDS(total == core->slots_total, "the slots of the cluster are miscounted");
    HOLDS(unused == core->slots_free, "the free slots of the cluster are miscounted");
    HOLDS(core->workers_by_name.count == live->count, "names and workers differ");
    return NULL;
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
