/* SPDX-License-Identifier: Apache-2.0
 * Words to the tasks of a job, and to one of them. */
#include "coordinator/core/state/tell.h"

#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/find.h"

struct core_action *tell_job(struct core *core, const struct job *job, enum core_tell what)
{
    struct core_action *action = action_add(core, CORE_ACTION_TELL_JOB);
    CADRE_ASSERT(what >= CORE_TELL_PLAN && what <= CORE_TELL_BYE_SERVERS);
    CADRE_ASSERT(what != CORE_TELL_PLAN || job->generation.number > 0);
    action->tell_job.job = job->id;
    action->tell_job.tell = what;
    action->tell_job.generation = job->generation;
    if (what == CORE_TELL_ABORT) {
        const char *why = job->outcome != 0 ? job->text : job->reason;
        memcpy(action->tell_job.reason, why, sizeof(action->tell_job.reason));
    }
    return action;
}

void tell_task(struct core *core, const struct job *job, uint32_t slot, enum core_tell what)
{
    struct core_action *action = action_add(core, CORE_ACTION_TELL_JOB);
    CADRE_ASSERT(job_task(core, job, slot)->party != NONE);
    CADRE_ASSERT(what == CORE_TELL_BYE || what == CORE_TELL_MEMBERS);
    action->tell_job.job = job->id;
    action->tell_job.tell = what;
    action->tell_job.generation = job->generation;
    action->tell_job.one = true;
    action->tell_job.slot = slot;
    action->tell_job.link =
        core->workers[job_party(core, job, job_task(core, job, slot)->party)->worker].link;
}

void tell_word(struct core *core, const struct job *job, uint32_t slot, enum task_down_type type,
    cadre_status code, const char *sentence)
{
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    struct core_action *action = action_add(core, CORE_ACTION_TELL_TASK);
    struct text text = text_begin(action->tell_task.text, sizeof(action->tell_task.text));
    CADRE_ASSERT(worker != NONE && core->workers[worker].state == WORKER_CONNECTED);
    action->tell_task.link = core->workers[worker].link;
    action->tell_task.task = job_task_ref(core, job, slot);
    action->tell_task.type = type;
    action->tell_task.code = code;
    text_add(&text, sentence);
}

void tell_again(struct core *core, const struct job *job, uint32_t slot, bool knows_plan)
{
    enum core_tell tells[3];
    uint32_t count = 0;
    uint32_t worker = job_party(core, job, job_task(core, job, slot)->party)->worker;
    bool has_news = job->released > job->resume || job->halt_kind != HALT_NONE ||
                    job->published != POSITION_NONE;
    CADRE_ASSERT(worker != NONE && core->workers[worker].state == WORKER_CONNECTED);
    CADRE_ASSERT(job_task(core, job, slot)->rank != NONE);
    /* What is still due will be said to all of them. */
    if (job->phase == PHASE_RUN && (job->due & DUE_PLAN) == 0) {
        if (!knows_plan) {
            tells[count++] = CORE_TELL_PLAN;
        }
        if (has_news) {
            tells[count++] = CORE_TELL_RELEASE;
        }
    } else if (job->phase == PHASE_COLLECT && (job->due & DUE_ABORT) == 0) {
        if (!knows_plan) {
            tells[count++] = CORE_TELL_PLAN; /* else it could not report in that generation */
        }
        tells[count++] = CORE_TELL_ABORT;
    } else if (job->phase == PHASE_DONE && (job->due & DUE_DONE) == 0) {
        tells[count++] = CORE_TELL_BYE;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct core_action *action = tell_job(core, job, tells[i]);
        action->tell_job.one = true;
        action->tell_job.link = core->workers[worker].link;
        action->tell_job.slot = slot;
    }
}
