/* SPDX-License-Identifier: Apache-2.0
 * Ps tasks that are ended together, and waits for ps tasks. */
#include "coordinator/core/facts/ps_job.h"

#include "coordinator/core/facts/workers.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/text_format.h"

void ps_tasks_dismiss(struct core *core, struct job *job, bool servers, bool unregistered)
{
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->phase == PHASE_DONE);
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool unregistered_task = !task->joined && !task->adopted;
        if (task_is_usable(task) && (task->role == ROLE_SERVER) == servers &&
            (unregistered_task || !unregistered)) {
            task_dismiss(core, job, slot, unregistered ? DISMISSED_SUPERSEDED : DISMISSED_SILENT);
        }
    }
}

void ps_tasks_dismiss_all(struct core *core, struct job *job)
{
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->outcome == 0);
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    CADRE_ASSERT(job->ps_task_counts[ROLE_SERVER] + ps_job_nonserver_count(job) == 0);
}

/* Whether a ps task without a hello is silent with its worker, so that MEMBERS has to wait. */
static bool recalls_silent(const struct core *core, const struct job *job)
{
    bool silent = false;
    CADRE_ASSERT(job->recalls);
    CADRE_ASSERT(job->recalled <= job->tasks);
    for (uint32_t slot = job->recalled; slot < job->tasks && !silent; slot++) {
        const struct task *task = job_task(core, job, slot);
        silent = task_is_usable(task) && task->adopted && !task->joined &&
                 !lease_is_alive(core, job_task_group(core, job, task->task_group)->worker);
    }
    return silent;
}

void ps_tasks_timeout(struct core *core, struct job *job)
{
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_PS_JOB));
    if (job->recalls && recalls_silent(core, job)) {
        deadline_set(core, job, DEADLINE_PS_JOB, core->now_us + core->options.lease_us);
        return;
    }
    if (job->recalls) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
    }
    if (job->phase == PHASE_DONE) {
        ps_tasks_dismiss(core, job, job->ps_shutdown == PS_SHUTDOWN_SERVERS, false);
    }
    job_due(core, job, DUE_PS_JOB);
}

void ps_tasks_wait_timeout(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    CADRE_ASSERT(ps_job_is_set(&job->ps_job));
    CADRE_ASSERT(job->outcome == 0);
    while (slot + 1 < job->tasks && task_is_usable(job_task(core, job, slot))) {
        slot++;
    }
    text_add(&text, "no place for ");
    task_title(job, slot, &text);
    text_add(&text, " was found within ");
    text_time(&text, job->wait_us);
    if (job->reason[0] != '\0') {
        text_add(&text, ": ");
        text_add(&text, job->reason);
    }
    job_fail(core, job, CADRE_UNAVAILABLE, 1, sentence);
}

void ps_tasks_restored(struct core *core, struct job *job)
{
    bool goes_on =
        (job->phase == PHASE_RUN || job->phase == PHASE_DONE) && !generation_is_broken(job);
    if (!ps_job_is_set(&job->ps_job) || !goes_on || job->stopped) {
        return;
    }
    /* Tasks of an older generation were dismissed then, if they were connected. */
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->attempts_generation != job->generation.number) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
    job->recalls = true;
    job->recalled = 0;
    if (job->phase == PHASE_RUN) {
        deadline_set(core, job, DEADLINE_PS_JOB, core->now_us + core->options.lease_us);
    }
    job_due(core, job, DUE_PS_JOB);
    CADRE_ASSERT(job->generation.number > 0);
}
