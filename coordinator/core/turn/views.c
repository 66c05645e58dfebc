/* SPDX-License-Identifier: Apache-2.0
 * The views of core.h: jobs, their tasks, members and workers, and the worker daemons. */
#include "coordinator/core/state/state.h"

#include "coordinator/core/facts/health.h"
#include "coordinator/core/turn/job_text.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/queue.h"
#include "coordinator/core/state/states.h"

static void text_set(char *bytes, size_t size_bytes, const char *string)
{
    struct text text = text_begin(bytes, size_bytes);
    text_add(&text, string);
}

static uint64_t views_committed(const struct job *job)
{
    CADRE_ASSERT(job->applied.least <= job->released || job->phase != PHASE_RUN);
    return job->generation.number > 0 ? job->applied.least : 0;
}

bool core_job(const struct core *core, struct job_id id, struct core_job_view *ret_view)
{
    const struct job *job = job_find(core, id);
    if (job == NULL) {
        return false;
    }
    *ret_view = (struct core_job_view){
        .job = job->id,
        .state = job->state,
        .tasks = job->tasks,
        .tasks_min = job->tasks_min,
        .restarts = job->restarts,
        .roster = job->roster,
        .workers = job->task_groups,
        .queued_before = job->state == JOB_QUEUED ? queue_before(core, job) : 0,
        .generation = job->generation,
        .resume = job->resume,
        .source = job->source,
        .released = job->released,
        .committed = views_committed(job),
        .checkpoint_at = job->checkpoint_at,
        .halt_at = job->halt_at,
        .halt_kind = job->halt_kind,
        .halt_stream = job->halt_stream,
        .has_checkpoint = job->has_checkpoint,
        .checkpoint = job->checkpoint,
        .published = job->published,
        .verified = job->verified,
        .restores = job->phase == PHASE_JOIN && job->has_checkpoint,
        .ps_job = job->ps_job,
        .behind = job->behind,
        .formed = job->phase != PHASE_JOIN,
    };
    ret_view->stall = health_stall_of(core, job);
    CADRE_ASSERT(ret_view->roster <= ret_view->tasks);
    return true;
}

bool core_job_text(const struct core *core, struct job_id id, char ret_text[LIMIT_TEXT_BYTES])
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(core->out == NULL);
    if (job != NULL) {
        job_text(core, job, ret_text);
    }
    return job != NULL;
}

bool core_job_committed(const struct core *core, struct job_id id, uint64_t *ret_committed)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(core->out == NULL);
    if (job != NULL) {
        *ret_committed = views_committed(job);
    }
    return job != NULL;
}

bool core_is_behind(const struct core *core)
{
    return core->behind || core->job_seen > core->job_last;
}

bool core_job_state(const struct core *core, struct job_id id, enum job_state *ret_state)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(core->out == NULL);
    if (job != NULL) {
        *ret_state = job->state;
    }
    return job != NULL;
}

bool core_job_stream(
    const struct core *core, struct job_id id, uint32_t i, struct stream_position *ret_stream)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    for (uint32_t at = 0; at < LIMIT_STREAMS; at++) {
        const struct stream_position *stream = &job->streams[at];
        if (stream->stream != 0 && i-- == 0) {
            *ret_stream = *stream;
            return true;
        }
    }
    return false;
}

/* A task's start is sent before its stop. But the process of a task that its agent has listed may
 * have exited, and be removed there by that stop: the next start would run its program once more.
 */
static bool task_starts(const struct task *task)
{
    bool listed = task->listed_step != 0;
    return task->state == TASK_STARTING && (task->dismissed == DISMISSED_NOT || !listed);
}

void core_job_task(
    const struct core *core, struct job_id id, uint32_t slot, struct core_task_view *ret_view)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    const struct task *task = job_task(core, job, slot);
    *ret_view = (struct core_task_view){
        .slot = slot,
        .worker_name = "",
        .incarnation = task->incarnation,
        .state = task->state,
        .starts = task_starts(task),
        .pid = task->pid,
        .has_exit = task->state == TASK_EXITED,
        .exit = {.code = task->exit_code, .signal = task->exit_signal},
        .sent_hello = task->joined,
        .collected = task->collected,
        .rank = task->rank,
        .replicas = task->replicas,
        .hellos = task->hellos,
        .here = task_is_usable(task) && task->joined,
        .attempts = task->attempts,
        .attempts_generation = task->attempts_generation,
        .predecessor = task->predecessor,
        .backed = task->backed,
        .waited_us = task->waited_us,
    };
    text_set(ret_view->mesh_address, sizeof(ret_view->mesh_address), task->mesh_address);
    if (task->task_group != NONE) {
        const struct task_group *task_group = job_task_group(core, job, task->task_group);
        ret_view->worker = task_group->worker_id;
        if (task_group->worker != NONE) {
            ret_view->worker_name = core->workers[task_group->worker].name;
            ret_view->link = core->workers[task_group->worker].link;
        }
    }
    CADRE_ASSERT((ret_view->worker.n == 0) == (ret_view->state == TASK_WAITING));
}

uint32_t core_job_member(const struct core *core, struct job_id id, uint32_t rank)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    CADRE_ASSERT(job->generation.number > 0);
    CADRE_ASSERT(rank < job->roster);
    return core->members[job->first + rank];
}

void core_job_worker(const struct core *core, struct job_id id, uint32_t i,
    struct worker_id *ret_worker, struct link_id *ret_link, uint32_t *ret_members)
{
    const struct job *job = job_find(core, id);
    CADRE_ASSERT(job != NULL);
    const struct task_group *task_group = job_task_group(core, job, i);
    *ret_worker = task_group->worker_id;
    *ret_link =
        task_group->worker == NONE ? (struct link_id){0} : core->workers[task_group->worker].link;
    *ret_members = task_group->members;
}

uint32_t core_worker_count(const struct core *core)
{
    CADRE_ASSERT(core->workers_live.count <= core->options.limits.workers_max);
    return core->workers_live.count;
}

uint64_t core_workers_lost(const struct core *core)
{
    CADRE_ASSERT(core->workers_lost <= core->worker_last);
    return core->workers_lost;
}

static void show_worker(
    const struct core *core, const struct worker *worker, struct core_worker_view *ret_view)
{
    const struct core_drained *drained = worker->drained ? drain_of(core, worker->name) : NULL;
    CADRE_ASSERT(worker->state != WORKER_FREE);
    CADRE_ASSERT((drained != NULL) == worker->drained);
    *ret_view = (struct core_worker_view){
        .worker = worker->id,
        .link = worker->link,
        .boot_nonce = worker->boot_nonce,
        .slots = worker->slots,
        .slots_used = worker->slots_used,
        .slot_gpus = worker->slot_gpus,
        .draining = worker->draining,
        .drained_by = drained != NULL ? drained->who : NULL,
        .drained_why = drained != NULL ? drained->why : NULL,
        .expected = worker->absence == ABSENCE_EXPECTED,
    };
    text_set(ret_view->name, sizeof(ret_view->name), worker->name);
}

const struct core_drained *core_drain_of(const struct core *core, const char *worker)
{
    return drain_of(core, worker);
}

bool core_worker_named(const struct core *core, const char *name, struct core_worker_view *ret)
{
    uint32_t index = worker_by_name(core, name);
    if (index != NONE) {
        show_worker(core, &core->workers[index], ret);
    }
    return index != NONE;
}

bool core_worker_linked(const struct core *core, struct link_id link, struct core_worker_view *ret)
{
    uint32_t index = worker_by_link(core, link);
    if (index != NONE) {
        show_worker(core, &core->workers[index], ret);
    }
    return index != NONE;
}

/* The cursor is one more than the index of the worker that was shown last. */
bool core_worker_next(const struct core *core, uint32_t *cursor, struct core_worker_view *ret_view)
{
    const struct list *live = &core->workers_live;
    uint32_t index = *cursor == 0 ? live->first : live->nodes[*cursor - 1].next;
    CADRE_ASSERT(*cursor <= core->options.limits.workers_max);
    if (index == LIST_NONE) {
        return false;
    }
    show_worker(core, &core->workers[index], ret_view);
    *cursor = index + 1;
    return true;
}

bool core_worker_find(const struct core *core, struct worker_id id, struct core_worker_view *ret)
{
    uint32_t cursor = 0;
    while (core_worker_next(core, &cursor, ret)) {
        if (ret->worker.n == id.n) {
            return true;
        }
    }
    return false;
}
