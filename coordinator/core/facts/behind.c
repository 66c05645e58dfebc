/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/core/facts/behind.h"

#include "coordinator/core/facts/jobs.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/text_format.h"

bool behind_is(const struct job *job)
{
    return job->behind && job->outcome == 0;
}

bool behind_of_generation(const struct job *job, struct generation seen)
{
    return seen.number > job->generation.number ||
           (seen.number == job->generation.number && seen.number > 0 &&
               seen.nonce != job->generation.nonce);
}

/* `seen` begins with what the task has. */
static void job_waits(struct core *core, struct job *job, struct text *seen, uint64_t known)
{
    CADRE_ASSERT(!job->behind);
    CADRE_ASSERT(job->outcome == 0);
    text_add(seen, ", and the newest in the ledger is ");
    text_add_u64(seen, known);
    text_add(seen, ": the ledger is older than the job, which waits; its tasks keep their state. "
                   "Start the coordinator with the newer ledger, or cancel the job and submit it "
                   "again with --restore ");
    text_add_u64(seen, job->id.n);
    job->behind = true;
    core->behind = true;
    for (uint32_t i = 0; i < DEADLINES; i++) {
        deadline_clear(core, job, (enum deadline)i);
    }
    core->queue_head_known = false; /* it is not placed */
    core->placement_due = true;
    underfilled_note(core, job);
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(behind_is(job));
}

void behind_found(struct core *core, struct job *job, uint32_t slot, struct generation seen)
{
    CADRE_ASSERT(behind_of_generation(job, seen));
    if (job->behind || job->outcome != 0) {
        return;
    }
    struct text text = text_begin(job->note, sizeof(job->note));
    task_name(core, job, slot, &text);
    text_add(&text, " is in generation ");
    text_add_u64(&text, seen.number);
    job_waits(core, job, &text, job->generation.number);
}

bool behind_keeps(struct core *core, uint32_t worker, struct task_ref ref)
{
    struct job *job = job_find(core, ref.job);
    if (job == NULL) {
        return ref.job.n > core->job_last;
    }
    if (ref.incarnation > job->incarnation_max && job->outcome == 0 && !job->behind) {
        struct text text = text_begin(job->note, sizeof(job->note));
        text_add(&text, "worker ");
        text_add(&text, core->workers[worker].name);
        text_add(&text, " has start ");
        text_add_u64(&text, ref.incarnation);
        text_add(&text, " of task ");
        text_add_u64(&text, ref.slot);
        job_waits(core, job, &text, job->incarnation_max);
    }
    return behind_is(job);
}

struct job_id behind_newest(const struct agent_hello *hello)
{
    struct job_id newest = {0};
    for (size_t i = 0; i < hello->task_count; i++) {
        newest.n = hello->tasks[i].job.n > newest.n ? hello->tasks[i].job.n : newest.n;
    }
    for (size_t i = 0; i < hello->kept_count; i++) {
        newest.n = hello->kept[i].n > newest.n ? hello->kept[i].n : newest.n;
    }
    return newest;
}

void behind_note_newest(struct core *core, const struct agent_hello *hello)
{
    struct job_id newest = behind_newest(hello);
    core->job_seen = newest.n > core->job_seen ? newest.n : core->job_seen;
}

void behind_text(const struct core *core, struct job_id job, struct text *text)
{
    CADRE_ASSERT(job.n > core->job_last);
    text_add(text, "a worker keeps state of job ");
    text_add_u64(text, job.n);
    text_add(text, ", and the newest job in the ledger is ");
    text_add_u64(text, core->job_last);
    text_add(text, ": the ledger is older than the worker. Start the coordinator with the newer "
                   "ledger");
}
