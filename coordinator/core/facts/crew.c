/* SPDX-License-Identifier: Apache-2.0
 * Crews: jobs whose tasks are of types. The chief alone is the roster: plans, steps, checkpoints,
 * preemption and the end are as of a job of one task. All others attend: they are started, watched
 * and started again in their slots, and told where the others are; they never make a generation
 * end, and none is kept from ending by them.
 *
 *     MEMBERS    full state, whenever one comes or goes, and behind each plan; of the job's own
 *                generation, so not before the chief has one, nor between two. Who is told of n is
 *                told the less often the larger n is
 *     the end    bye to the chief -> workers, evaluator: bye -> all gone -> servers: bye
 */
#include "coordinator/core/facts/crew.h"

#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/deadlines.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"
#include "coordinator/core/state/tell.h"

/* A wait that is shorter is only that the last task of a slot is collected. */
#define NOTICEABLE_US UINT64_C(1000000)

bool crew_fits(const struct core_job_spec *spec)
{
    const struct crew *crew = &spec->crew;
    return !crew_is(crew) ||
           (crew->workers > 0 && spec->tasks == crew_tasks(crew) && spec->tasks_min == spec->tasks);
}

void crew_open(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->state == JOB_QUEUED);
    CADRE_ASSERT(!crew_is(&job->crew) || job->tasks == crew_tasks(&job->crew));
    for (uint32_t slot = 0; slot < job->tasks && crew_is(&job->crew); slot++) {
        struct task *task = job_task(core, job, slot);
        task->role = crew_role(&job->crew, slot);
        CADRE_ASSERT(task_attends(task) == (slot > 0));
    }
}

uint32_t job_members_min(const struct job *job)
{
    CADRE_ASSERT(job->tasks_min > 0 && job->tasks_min <= job->tasks);
    return crew_is(&job->crew) ? 1 : job->tasks_min;
}

uint32_t crew_others(const struct job *job)
{
    CADRE_ASSERT(crew_is(&job->crew));
    CADRE_ASSERT(job->attending[ROLE_CHIEF] == 0);
    return job->attending[ROLE_WORKER] + job->attending[ROLE_EVALUATOR];
}

uint32_t crew_held(const struct core *core, const struct job *job)
{
    const struct task *chief = job_task(core, job, 0);
    bool plain = job->generation.number == 0 && chief->state == TASK_EXITED &&
                 chief->refill != REFILL_AT_ONCE;
    CADRE_ASSERT(crew_is(&job->crew));
    CADRE_ASSERT(job->usable <= 1);
    return job->usable + (plain ? 1 : 0) + crew_others(job) + job->attending[ROLE_SERVER];
}

void crew_changed(struct core *core, struct job *job, uint32_t slot)
{
    const struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(!task_attends(task) || task->rank == NONE);
    if (!task_attends(task)) {
        return;
    }
    job_due(core, job,
        DUE_CREW |
            (task->role == ROLE_SERVER ? (uint32_t)DUE_MEMBERS : (uint32_t)DUE_MEMBERS_CHIEF));
}

void crew_planned(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_RUN);
    CADRE_ASSERT(!crew_is(&job->crew) || job->roster == 1);
    if (crew_is(&job->crew)) {
        job->recalls = false;
        job->members_next_us = 0;
        job_due(core, job, DUE_CREW | DUE_MEMBERS);
    }
}

bool crew_holds_back(struct core *core, struct job *job)
{
    const uint32_t members = DUE_MEMBERS | DUE_MEMBERS_CHIEF;
    CADRE_ASSERT(crew_speaks(job));
    job->due |= job->members_held;
    job->members_held = 0;
    if (core->now_us < job->members_next_us) {
        job->members_held = job->due & members;
        job->due &= ~members;
        deadline_set(core, job, DEADLINE_MEMBERS, job->members_next_us);
        return true;
    }
    job->members_next_us = core->now_us + core->options.members_us * job->tasks;
    deadline_clear(core, job, DEADLINE_MEMBERS);
    CADRE_ASSERT(job->members_held == 0);
    return false;
}

void crew_members_over(struct core *core, struct job *job)
{
    CADRE_ASSERT(crew_is(&job->crew));
    job_due(core, job, job->members_held);
    job->members_held = 0;
    CADRE_ASSERT((job->due & (DUE_MEMBERS | DUE_MEMBERS_CHIEF)) != 0);
}

bool crew_speaks(const struct job *job)
{
    return crew_is(&job->crew) && job->phase != PHASE_JOIN && !job->recalls && !job->stopped;
}

void crew_tell(struct core *core, struct job *job, uint32_t slot)
{
    if (crew_speaks(job) && (job->due & DUE_MEMBERS) == 0) {
        tell_task(core, job, slot, CORE_TELL_MEMBERS);
    }
}

void crew_said_hello(struct core *core, struct job *job, uint32_t slot, bool known)
{
    const struct task *task = job_task(core, job, slot);
    bool leaves =
        task->role == ROLE_SERVER ? job->leaving == LEAVING_SERVERS : job->leaving != LEAVING_NOT;
    CADRE_ASSERT(task_attends(task));
    CADRE_ASSERT(task->joined);
    if (!known) {
        crew_changed(core, job, slot);
    }
    job_due(core, job, DUE_CREW);
    if (job->phase == PHASE_DONE && leaves && (job->due & (DUE_BYE_CREW | DUE_BYE_SERVERS)) == 0) {
        tell_task(core, job, slot, CORE_TELL_BYE);
    } else {
        crew_tell(core, job, slot);
    }
}

void crew_placed(struct core *core, struct job *job, uint32_t slot, uint32_t worker)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->state == TASK_STARTING);
    if (!crew_is(&job->crew)) {
        return;
    }
    bool home = task->home.n != 0 && task->home.n == core->workers[worker].id.n;
    task->lives++;
    task->lives_in = job->generation.number + (job->phase == PHASE_JOIN ? 1 : 0);
    task->predecessor = home ? task->kept : 0;
    task->backed.number = 0; /* the life before says nothing any more */
    job_due(core, job, DUE_CREW);
    CADRE_ASSERT(task->lives > 0);
}

void crew_vacates(struct core *core, struct job *job, uint32_t slot)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->collected);
    CADRE_ASSERT(task->party != NONE);
    if (task->role == ROLE_SERVER) {
        const struct party *party = job_party(core, job, task->party);
        task->home = party->worker == NONE ? (struct worker_id){0} : party->worker_id;
        task->kept = task->incarnation;
    }
}

void crew_begins_anew(struct core *core, struct job *job)
{
    CADRE_ASSERT(job->phase == PHASE_JOIN);
    job->recalls = false;
    job->leaving = LEAVING_NOT;
    for (uint32_t slot = 0; slot < job->tasks && crew_is(&job->crew); slot++) {
        struct task *task = job_task(core, job, slot);
        /* What was started for the next generation already, in vain, counts for it. */
        task->lives = task->lives_in == job->generation.number + 1 ? task->lives : 0;
        task->backed = (struct task_backed){0}; /* nothing of this generation is taken over */
    }
}

/* The copy may be taken as long as this is recorded, and no longer: a server that goes on alone,
 * and one in its place that takes the copy, exclude each other, because whoever was replaced or is
 * lost is not heard. */
void crew_backed(
    struct core *core, struct job *job, uint32_t slot, const struct task_backed *backed)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->party != NONE);
    if (task->role != ROLE_SERVER || !job->crew.backups || backed->number < task->backed.number) {
        return;
    }
    uint32_t first = crew_first(&job->crew, ROLE_SERVER);
    const struct task *behind = job_task(core, job, first + (slot - first + 1) % job->crew.servers);
    if (backed->by != 0 && (behind->incarnation != backed->by || !task_is_usable(behind))) {
        return; /* it hears that this one is not there, and says something else */
    }
    if (backed->number > task->backed.number) {
        task->backed = *backed;
        struct core_record *record = record_add(core, job, CORE_RECORD_BACKED, true);
        record->backed.slot = slot;
        record->backed.incarnation = task->incarnation;
        record->backed.backed = *backed;
    }
    crew_tell(core, job, slot);
}

bool crew_just_waits(const struct core *core, const struct job *job)
{
    CADRE_ASSERT(core->now_us >= job->waits_us);
    return crew_is(&job->crew) && core->now_us - job->waits_us < NOTICEABLE_US;
}

/* What was started for an older generation is no life of this one, nor of the next. */
void crew_relives(const struct job *job, struct task *task, const struct core_restore_task *restore)
{
    task->lives = restore->lives_in >= job->generation.number ? restore->lives : 0;
    task->lives_in = restore->lives_in;
    task->backed =
        restore->lives_in >= job->generation.number ? restore->backed : (struct task_backed){0};
    CADRE_ASSERT(task->lives == 0 || task->lives_in >= job->generation.number);
}
