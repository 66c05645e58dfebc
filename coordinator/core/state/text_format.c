/* SPDX-License-Identifier: Apache-2.0
 * Parts of the sentences in texts of jobs and errors. */
#include "coordinator/core/state/text_format.h"

#include "coordinator/core/state/find.h"

void task_title(const struct job *job, uint32_t slot, struct text *text)
{
    CADRE_ASSERT(slot < job->tasks);
    if (!ps_job_is_set(&job->ps_job)) {
        text_add(text, "task ");
        text_add_u64(text, slot);
        return;
    }
    enum role role = ps_job_role(&job->ps_job, slot);
    text_add(text, role_name(role));
    if (role != ROLE_CHIEF) {
        text_add(text, " ");
        text_add_u64(text, ps_job_role_index(&job->ps_job, slot));
    }
    text_add(text, " (slot ");
    text_add_u64(text, slot);
    text_add(text, ")");
}

void task_name(const struct core *core, const struct job *job, uint32_t slot, struct text *text)
{
    const struct task *task = job_task(core, job, slot);
    task_title(job, slot, text);
    if (task->task_group != NONE) {
        uint32_t worker = job_task_group(core, job, task->task_group)->worker;
        text_add(text, " on worker ");
        text_add(text, worker == NONE ? "(lost)" : core->workers[worker].name);
    }
}

void text_time(struct text *text, uint64_t us)
{
    bool whole = us % 1000000 == 0 || us >= 60000000;
    text_add_u64(text, whole ? us / 1000000 : us / 1000);
    text_add(text, whole ? " s" : " ms");
}

void text_span(struct text *text, uint64_t us)
{
    const uint64_t hour_us = UINT64_C(3600000000);
    const uint64_t minute_us = UINT64_C(60000000);
    if (us >= minute_us && us % minute_us == 0) {
        text_add_u64(text, us % hour_us == 0 ? us / hour_us : us / minute_us);
        text_add(text, us % hour_us == 0 ? " h" : " min");
    } else {
        text_time(text, us);
    }
}

void text_count(struct text *text, uint64_t count, const char *one, const char *many)
{
    CADRE_ASSERT(one[0] != '\0' && many[0] != '\0');
    text_add_u64(text, count);
    text_add(text, " ");
    text_add(text, count == 1 ? one : many);
}

void text_finished(const struct job *job, struct text *text)
{
    CADRE_ASSERT(job->phase == PHASE_DONE);
    text_add(text, "; all ");
    text_count(text, job->finished_position, "step was", "steps were");
    text_add(text, " done by then");
    if (job->has_checkpoint) {
        text_add(text, ", and --restore ");
        text_add_u64(text, job->id.n);
        text_add(text, " goes on from its checkpoint of step ");
        text_add_u64(text, job->checkpoint.position);
    }
}
