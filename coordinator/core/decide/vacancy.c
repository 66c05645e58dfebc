/* SPDX-License-Identifier: Apache-2.0
 * Empty slots of jobs that were placed before: of tasks that were lost, and of those for which
 * there was no room at first. What a job needs to go on comes before the queue; what only makes it
 * larger comes after it. */
#include "coordinator/core/decide/vacancy.h"

#include "coordinator/core/decide/spread.h"
#include "coordinator/core/facts/wanting.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/offers.h"

static void fresh_add(struct core *core, struct job *job, uint32_t slot)
{
    CADRE_ASSERT(!job_task(core, job, slot)->unplaced);
    CADRE_ASSERT(job_task(core, job, slot)->state == TASK_STARTING);
    job_task(core, job, slot)->unplaced = true;
    job_task(core, job, slot)->next_fresh = NONE;
    if (job->fresh == NONE) {
        job->fresh = slot;
    } else {
        job_task(core, job, job->fresh_last)->next_fresh = slot;
    }
    job->fresh_last = slot;
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(job->fresh != NONE);
}

void vacancy_run(struct core *core, bool grow)
{
    uint32_t index = core->wanting.first;
    CADRE_ASSERT(core->slots_free[0] <= core->slots_total[0]);
    while (index != LIST_NONE && core->slots_free[0] > 0) {
        struct job *job = &core->jobs[index];
        uint32_t next = core->wanting.nodes[index].next;
        uint32_t count = wanting_count(job);
        uint32_t needed = wanting_needed(core, job);
        count = grow || count < needed ? count : needed;
        uint32_t room = offers_free(core, job);
        count = count < room ? count : room;
        if (count > 0) {
            deadline_clear(core, job, DEADLINE_FORM); /* it is for those that run; not all do now */
            count -= crew_go_home(core, job, count, fresh_add);
            placement_spread(core, job, count, fresh_add);
            wanting_note(core, job);
            job_due(core, job, DUE_REGROUP);
        }
        index = next;
    }
}
