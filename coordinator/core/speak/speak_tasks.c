/* SPDX-License-Identifier: Apache-2.0
 * What is said task by task, as there is room. */
#include "coordinator/core/speak/speak_tasks.h"

#include "coordinator/core/facts/party.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/tell.h"

/* The place that a task was given; then its worker may be told to start it. */
static void record_fresh(struct core *core, struct job *job)
{
    uint32_t slot = job->fresh;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_party(core, job, task->party)->worker;
    CADRE_ASSERT(task->unplaced);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK, true);
    record->task.slot = slot;
    record->task.incarnation = task->incarnation;
    record->task.lives = task->lives;
    record->task.lives_in = task->lives_in;
    record->task.backed_by = task->backed.by;
    job->fresh = task->next_fresh;
    task->unplaced = false;
    if (worker != NONE) {
        memcpy(record->task.worker, core->workers[worker].name, sizeof(record->task.worker));
        party_again(core, job, task->party);
    }
    task_vacate(core, job, slot);
}

static void record_lost(struct core *core, struct job *job)
{
    uint32_t slot = job->lost;
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->unsaid);
    CADRE_ASSERT(task->state == TASK_LOST);
    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    struct text text = text_begin(record->task_exit.exit.text, sizeof(record->task_exit.exit.text));
    record->task_exit.slot = slot;
    record->task_exit.incarnation = task->incarnation;
    record->task_exit.state = TASK_LOST;
    text_add(&text, task->dismissed == DISMISSED_NOT ? "" : "it was not wanted any more, and ");
    text_add(&text, "its worker was lost: nobody knows how it ended");
    job->lost = task->next_lost;
    task->unsaid = false;
    CADRE_ASSERT(core->unsaid > 0);
    core->unsaid--;
    task_vacate(core, job, slot);
}

/* One that is away hears it when it says hello. */
static void stop_dismissed(struct core *core, struct job *job)
{
    uint32_t slot = job->dismissed;
    struct task *task = job_task(core, job, slot);
    uint32_t worker = job_party(core, job, task->party)->worker;
    bool alive = task->state == TASK_STARTING || task->state == TASK_RUNNING;
    CADRE_ASSERT(task->unstopped);
    CADRE_ASSERT(task->dismissed != DISMISSED_NOT);
    job->dismissed = task->next_dismissed;
    task->unstopped = false;
    if (!alive || worker == NONE || core->workers[worker].state != WORKER_CONNECTED) {
        task_vacate(core, job, slot);
        return;
    }
    if (task->joined && task->dismissed != DISMISSED_SILENT) {
        tell_word(core, job, slot,
            task->dismissed == DISMISSED_RESET ? TASK_DOWN_RESET : TASK_DOWN_SUPERSEDED,
            CADRE_ABORTED, "the job goes on without this task");
    }
    struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
    action->stop_task.link = core->workers[worker].link;
    action->stop_task.task = job_task_ref(core, job, slot);
}

/* To a worker that may not have got the start of all its tasks. */
static void start_again(struct core *core, struct job *job, struct party *party)
{
    const struct worker *worker = &core->workers[party->worker];
    CADRE_ASSERT(party->again);
    CADRE_ASSERT(job->agains > 0);
    party->again = false;
    job->agains--;
    if (worker->state == WORKER_CONNECTED) { /* else its next hello brings it up */
        struct core_action *action = action_add(core, CORE_ACTION_START_AGAIN);
        action->start_again.job = job->id;
        action->start_again.link = worker->link;
    }
}

/* Whether all that wait for steps of a stream that is over are told. Who is away is when it is
 * back.
 */
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
        uint32_t worker = job_party(core, job, task->party)->worker;
        joining_move(task, JOINING_WAITS);
        if (task_is_usable(task) && worker != NONE &&
            core->workers[worker].state == WORKER_CONNECTED) {
            tell_word(core, job, slot, TASK_DOWN_WARM, CADRE_OK, "");
        }
    }
    job->outdated = false;
    return true;
}

/* Whether all of it is said. In this order: a place is recorded before its task is started, a task
 * is started before it is told to end, and a slot is empty again only when nothing is left to be
 * said of its last task. */
bool speak_of_tasks(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->agains <= job->parties);
    while (job->fresh != NONE && actions_left(core) > ACTIONS_PER_JOB_MAX) {
        record_fresh(core, job);
    }
    if (job->fresh != NONE) {
        return false;
    }
    for (uint32_t i = 0; i < job->parties && job->agains > 0; i++) {
        struct party *party = job_party(core, job, i);
        if (party->again && actions_left(core) > ACTIONS_PER_JOB_MAX) {
            start_again(core, job, party);
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
