/* SPDX-License-Identifier: Apache-2.0
 * Attendants of a crew that are told to end together, and that are waited for. */
#include "coordinator/core/facts/attendants.h"

#include "coordinator/core/facts/crew.h"
#include "coordinator/core/facts/lease.h"
#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/words.h"

void attendants_dismiss(struct core *core, struct job *job, bool servers, bool strangers)
{
    CADRE_ASSERT(crew_is(&job->crew));
    CADRE_ASSERT(job->phase == PHASE_DONE);
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        bool stranger = !task->joined && !task->adopted;
        if (task_is_usable(task) && (task->role == ROLE_SERVER) == servers &&
            (stranger || !strangers)) {
            task_dismiss(core, job, slot, strangers ? DISMISSED_SUPERSEDED : DISMISSED_SILENT);
        }
    }
}

void crew_dismiss(struct core *core, struct job *job)
{
    CADRE_ASSERT(crew_is(&job->crew));
    CADRE_ASSERT(job->outcome == 0);
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        if (task_is_usable(job_task(core, job, slot))) {
            task_dismiss(core, job, slot, DISMISSED_SUPERSEDED);
        }
    }
    CADRE_ASSERT(job->attending[ROLE_SERVER] + crew_others(job) == 0);
}

/* Who is silent with its worker, and not lost, is not to be told as gone. */
static bool recalls_silent(const struct core *core, const struct job *job)
{
    bool silent = false;
    CADRE_ASSERT(job->recalls);
    CADRE_ASSERT(job->recalled <= job->tasks);
    for (uint32_t slot = job->recalled; slot < job->tasks && !silent; slot++) {
        const struct task *task = job_task(core, job, slot);
        silent = task_is_usable(task) && task->adopted && !task->joined &&
                 !lease_hears(core, job_party(core, job, task->party)->worker);
    }
    return silent;
}

void crew_over(struct core *core, struct job *job)
{
    CADRE_ASSERT(crew_is(&job->crew));
    CADRE_ASSERT(!deadline_armed(job, DEADLINE_CREW));
    if (job->recalls && recalls_silent(core, job)) {
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.lease_us);
        return;
    }
    if (job->recalls) {
        job->recalls = false;
        job_due(core, job, DUE_MEMBERS);
    }
    if (job->phase == PHASE_DONE) {
        attendants_dismiss(core, job, job->leaving == LEAVING_SERVERS, false);
    }
    job_due(core, job, DUE_CREW);
}

void crew_wait_over(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    uint32_t slot = 0;
    CADRE_ASSERT(crew_is(&job->crew));
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

void crew_restored(struct core *core, struct job *job)
{
    bool goes_on =
        (job->phase == PHASE_RUN || job->phase == PHASE_DONE) && !generation_is_broken(job);
    if (!crew_is(&job->crew) || !goes_on || job->stopped) {
        return;
    }
    /* Those of an older generation were told to end, as far as they could be. */
    for (uint32_t slot = 1; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (task_is_usable(task) && task->lives_in != job->generation.number) {
            task_dismiss(core, job, slot, DISMISSED_RESET);
        }
    }
    job->recalls = true;
    job->recalled = 0;
    if (job->phase == PHASE_RUN) {
        deadline_set(core, job, DEADLINE_CREW, core->now_us + core->options.lease_us);
    }
    job_due(core, job, DUE_CREW);
    CADRE_ASSERT(job->generation.number > 0);
}
