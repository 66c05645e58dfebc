/* SPDX-License-Identifier: Apache-2.0
 * The invariants of the whole, from the point of view of somebody who sees everything. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

typedef unsigned long long ull;

void check_cores(struct sim *sim, uint32_t agent, bool whole)
{
    if (agent == NOBODY) {
        const char *wrong = core_invariant(sim->coordinator.core, whole);
        if (wrong != NULL) {
            broken(sim, "COORDINATOR", "not true that %s", wrong);
        }
        return;
    }
    const char *wrong = agent_core_invariant(sim->agents[agent].core);
    if (wrong != NULL) {
        broken(sim, "AGENT", "w%u: not true that %s", agent, wrong);
    }
}

/* Persist, then speak: what is about to be said is durable. */
void check_records(struct sim *sim, const struct core_action *action)
{
    const struct job *job = NULL;
    bool durable = true;
    const char *what = "";
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        job = action->answer.code == CADRE_OK ? job_by_id(sim, action->answer.job) : NULL;
        durable = job == NULL || job->stored.known;
        what = "an answer";
        break;
    case CORE_ACTION_START_JOB:
        job = job_by_id(sim, action->job);
        durable = job->stored.started && job->stored.incarnation_max >= job->plan->tasks;
        what = "a start";
        break;
    case CORE_ACTION_JOB_ENDED:
        job = job_by_id(sim, action->job);
        durable = job->stored.ended;
        what = "an end";
        break;
    case CORE_ACTION_TELL_JOB:
        job = job_by_id(sim, action->tell_job.job);
        if (action->tell_job.tell == CORE_TELL_PLAN) {
            durable = generation_equal(job->stored.generation, action->tell_job.generation);
            what = "a plan";
        } else if (action->tell_job.tell == CORE_TELL_BYE) {
            durable = job->stored.done;
            what = "a bye";
        }
        break;
    default:
        break;
    }
    if (!durable) {
        broken(sim, "PERSIST", "%s of job %llu is spoken before its record", what, (ull)job->id.n);
    }
}

/* Each step that is told as applied was fed once by each of the tasks that are spoken for. */
void check_fed(struct sim *sim, const struct agent_arrived *arrived)
{
    if (arrived->digest[0] < arrived->tasks * arrived->applied) {
        broken(sim, "FED", "job %llu: %u tasks applied %llu steps and fed %llu",
            (ull)arrived->job.n, arrived->tasks, (ull)arrived->applied, (ull)arrived->digest[0]);
    }
}

void check_plan(struct sim *sim, const struct job *job, const struct task_plan *plan)
{
    if (job->mesh != NOBODY) {
        struct generation last = sim->meshes[job->mesh].generation;
        bool same = generation_equal(last, plan->generation);
        if (!same && plan->generation.number <= last.number) {
            broken(sim, "GEN_UP", "job %llu: generation %llu is planned after %llu", (ull)job->id.n,
                (ull)plan->generation.number, (ull)last.number);
        }
    }
    if (!generation_equal(job->stored.generation, plan->generation)) {
        broken(sim, "GEN_UP",
            "job %llu: generation %llu is spoken with a nonce that is not recorded", (ull)job->id.n,
            (ull)plan->generation.number);
    }
    bool seen[SCENARIO_AGENTS_MAX * SCENARIO_SLOTS_MAX] = {false};
    for (size_t rank = 0; rank < plan->roster_count; rank++) {
        uint32_t slot = plan->roster[rank].slot;
        if (slot >= job->plan->tasks || seen[slot]) {
            broken(
                sim, "RANKS", "job %llu: slot %u has two ranks, or is none", (ull)job->id.n, slot);
            return;
        }
        seen[slot] = true;
        uint32_t process = job->processes[slot];
        if (process == NOBODY ||
            sim->processes[process].ref.incarnation != plan->roster[rank].incarnation) {
            broken(sim, "RANKS", "job %llu: rank %zu names an incarnation that never ran",
                (ull)job->id.n, rank);
        }
    }
}

/* An epoch's length is recorded before a release that reaches its end (rule 23). Behind an epoch
 * that is left early it comes when the tasks have told where they are: what was admitted of that
 * one can cover a short next one whole. */
static void check_ends(struct sim *sim, const struct job *job, uint64_t up_to)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < job->plan->epoch_count; i++) {
        const struct scenario_epoch *epoch = &job->plan->epochs[i];
        if (epoch->from + epoch->taken < epoch->steps) {
            return;
        }
        end += epoch->taken;
        if (epoch->stream != 0 && up_to >= end && !job->stored.ends[i]) {
            broken(sim, "END",
                "job %llu: released up to %llu, but the end of epoch %u is not recorded",
                (ull)job->id.n, (ull)up_to, i);
        }
    }
}

/* The least of what all members have in hand, and no control that somebody has passed. */
void check_release(struct sim *sim, const struct job *job, const struct task_release *release)
{
    if (job->mesh == NOBODY) {
        broken(sim, "ARRIVED", "job %llu: a release before a plan", (ull)job->id.n);
        return;
    }
    const struct mesh *mesh = &sim->meshes[job->mesh];
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[sim->members[mesh->first + rank]];
        if (process->core.arrived < release->up_to) {
            broken(sim, "ARRIVED", "job %llu: released up to %llu, but task %u has %llu in hand",
                (ull)job->id.n, (ull)release->up_to, process->ref.slot, (ull)process->core.arrived);
        }
        if (release->halt_at < process->core.position ||
            (release->checkpoint_at < process->core.position)) {
            broken(sim, "HALT", "job %llu: task %u stands at %llu and is told of a control at %llu",
                (ull)job->id.n, process->ref.slot, (ull)process->core.position,
                (ull)release->halt_at);
        }
    }
    if (release->up_to > job->stored.watermark) {
        broken(sim, "PERSIST", "job %llu: release %llu is spoken, but only %llu is written",
            (ull)job->id.n, (ull)release->up_to, (ull)job->stored.watermark);
    }
    check_ends(sim, job, release->up_to);
}

/* At the end all lengths that somebody knew are recorded, unless a link broke with the news. */
static void check_all_ends(struct sim *sim, const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->epoch_count; i++) {
        const struct scenario_epoch *epoch = &job->plan->epochs[i];
        bool whole = epoch->from + epoch->taken == epoch->steps;
        bool known = epoch->stream != 0 && (whole || !job->plan->streamed);
        if (known && !job->stored.ends[i] && !sim->links_broke) {
            broken(sim, "END", "job %llu: bye, but the end of epoch %u is not recorded",
                (ull)job->id.n, i);
        }
    }
}

void check_bye(struct sim *sim, const struct job *job)
{
    if (job->mesh == NOBODY) {
        broken(sim, "HALT", "job %llu: bye before a plan", (ull)job->id.n);
        return;
    }
    const struct mesh *mesh = &sim->meshes[job->mesh];
    for (uint32_t rank = 0; rank < mesh->count; rank++) {
        const struct process *process = &sim->processes[sim->members[mesh->first + rank]];
        if (!process->core.finished || process->core.position != job->stored.done_position ||
            process->core.position != job->plan->steps) {
            broken(sim, "HALT", "job %llu: bye at %llu, but task %u stands at %llu", (ull)job->id.n,
                (ull)job->stored.done_position, process->ref.slot, (ull)process->core.position);
        }
    }
    check_all_ends(sim, job);
}

void check_enter(struct sim *sim, const struct process *process, uint64_t position)
{
    const struct job *job = &sim->jobs[process->job];
    if (position >= job->plan->steps) {
        broken(sim, "EXISTS", "job %llu task %u enters step %llu of %llu", (ull)job->id.n,
            process->ref.slot, (ull)position, (ull)job->plan->steps);
    }
    if (position >= job->stored.watermark) {
        broken(sim, "ADMIT", "job %llu task %u enters step %llu, but only %llu are admitted",
            (ull)job->id.n, process->ref.slot, (ull)position, (ull)job->stored.watermark);
    }
}

/* `position` is the step that was just written into the variables. */
void check_applied(struct sim *sim, struct process *process, uint64_t position)
{
    const struct job *job = &sim->jobs[process->job];
    struct mesh *mesh = &sim->meshes[process->mesh];
    if (position >= job->stored.watermark) {
        broken(sim, "ADMIT", "job %llu task %u applies step %llu, but only %llu are admitted",
            (ull)job->id.n, process->ref.slot, (ull)position, (ull)job->stored.watermark);
    }
    mesh->applied[position]++;
    if (position > mesh->resume && mesh->applied[position - 1] != mesh->count) {
        broken(sim, "DRIFT", "job %llu task %u applied step %llu, but only %u of %u the one before",
            (ull)job->id.n, process->ref.slot, (ull)position, mesh->applied[position - 1],
            mesh->count);
    }
    if (process->variables != job->truth[position + 1]) {
        broken(sim, "ONCE",
            "job %llu task %u: after step %llu its state is not that of steps 0 to it, each once",
            (ull)job->id.n, process->ref.slot, (ull)position);
    }
}

void check_running(struct sim *sim, uint32_t agent)
{
    uint32_t running = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_PLACES(sim->scenario.slots[agent]); i++) {
        if (agent_core_task(sim->agents[agent].core, i, &view)) {
            running += view.phase >= AGENT_TASK_RUNNING && view.phase < AGENT_TASK_GONE ? 1 : 0;
        }
    }
    if (running > sim->scenario.slots[agent]) {
        broken(sim, "SLOTS", "w%u runs %u tasks in %u slots", agent, running,
            sim->scenario.slots[agent]);
    }
}

/* ---- the end ---- */

static bool names_the_dead(const struct job *job)
{
    char name[32];
    snprintf(name, sizeof(name), "task %u ", job->plan->death_slot);
    return strncmp(job->stored.text, name, strlen(name)) == 0;
}

static bool names_the_short(const struct job *job)
{
    char name[32];
    snprintf(name, sizeof(name), "task %u ", job->plan->short_slot);
    return strstr(job->stored.text, name) != NULL ||
           (job->plan->short_data && strstr(job->stored.text, "different paths") != NULL);
}

static void check_outcome(struct sim *sim, const struct job *job)
{
    const struct stored *end = &job->stored;
    const struct scenario_job *plan = job->plan;
    bool may_fail = job->died || job->touched || job->short_finished || job->plan->short_data;
    /* Who leaves with status 0 when nobody needs it any more has done no harm. */
    bool harmless = plan->death == DEATH_QUIT && (plan->tasks == 1 || job->died_finished);
    bool must_not_succeed = job->died && !job->touched && !harmless;
    const char *wrong = NULL;
    if (end->state == JOB_FAILED && !may_fail) {
        wrong = "failed, but nothing had happened to it";
    } else if (end->state == JOB_CANCELLED && !job->cancelled) {
        wrong = "was cancelled by nobody";
    } else if (end->state == JOB_SUCCEEDED && must_not_succeed) {
        wrong = "succeeded, but a task of it had died";
    } else if (end->state == JOB_SUCCEEDED && !plan->plain && !harmless &&
               end->done_position != plan->steps) {
        wrong = "succeeded without all of its steps";
    } else if (end->state == JOB_SUCCEEDED && plan->short_slot != UINT32_MAX) {
        wrong = "succeeded, but its tasks did not take the same steps";
    } else if (end->state == JOB_FAILED && !job->touched && job->short_finished &&
               !names_the_short(job)) {
        wrong = "failed and does not name the task that took fewer steps";
    } else if (end->state == JOB_FAILED && must_not_succeed) {
        int32_t code = plan->death_code;
        code = plan->death == DEATH_SIGNAL ? 128 + code : plan->death == DEATH_QUIT ? 1 : code;
        if (!names_the_dead(job)) {
            wrong = "failed and blames another than the task that died";
        } else if (end->exit_code != code) {
            wrong = "failed with another exit code than that of the task that died";
        }
    }
    if (wrong != NULL) {
        broken(sim, "TRUTH", "job %llu %s (%s, exit code %d: %.200s)", (ull)job->id.n, wrong,
            job_state_name(end->state), end->exit_code, end->text);
    }
}

void check_outcomes(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        const struct job *job = &sim->jobs[i];
        if (!job->stored.ended) {
            struct core_job_view view = {.job = {0}};
            core_job(sim->coordinator.core, job->id, &view);
            broken(sim, "PROGRESS", "job %llu has not ended after %llu s (%s: %.200s)",
                (ull)job->id.n, (ull)(sim->now_us / 1000000),
                view.job.n != 0 ? job_state_name(view.state) : "not live", view.text);
            return;
        }
        check_outcome(sim, job);
    }
    for (uint32_t i = 0; i < sim->process_count; i++) {
        const struct process *process = &sim->processes[i];
        if (process->program != PROGRAM_DEAD) {
            broken(sim, "LEFT", "job %llu task %u runs on after the end on w%u",
                (ull)process->ref.job.n, process->ref.slot, process->agent);
        }
    }
    struct core_worker_view view;
    for (uint32_t i = 0; core_worker(sim->coordinator.core, i, &view); i++) {
        if (view.slots_used != 0) {
            broken(sim, "SLOTS", "all jobs have ended, but %u slots of %s are taken",
                view.slots_used, view.name);
        }
    }
    check_cores(sim, NOBODY, true);
}
