/* SPDX-License-Identifier: Apache-2.0
 * The memory of jobs. The tasks of a job are contiguous; when the arrays are used up to their end
 * but have free slots between jobs, all jobs are moved to the front. requests.c, restore.c and
 * ending.c call this. */
#include "coordinator/core/facts/jobs.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/drain.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"
#include "coordinator/core/state/queue.h"

bool job_fits(const struct core *core, uint32_t tasks, char sentence[LIMIT_TEXT_BYTES])
{
    const struct core_limits *limits = &core->options.limits;
    struct text text = text_begin(sentence, LIMIT_TEXT_BYTES);
    CADRE_ASSERT(core->tasks_live <= limits->tasks_max);
    if (core->jobs_free.count == 0) {
        text_add(&text, "the coordinator holds ");
        text_add_u64(&text, limits->jobs_max);
        text_add(&text,
            " jobs that have not ended, which is its limit: try again when one has, or raise "
            "--jobs-max");
        return false;
    }
    if (tasks > limits->tasks_max - core->tasks_live) {
        text_add(&text, "the job asks for ");
        text_add_u64(&text, tasks);
        text_add(&text, " tasks and the coordinator holds ");
        text_add_u64(&text, core->tasks_live);
        text_add(&text, " of at most ");
        text_add_u64(&text, limits->tasks_max);
        text_add(&text, ": try again when a job has ended, or raise --tasks-max");
        return false;
    }
    return true;
}

/* Moves all live tasks to the front of the arrays, in their order. */
static void tasks_compact(struct core *core)
{
    uint32_t to = 0;
    const struct list *live = &core->jobs_live;
    CADRE_ASSERT(core->tasks_live <= core->tasks_used);
    for (uint32_t i = live->first; i != LIST_NONE; i = live->nodes[i].next) {
        struct job *job = &core->jobs[i];
        CADRE_ASSERT(job->first >= to);
        memmove(core->tasks + to, core->tasks + job->first, sizeof(*core->tasks) * job->tasks);
        memmove(core->task_groups + to, core->task_groups + job->first,
            sizeof(*core->task_groups) * job->tasks);
        memmove(
            core->members + to, core->members + job->first, sizeof(*core->members) * job->tasks);
        job->first = to;
        to += job->tasks;
    }
    CADRE_ASSERT(to == core->tasks_live);
    core->tasks_used = to;
}

struct job *job_create(struct core *core, struct job_id id, const struct core_job_spec *spec)
{
    uint32_t tasks = spec->tasks;
    uint32_t tasks_max = core->options.limits.tasks_max;
    CADRE_ASSERT(core->undecided.count == 0);
    CADRE_ASSERT(tasks > 0 && tasks <= tasks_max - core->tasks_live);
    CADRE_ASSERT(spec->tasks_min > 0 && spec->tasks_min <= tasks);
    CADRE_ASSERT(spec->gpus <= LIMIT_GPUS_PER_WORKER);
    CADRE_ASSERT(id.n > core->job_last);
    if (tasks > tasks_max - core->tasks_used) {
        tasks_compact(core);
    }
    uint32_t index = list_take(&core->jobs_free);
    CADRE_ASSERT(index != LIST_NONE);
    struct job *job = &core->jobs[index];
    memset(job, 0, offsetof(struct job, step_ranges));
    job->id = id;
    job->state = JOB_QUEUED;
    job->phase = PHASE_JOIN;
    job->priority = spec->priority;
    job->tasks = tasks;
    job->tasks_min = spec->tasks_min;
    job->max_restarts = spec->max_restarts;
    job->wait_us = spec->wait_us == 0 ? core->options.wait_us : spec->wait_us;
    job->stall_us = spec->stall_us == 0 ? core->options.stall_us : spec->stall_us;
    job->ps_job = spec->ps_job;
    job->gpus = spec->gpus;
    job->time_limit_us = spec->time_limit_us;
    job->first = core->tasks_used;
    core->tasks_used += tasks;
    core->tasks_live += tasks;
    job->waiting = tasks;
    job->early_slot = NONE;
    job->fresh = NONE;
    job->fresh_last = NONE;
    job->lost = NONE;
    job->dismissed = NONE;
    job->stall_slot = NONE;
    job->waited_slot = NONE;
    job->hang_slot = NONE;
    job->source = SOURCE_NONE;
    job->halt_at = POSITION_NONE;
    job->checkpoint_at = POSITION_NONE;
    job->published = POSITION_NONE;
    for (uint32_t i = 0; i < DEADLINES; i++) {
        job->deadlines[i] = UINT64_MAX;
    }
    memset(core->task_groups + job->first, 0, sizeof(*core->task_groups) * tasks);
    memset(core->members + job->first, 0, sizeof(*core->members) * tasks);
    memset(core->tasks + job->first, 0, sizeof(*core->tasks) * tasks);
    for (uint32_t slot = 0; slot < tasks; slot++) {
        task_clear(job_task(core, job, slot));
    }
    ps_job_init(core, job);
    core->job_last = id.n;
    list_append(&core->jobs_live, index);
    map_add(&core->jobs_by_id, id.n, index);
    queue_add(core, job);
    core->placement_due = true;
    CADRE_ASSERT(job->state == JOB_QUEUED && job->task_groups == 0);
    CADRE_ASSERT(core->jobs_live.count == core->jobs_by_id.count);
    return job;
}

/* Removes the job's tasks from their workers. Tasks that were not collected in time free their
 * slots too, but stay in their agents' entries. */
static void job_release_slots(struct core *core, struct job *job)
{
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->task_group == NONE) {
            continue;
        }
        uint32_t worker = job_task_group(core, job, task->task_group)->worker;
        if (worker != NONE && !task->collected) {
            CADRE_ASSERT(core->workers[worker].slots_used > 0);
            core->workers[worker].slots_used--;
            core->workers[worker].leftovers++;
            worker_offer(core, worker);
        }
        task_group_remove(core, job, slot);
    }
    CADRE_ASSERT(job->task_groups == 0);
}

void job_forget(struct core *core, struct job *job)
{
    uint32_t index = job_index(core, job);
    CADRE_ASSERT(core->jobs_live.count == core->jobs_by_id.count);
    CADRE_ASSERT(job->state != JOB_QUEUED);
    CADRE_ASSERT(job_state_is_final(job->state));
    job_release_slots(core, job);
    deadlines_clear(core, job);
    CADRE_ASSERT(!job->underfilled);
    drain_note(core, job, false);
    if (job->touched) {
        list_remove(&core->touched, index);
    }
    if (job->undecided) {
        list_remove(&core->undecided, index);
        job->undecided = false;
    }
    map_remove(&core->jobs_by_id, job->id.n, index);
    list_remove(&core->jobs_live, index);
    list_insert(&core->jobs_free, core->jobs_free.first, index); /* its memory is mapped already */
    CADRE_ASSERT(core->tasks_live >= job->tasks);
    core->tasks_live -= job->tasks;
    if (job->first + job->tasks == core->tasks_used) {
        core->tasks_used = job->first;
    }
    job->id.n = 0;
}
