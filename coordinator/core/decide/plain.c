/* SPDX-License-Identifier: Apache-2.0
 * Plain jobs: their programs keep their state themselves, save it at some steps, and are in one
 * generation. Tasks join or leave at a halt as in other jobs (protocol, rule 20), but no member
 * goes on behind it: all are started again, from the checkpoint of that step, which each of them
 * awaited before it began the next one. That is no failure. control.c and regroup.c call this. */
#include "coordinator/core/decide/plain.h"

#include "coordinator/core/state/states.h"

/* Joiners that come within so short a time enter together. */
#define JOINERS_TOGETHER_US UINT64_C(1000000)

bool plain_waits_for_joiners(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(job->joiners > 0);
    CADRE_ASSERT(job->joiners <= job->usable - job->present);
    /* One that is starting would not find its way into the next generation in time. */
    bool comes = job->joiners < job->usable - job->present;
    return job->plain && (comes || core->now_us - job->joiner_us < JOINERS_TOGETHER_US);
}

bool plain_is_gathered(const struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    CADRE_ASSERT(job->usable <= job->alive);
    return !job->plain || (job->alive == job->usable && job->gone == 0);
}
