/* SPDX-License-Identifier: Apache-2.0
 * Ps tasks that end before the chief: their slots are filled again, and no generation ends. */
#include "coordinator/core/events/failure.h"

#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

void ps_failure_exited(struct core *core, struct job *job, uint32_t slot,
    const struct task_exit *exit, const struct death *death)
{
    struct task *task = job_task(core, job, slot);
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(task_is_ps_task(task));
    CADRE_ASSERT(task->state == TASK_EXITED);
    CADRE_ASSERT(death->code != CADRE_OK);
    ps_job_member_changed(core, job, slot);
    if (job->phase == PHASE_DONE) {
        if (job->preempt == PREEMPT_NOT && (exit->code != 0 || exit->signal != 0)) {
            text_add(&text, death->text);
            text_finished(job, &text);
            job_fail(core, job, death->code, death->exit_code, sentence);
        }
        return;
    }
    bool excused = task_drains(core, job, task) || (task->adopted && !task->joined) ||
                   (preempt_stops(job) && exit->signal != 0);
    if (task->joined) {
        job->restarts_without_step = 0; /* it got as far as a ps task can */
    }
    if (!excused && !restarts_count(core, job, death->code, death->exit_code, death->text)) {
        return;
    }
    ps_failure_lost(core, job, slot, death->text);
}

void ps_failure_lost(struct core *core, struct job *job, uint32_t slot, const char *sentence)
{
    CADRE_ASSERT(task_is_ps_task(job_task(core, job, slot)));
    CADRE_ASSERT(sentence[0] != '\0');
    ps_job_member_changed(core, job, slot);
    if (job->phase == PHASE_DONE || job->preempt > PREEMPT_STOPS) {
        return;
    }
    struct text note = text_begin(job->note, sizeof(job->note));
    text_add(&note, sentence);
    text_add(&note, "; it is started again");
    if (!generation_is_broken(job)) { /* else there is a reason already */
        struct text reason = text_begin(job->reason, sizeof(job->reason));
        text_add(&reason, sentence);
    }
}
