/* SPDX-License-Identifier: Apache-2.0
 * Messages to the tasks of a job, and to one of them. */
#include "coordinator/core/state/actions.h"

#include "coordinator/core/state/find.h"

struct core_action *notify_job(struct core *core, const struct job *job, enum core_message what)
{
    struct core_action *action = action_add(core, CORE_ACTION_NOTIFY_JOB);
    CADRE_ASSERT(what >= CORE_MESSAGE_PLAN && what <= CORE_MESSAGE_GOODBYE_SERVERS);
    CADRE_ASSERT(what != CORE_MESSAGE_PLAN || job->generation.number > 0);
    action->notify_job.job = job->id;
    action->notify_job.message = what;
    action->notify_job.generation = job->generation;
    if (what == CORE_MESSAGE_ABORT) {
        const char *why = job->outcome != 0 ? job->text : job->reason;
        memcpy(action->notify_job.reason, why, sizeof(action->notify_job.reason));
    }
    return action;
}

void notify_task(struct core *core, const struct job *job, uint32_t slot, enum core_message what)
{
    struct core_action *action = action_add(core, CORE_ACTION_NOTIFY_JOB);
    CADRE_ASSERT(job_task(core, job, slot)->task_group != NONE);
    CADRE_ASSERT(what == CORE_MESSAGE_GOODBYE || what == CORE_MESSAGE_MEMBERS);
    action->notify_job.job = job->id;
    action->notify_job.message = what;
    action->notify_job.generation = job->generation;
    action->notify_job.one = true;
    action->notify_job.slot = slot;
    action->notify_job.link =
        core->workers[job_task_group(core, job, job_task(core, job, slot)->task_group)->worker]
            .link;
}

void notify_task_status(struct core *core, const struct job *job, uint32_t slot,
    enum task_down_type type, cadre_status code, const char *sentence)
{
    uint32_t worker = job_task_group(core, job, job_task(core, job, slot)->task_group)->worker;
    struct core_action *action = action_add(core, CORE_ACTION_NOTIFY_TASK);
    struct text text = text_begin(action->notify_task.text, sizeof(action->notify_task.text));
    CADRE_ASSERT(worker != NONE && core->workers[worker].state == WORKER_CONNECTED);
    action->notify_task.link = core->workers[worker].link;
    action->notify_task.task = job_task_ref(core, job, slot);
    action->notify_task.type = type;
    action->notify_task.code = code;
    text_add(&text, sentence);
}

void notify_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan)
{
    enum core_message messages[3];
    uint32_t count = 0;
    uint32_t worker = job_task_group(core, job, job_task(core, job, slot)->task_group)->worker;
    bool has_news = job->released > job->resume || job->halt_kind != HALT_NONE ||
                    job->published != POSITION_NONE;
    CADRE_ASSERT(worker != NONE && core->workers[worker].state == WORKER_CONNECTED);
    CADRE_ASSERT(job_task(core, job, slot)->rank != NONE);
    /* What is due will be sent to all members. */
    if (job->phase == PHASE_RUN && (job->due & DUE_PLAN) == 0) {
        if (!knows_plan) {
            messages[count++] = CORE_MESSAGE_PLAN;
        }
        if (has_news) {
            messages[count++] = CORE_MESSAGE_RELEASE;
            /* Rule 19: full state, because messages to the old connection may be lost. */
        }
    } else if (job->phase == PHASE_REGROUP && (job->due & DUE_ABORT) == 0) {
        if (!knows_plan) {
            messages[count++] = CORE_MESSAGE_PLAN; /* else it could not report in that generation */
        }
        messages[count++] = CORE_MESSAGE_ABORT;
    } else if (job->phase == PHASE_DONE && (job->due & DUE_DONE) == 0) {
        messages[count++] = CORE_MESSAGE_GOODBYE;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct core_action *action = notify_job(core, job, messages[i]);
        action->notify_job.one = true;
        action->notify_job.link = core->workers[worker].link;
        action->notify_job.slot = slot;
    }
}
