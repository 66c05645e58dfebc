/* SPDX-License-Identifier: Apache-2.0
 * Actions of single tasks, as far as the step's list has room. */
#include "coordinator/core/emit/emit.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

/* Records where a task is placed, after which its start may be sent. */
static void record_fresh(struct core *core, struct job *job)
{
    uint32_t slot = job->fresh;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_task_group(core, job, task->task_group)->worker;
    CADRE_ASSERT(task->placement_unrecorded);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK, true);
    record->task.slot = slot;
    record->task.incarnation = task->incarnation;
    record->task.attempts = task->attempts;
    record->task.attempts_generation = task->attempts_generation;
    record->task.backed_by = task->backed.by;
    job->fresh = task->next_fresh;
    task->placement_unrecorded = false;
    if (worker != NONE) {
        memcpy(record->task.worker, core->workers[worker].name, sizeof(record->task.worker));
        task_group_restart(core, job, task->task_group);
    }
    task_vacate(core, job, slot);
}

static void record_lost(struct core *core, struct job *job)
{
    uint32_t slot = job->lost;
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->end_unrecorded);
    CADRE_ASSERT(task->state == TASK_LOST);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    struct text text = text_begin(record->task_exit.exit.text, sizeof(record->task_exit.exit.text));
    record->task_exit.slot = slot;
    record->task_exit.incarnation = task->incarnation;
    record->task_exit.state = TASK_LOST;
    text_add(&text, task->dismissed == DISMISSED_NOT ? "" : "it was not wanted any more, and ");
    text_add(&text, "its worker was lost: how it ended is not known");
    job->lost = task->next_lost;
    task->end_unrecorded = false;
    CADRE_ASSERT(core->end_unrecorded > 0);
    core->end_unrecorded--;
    task_vacate(core, job, slot);
}

/* A worker that is away receives it after its next hello. */
static void stop_dismissed(struct core *core, struct job *job)
{
    uint32_t slot = job->dismissed;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_task_group(core, job, task->task_group)->worker;
    bool alive = task->state == TASK_STARTING || task->state == TASK_RUNNING;
    CADRE_ASSERT(task->stop_unsent);
    CADRE_ASSERT(task->dismissed != DISMISSED_NOT);
    job->dismissed = task->next_dismissed;
    task->stop_unsent = false;
    if (!alive || worker == NONE || core->workers[worker].state != WORKER_CONNECTED) {
        task_vacate(core, job, slot);
        return;
    }
    if (task->joined && task->dismissed != DISMISSED_SILENT) {
        notify_task_status(core, job, slot,
            task->dismissed == DISMISSED_SUPERSEDED ? TASK_DOWN_SUPERSEDED : TASK_DOWN_RESET,
            CADRE_ABORTED, "the job goes on without this task");
    }
    if (task->joined && task->dismissed == DISMISSED_LEAVES) {
        return;
    }
    struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
    action->stop_task.link = core->workers[worker].link;
    action->stop_task.task = job_task_ref(core, job, slot);
}

/* Sends the starts again to a worker that may not have received them. */
static void start_tasks(struct core *core, struct job *job, struct task_group *task_group)
{
    const struct worker *worker = &core->workers[task_group->worker];
    CADRE_ASSERT(task_group->again);
    CADRE_ASSERT(job->agains > 0);
    task_group->again = false;
    job->agains--;
    if (worker->state == WORKER_CONNECTED) { /* else they are sent after its next hello */
        struct core_action *action = action_add(core, CORE_ACTION_START_TASKS);
        action->start_tasks.job = job->id;
        action->start_tasks.link = worker->link;
    }
}

/* Sends WARM to all joiners whose stream is outdated; false: the list is full. A worker that is
 * away receives it after its next hello. */
static bool warm_again(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->outdated);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        struct task *task = job_task(core, job, slot);
        if (task->joining != JOINING_OUTDATED) {
            continue;
        }
        if (actions_left(core) <= ACTIONS_PER_JOB_MAX) {
            return false;
        }
        uint32_t worker = job_task_group(core, job, task->task_group)->worker;
        joining_move(task, JOINING_WAITS);
        if (task_is_usable(task) && worker != NONE &&
            core->workers[worker].state == WORKER_CONNECTED) {
            notify_task_status(core, job, slot, TASK_DOWN_WARM, CADRE_OK, "");
        }
    }
    job->outdated = false;
    return true;
}

bool emit_behind(struct core *core, struct job *job)
{
    job->due &= (uint32_t)DUE_CHANGED;
    while (job->lost != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_lost(core, job);
    }
    if (job->lost != NONE) {
        return false;
    }
    emit_last(core, job);
    CADRE_ASSERT(job->due == 0);
    return true;
}

/* In this order: a placement is recorded before the start is sent, a start is sent before the stop,
 * and a slot is empty again only when nothing of its last task is left to be sent. */
bool emit_tasks(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->agains <= job->task_groups);
    while (job->fresh != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_fresh(core, job);
    }
    if (job->fresh != NONE) {
        return false;
    }
    for (uint32_t i = 0; i < job->task_groups && job->agains > 0; i++) {
        struct task_group *task_group = job_task_group(core, job, i);
        if (task_group->again && actions_left(core) > ACTIONS_PER_JOB_MAX) {
            start_tasks(core, job, task_group);
        }
    }
    if (job->agains > 0) {
        return false;
    }
    while (job->dismissed != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        stop_dismissed(core, job);
    }
    while (job->lost != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_lost(core, job);
    }
    if (job->outdated && !warm_again(core, job)) {
        return false;
    }
    return job->dismissed == NONE && job->lost == NONE;
}
