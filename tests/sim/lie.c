/* SPDX-License-Identifier: Apache-2.0
 * A disk that lies about fsync (protocol, rule 30): from some moment on nothing of the jobs of then
 * is durable, although each commit says so, and the coordinator's host crashes later. Their ledgers
 * are then older than what the tasks have seen. A client cancels the jobs after a while, because
 * they wait for that. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"

typedef unsigned long long ull;

#define AGAIN_US 20000000 /* its answer may be lost */

static bool has_begun(const struct job *job)
{
    return job->id.n != 0 && job->durable->known && !job->durable->ended;
}

void lie_open(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    sim->lied = false;
    if (s->lie_us != 0) {
        schedule(sim, s->lie_us, ON_LIE, LIE_BEGINS, 0, 0);
        schedule(sim, s->lie_shows_us, ON_LIE, LIE_SHOWS, 0, 0);
    }
}

static void lie_begins(struct sim *sim)
{
    trace(sim, "the disk of the ledger lies from now on");
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        if (has_begun(&sim->jobs[i])) {
            store_freeze(&sim->jobs[i]);
        }
    }
}

void lie_happens(struct sim *sim, enum lie what, uint32_t job)
{
    switch (what) {
    case LIE_BEGINS:
        lie_begins(sim);
        break;
    case LIE_SHOWS:
        coordinator_crash(sim, true);
        break;
    case LIE_CANCELS:
        if (sim->jobs[job].id.n != 0 && !sim->jobs[job].stored->ended) {
            schedule(sim, 1, ON_CANCEL, job, 0, 0);
            schedule(sim, AGAIN_US, ON_LIE, LIE_CANCELS, job, 0);
        }
        break;
    }
}

bool lie_excuses(const struct sim *sim, const char *invariant)
{
    static const char *const meant[] = {"KEEP", "PROGRESS", "COORDINATOR", "AGENT", "ASSERT",
        "ONE_LINE", "TERM_UP", "TERM_DOWN", "TRIM", "STATE"};
    bool excused = sim->lied;
    for (size_t i = 0; i < CADRE_COUNT_OF(meant) && excused; i++) {
        excused = strcmp(invariant, meant[i]) != 0;
    }
    return excused;
}

/* Of a task that the coordinator has not given up. */
static bool is_known(const struct sim *sim, struct task_ref ref)
{
    struct core_task_view task;
    core_job_task(sim->coordinator.core, ref.job, ref.slot, &task);
    return task.incarnation == ref.incarnation && task.link.n != 0 &&
           (task.state == TASK_STARTING || task.state == TASK_RUNNING);
}

void lie_receives(struct sim *sim, const struct agent_up *up)
{
    struct core_job_view view;
    bool hello = up->type == AGENT_UP_RELAY && up->relay_up.up.type == TASK_UP_HELLO;
    struct task_ref ref = hello ? up->relay_up.task : (struct task_ref){0};
    struct job *job = hello ? job_by_id(sim, ref.job) : NULL;
    if (job != NULL && core_job(sim->coordinator.core, ref.job, &view) && is_known(sim, ref) &&
        up->relay_up.up.hello.generation.number > view.generation.number) {
        sim->processes[job->processes[ref.slot]].ahead = sim->coordinator.incarnation;
        if (mutant_acts(sim, MUTANT_AHEAD_SUPERSEDED)) {
            check_keeps(sim, &(struct core_action){.type = CORE_ACTION_NOTIFY_TASK,
                                 .notify_task = {.task = ref, .type = TASK_DOWN_SUPERSEDED}});
        }
    }
}

/* A member of a generation that the ledger does not have, whose hello this start of the coordinator
 * has received; and the job was not ended before, nor by a client. */
static bool is_ahead(const struct sim *sim, const struct job *job, uint32_t slot)
{
    const struct stored *stored = job->stored;
    uint32_t index = job->processes[slot];
    bool ended =
        stored->ending || stored->ended || job->ending_decided == sim->coordinator.incarnation;
    if (index == SIM_NONE || job->cancel_asked || ended) {
        return false;
    }
    const struct process *process = &sim->processes[index];
    bool runs = process->program != PROGRAM_DEAD && process->program != PROGRAM_UNBORN;
    return runs && process->ahead == sim->coordinator.incarnation &&
           process->core.generation.number > stored->generation.number;
}

static void check_task(struct sim *sim, struct task_ref ref, const char *what)
{
    const struct job *job = job_by_id(sim, ref.job);
    uint32_t index = job != NULL ? job->processes[ref.slot] : SIM_NONE;
    bool its = index != SIM_NONE && sim->processes[index].ref.incarnation == ref.incarnation;
    if (its && is_ahead(sim, job, ref.slot)) {
        broken(sim, "KEEP", "task %llu/%u is ahead of its ledger, and is %s", (ull)ref.job.n,
            ref.slot, what);
    }
}

static void check_all(struct sim *sim, struct job_id id, const char *what)
{
    const struct job *job = job_by_id(sim, id);
    for (uint32_t slot = 0; job != NULL && slot < job->plan->tasks; slot++) {
        uint32_t index = job->processes[slot];
        if (index != SIM_NONE) {
            check_task(sim, sim->processes[index].ref, what);
        }
    }
}

static void check_decided(struct sim *sim, const struct core_record *record)
{
    struct job *job = job_by_id(sim, record->job);
    if (record->type == CORE_RECORD_PLAN) {
        check_all(sim, record->job, "in no such generation as is planned");
    } else if (record->type == CORE_RECORD_ENDING && job != NULL) {
        check_all(sim, record->job, "ended with its job");
        job->ending_decided = sim->coordinator.incarnation;
    }
}

void check_keeps(struct sim *sim, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_STOP_TASK:
        check_task(sim, action->stop_task.task, "stopped");
        break;
    case CORE_ACTION_NOTIFY_TASK:
        if (action->notify_task.type != TASK_DOWN_WARM) {
            check_task(sim, action->notify_task.task, "reset, superseded or refused");
        }
        break;
    case CORE_ACTION_STOP_JOB:
        check_all(sim, action->job, "stopped with its job");
        break;
    case CORE_ACTION_RECORD:
        check_decided(sim, &action->record);
        break;
    default:
        break;
    }
}
