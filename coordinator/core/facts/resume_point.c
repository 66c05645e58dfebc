/* SPDX-License-Identifier: Apache-2.0
 * Positions of the frozen members that reported: where the next generation begins. */
#include "coordinator/core/facts/abort.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

static void resume_point_see(struct resume_point *resume_point, const struct core *core,
    const struct job *job, uint32_t slot, const struct task *task)
{
    bool drains = task_drains(core, job, task);
    CADRE_ASSERT(task->reported && task->rank != NONE);
    resume_point->draining += drains;
    /* Rules 8 and 9: the highest clean position, and the lowest rank that has it. */
    if (!task_holds_state(job, task) ||
        (resume_point->source != NONE && task->position < resume_point->position)) {
        return;
    }
    bool first = resume_point->source == NONE || task->position > resume_point->position;
    if (first) {
        *resume_point = (struct resume_point){.position = task->position,
            .source = slot,
            .aligned = true,
            .stream = task->stream,
            .draining = resume_point->draining,
            .staying = NONE};
    }
    resume_point->aligned &= task->begun && task->stream == resume_point->stream && !task->nested;
    if (!drains && (resume_point->staying == NONE ||
                       task->rank < job_task(core, job, resume_point->staying)->rank)) {
        resume_point->staying = slot;
    }
    if (task->rank < job_task(core, job, resume_point->source)->rank) {
        resume_point->source = slot;
    }
}

struct resume_point resume_point_find(const struct core *core, const struct job *job)
{
    struct resume_point resume_point = {.source = NONE, .staying = NONE};
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        /* Rule 6: only reports of frozen, usable members of the newest plan choose. */
        if (task_is_usable(task) && task->rank != NONE && task->reported) {
            resume_point_see(&resume_point, core, job, slot, task);
        }
    }
    resume_point.aligned &= resume_point.source != NONE && resume_point.stream <= LIMIT_STREAMS;
    CADRE_ASSERT(resume_point.staying == NONE || resume_point.source != NONE);
    CADRE_ASSERT(resume_point.draining <= job->reported);
    return resume_point;
}
