/* SPDX-License-Identifier: Apache-2.0
 * The step barrier: a release is the lowest arrival over the whole roster (protocol, rule 2). The
 * task groups at the lowest value are counted, so an arrival costs O(1), and a round of arrivals
 * one pass over all task groups. */
#include "coordinator/core/facts/barrier.h"

#include "coordinator/core/facts/outcome.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/text_format.h"

/* Reads all task groups: the lowest value and how many have it. */
static struct low_mark mark_count(const struct core *core, const struct job *job, bool applied)
{
    struct low_mark mark = {.least = UINT64_MAX};
    CADRE_ASSERT(job->task_groups > 0);
    for (uint32_t i = 0; i < job->task_groups; i++) {
        const struct task_group *task_group = job_task_group(core, job, i);
        uint64_t value = applied ? task_group->applied : task_group->up_to;
        if (task_group->members == 0) {
            continue;
        }
        if (value < mark.least) {
            mark = (struct low_mark){.least = value};
        }
        mark.holders += value == mark.least;
    }
    CADRE_ASSERT(mark.holders > 0);
    CADRE_ASSERT(mark.holders <= job->task_groups);
    return mark;
}

void barrier_mark_raise(const struct core *core, const struct job *job, struct low_mark *mark,
    bool applied, uint64_t old)
{
    CADRE_ASSERT(mark->holders > 0);
    CADRE_ASSERT(mark == (applied ? &job->applied : &job->arrived));
    CADRE_ASSERT(old >= mark->least);
    if (old == mark->least && --mark->holders == 0) {
        uint64_t before = mark->least;
        *mark = mark_count(core, job, applied);
        CADRE_ASSERT(mark->least > before);
    }
}

static void marks_count(const struct core *core, struct job *job)
{
    job->arrived = mark_count(core, job, false);
    job->applied = mark_count(core, job, true);
    CADRE_ASSERT(job->applied.least <= job->arrived.least);
}

void barrier_open(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->roster > 0);
    CADRE_ASSERT(job->present > 0);
    job->unarrived = 0;
    for (uint32_t i = 0; i < job->task_groups; i++) {
        struct task_group *task_group = job_task_group(core, job, i);
        task_group->up_to = job->resume;
        task_group->applied = job->resume;
        task_group->arrived = false;
        job->unarrived += task_group->members > 0;
    }
    marks_count(core, job);
    job->released = job->resume;
    job->wanted = 0;
    job->wanted_slot = NONE;
    job->step_range_count = 0;
    CADRE_ASSERT(job->arrived.least == job->resume);
    CADRE_ASSERT(job->applied.least == job->resume);
    CADRE_ASSERT(job->unarrived > 0 && job->unarrived <= job->task_groups);
}

/* Rule 3: nothing is released beyond a halt, and a halt is set when the watermark is known; so a
 * higher value is wrong. */
bool barrier_may_rise(const struct job *job, uint64_t released)
{
    return released <= job->halt_at && released < LIMIT_POSITION;
}

/* Rule 5: the raised watermark is sent to the whole roster. All had arrived there, because it was
 * released. */
void barrier_raise(struct core *core, struct job *job, uint64_t released)
{
    CADRE_ASSERT(released <= job->released || barrier_may_rise(job, released));
    if (released <= job->released) {
        return;
    }
    for (uint32_t i = 0; i < job->task_groups; i++) {
        struct task_group *task_group = job_task_group(core, job, i);
        task_group->up_to = task_group->up_to > released ? task_group->up_to : released;
    }
    marks_count(core, job);
    job->released = released;
    job->raised = true;
    job_due(core, job, DUE_RELEASE_RESEND);
    CADRE_ASSERT(job->arrived.least >= job->released);
}

/* The finished member took part in all steps before its position, so a member that waits for a step
 * at or beyond it is at that position, and its program goes on where the other's ended. No release
 * can help, whatever the order of the two messages. */
bool barrier_check_finished(struct core *core, struct job *job)
{
    char sentence[LIMIT_TEXT_BYTES];
    struct text text = text_begin(sentence, sizeof(sentence));
    CADRE_ASSERT(job->finished == 0 || job->finished_slot < job->tasks);
    if (job->finished == 0 || job->wanted <= job->finished_position) {
        return false;
    }
    task_name(core, job, job->wanted_slot, &text);
    text_add(&text, " waits for step ");
    text_add_u64(&text, job->wanted);
    text_add(&text, ", but ");
    task_name(core, job, job->finished_slot, &text);
    text_add(&text, " called cadre_finish after ");
    text_add_u64(&text, job->finished_position);
    text_add(&text, job->finished_position == 1 ? " step" : " steps");
    text_add(&text, ": all tasks must take the same steps");
    job_fail(core, job, CADRE_FAILED_PRECONDITION, 1, sentence);
    return true;
}

void barrier_wants(struct core *core, struct job *job, uint32_t slot, uint64_t wanted)
{
    CADRE_ASSERT(slot < job->tasks);
    if (wanted > job->wanted) {
        job->wanted = wanted;
        job->wanted_slot = slot;
        (void)barrier_check_finished(core, job);
    }
    CADRE_ASSERT(job->wanted == 0 || job->wanted_slot < job->tasks);
}
