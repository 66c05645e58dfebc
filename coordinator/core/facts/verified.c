/* SPDX-License-Identifier: Apache-2.0
 * The verified position of a job: the newest at which all replicas of its generation had equal
 * states, as members found by comparing (arrivals), or as their reports show (divergence.c). A plan
 * that cuts it off lowers it. The recorded one may be up to a minute older, because members send
 * theirs again after a start of the coordinator. */
#include "coordinator/core/facts/verified.h"

#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

#define RECORDED_EACH_US UINT64_C(60000000)

static bool is_known(const struct verified *verified)
{
    CADRE_ASSERT(verified->digest != 0 || verified->position == 0);
    return verified->digest != 0;
}

void verified_raise(struct core *core, struct job *job, const struct verified *verified)
{
    CADRE_ASSERT(job->roster > 0);
    if (verified->digest == 0 || verified->position < job->resume ||
        verified->position > job->released || verified->position < job->verified.position) {
        return;
    }
    bool rises = !is_known(&job->verified) || verified->position > job->verified.position;
    job->verified = *verified;
    if (rises && core->now_us >= job->verified_next_us) {
        job->verified_next_us = core->now_us + RECORDED_EACH_US;
        job->verified_recorded = verified->position;
        job_due(core, job, DUE_VERIFIED);
    }
    if (job->has_part) {
        job_due(core, job, DUE_PART);
    }
    CADRE_ASSERT(job->verified.position <= job->released);
}

bool verified_is_alone(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->roster > 0);
    return job->roster == 1 && job_task(core, job, core->members[job->first])->replicas <= 1;
}

/* States that differ stay different, so an equal later state shows that the replicas were equal at
 * the part's position; it does not show that the saved copy is right. So the part's own digest must
 * have been compared at its position: it is the newest verified one, or the chief has seen it,
 * since the program may change variables between steps and have them compared again there. */
bool verified_covers(
    const struct core *core, const struct job *job, const struct core_checkpoint *part)
{
    const struct verified *verified = &job->verified;
    CADRE_ASSERT(part->position <= job->released);
    bool alone = verified_is_alone(core, job) && part->position >= job->resume;
    if (part->digest == 0 || alone) { /* earlier parts had others to be compared with */
        return true;
    }
    return is_known(verified) &&
           ((verified->position >= part->position && job->part_compared) ||
               (verified->position == part->position && verified->digest == part->digest));
}

static struct verified of_checkpoint(const struct job *job)
{
    bool compared = job->has_checkpoint && job->checkpoint.digest != 0;
    return compared ? (struct verified){job->checkpoint.position, job->checkpoint.digest}
                    : (struct verified){0};
}

void verified_cut(struct job *job)
{
    struct verified saved = of_checkpoint(job);
    if (job->verified.position > job->resume) {
        job->verified = (struct verified){0};
    }
    if (is_known(&saved) && saved.position <= job->resume &&
        (!is_known(&job->verified) || saved.position > job->verified.position)) {
        job->verified = saved;
    }
    job->verified_recorded = job->verified.position;
    CADRE_ASSERT(job->verified.position <= job->resume);
}

void verified_last(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_DONE);
    if (is_known(&job->verified) && job->verified.position > job->verified_recorded) {
        job->verified_recorded = job->verified.position;
        job_due(core, job, DUE_VERIFIED);
    }
}

void verified_published(struct job *job)
{
    struct verified saved = of_checkpoint(job);
    CADRE_ASSERT(job->has_checkpoint);
    if (is_known(&saved) &&
        (!is_known(&job->verified) || saved.position > job->verified.position)) {
        job->verified = saved;
    }
    if (saved.position > job->verified_recorded) {
        job->verified_recorded = saved.position;
    }
}

/* A recorded position beyond the recorded watermark does not count. */
void verified_restore(struct job *job, const struct core_restore_job *restore)
{
    struct verified saved = of_checkpoint(job);
    uint64_t released = restore->released > restore->resume ? restore->released : restore->resume;
    CADRE_ASSERT(job->verified.digest == 0);
    if (restore->verified.digest != 0 && restore->verified.position <= released) {
        job->verified = restore->verified;
    }
    if (is_known(&saved) && saved.position > job->verified.position && saved.position <= released) {
        job->verified = saved;
    }
    job->verified_recorded = job->verified.position;
}

bool verified_lacks(const struct core *core, const struct job *job, uint64_t position)
{
    uint64_t verified = is_known(&job->verified) ? job->verified.position : 0;
    uint32_t holders = 0;
    bool asked = false;
    CADRE_ASSERT(job->reported == job->present);
    for (uint32_t slot = 0; slot < job->tasks; slot++) {
        const struct task *task = job_task(core, job, slot);
        if (!task_is_usable(task) || task->rank == NONE || !task->reported) {
            continue;
        }
        bool known = task->trusts > 0 && task->trusts - 1 > verified &&
                     task->trusts - 1 <= job->released; /* its arrival has not come yet */
        verified = known ? task->trusts - 1 : verified;
        asked |= task->trusts > 0;
        holders += task_holds_state(job, task) && task->position == position;
    }
    CADRE_ASSERT(holders <= job->roster);
    return asked && position > verified && holders < job->roster;
}
