/* SPDX-License-Identifier: Apache-2.0
 * The end of a run: every job has ended, truthfully, its consumption is on record, and nothing is
 * left. */
#include <stdio.h>
#include <string.h>

#include "sim.h"

typedef unsigned long long ull;

/* How many generations so many faults can make: each a regroup, a join, and one more when it falls
 * into one of these. */
static uint32_t generations_max(const struct sim *sim, const struct job *job)
{
    return 8 +
           6 * (sim->scenario.fault_count + job->own_ends + job->breaks + job->touches +
                   job->flips) +
           2 * job->plan->tasks;
}

static bool names(const struct job *job, uint32_t slot)
{
    char name[32];
    snprintf(
        name, sizeof(name), ps_job_is_set(&job->plan->ps_job) ? "(slot %u)" : "task %u ", slot);
    return strstr(job->stored->ended_as.text, name) != NULL;
}

/* Why its success is wrong; NULL: it is right. */
static const char *wrong_success(const struct sim *sim, const struct job *job)
{
    const struct scenario_job *plan = job->plan;
    bool undisturbed = job->touches == 0 && job->own_ends == 0 && job->breaks == 0;
    if (plan->plain) {
        return NULL;
    }
    if (undisturbed && job->program_failed && !sim->links_broke) {
        return "succeeded, but its program had failed";
    }
    if (undisturbed && job->disagreement_reported) {
        return "succeeded, but its tasks did not take the same steps";
    }
    /* A task that is killed while its job leaves for good is excused. */
    bool died = job->own_ends == 1 && !job->quit && job->touches == 0 && plan->limit_us == 0;
    if (died && !ps_job_is_set(&plan->ps_job) && plan->max_restarts == 0 &&
        plan->tasks == plan->tasks_min) {
        return "succeeded, but a task of it had died and none could be replaced";
    }
    bool whole = job->stored->done && job->stored->done_position == plan->steps;
    if (!whole && plan->short_slot == UINT32_MAX && !job->quit) {
        return "succeeded without all of its steps";
    }
    return NULL;
}

/* Whether it may have failed: a failure of its own, more ends than it allows, too long a wait, or a
 * task that was lost between bye and its end, whose outcome is unknown. */
static bool may_fail(const struct job *job)
{
    const struct scenario_job *plan = job->plan;
    uint32_t counted = job->own_ends + job->breaks + 2 * job->touches + job->flips;
    bool own = job->program_failed || job->disagreed || plan->short_slot != UINT32_MAX;
    bool waited = plan->wait_us != 0 && job->touches + job->own_ends + job->breaks + job->flips > 0;
    bool unreadable = job->damaged && job->stored->ended_as.code == CADRE_DATA_LOSS;
    bool lost_late = job->touches > 0 && (plan->plain || job->stored->done);
    /* Before the first plan no silent task is replaced. */
    bool unformed =
        job->stopped_long && strstr(job->stored->ended_as.text, " did not join within ") != NULL;
    bool again = job->flips > 1 && strstr(job->stored->ended_as.text, "no function of the step");
    return own || again || waited || unformed || unreadable || job->early_end || lost_late ||
           counted > plan->max_restarts;
}

static const char *wrong_failure(const struct sim *sim, const struct job *job)
{
    const struct scenario_job *plan = job->plan;
    bool undisturbed = job->touches == 0 && job->breaks == 0 && job->flips == 0;
    if (!may_fail(job)) {
        return "failed, but it should have gone on";
    }
    if (undisturbed && job->own_ends == 0 && job->program_failed && !names(job, job->failed_slot)) {
        return "failed and does not name the task whose program failed";
    }
    bool one = job->own_ends == 1 && undisturbed && !job->program_failed;
    if (one && !sim->links_broke && plan->max_restarts == 0 && !job->disagreed &&
        plan->short_slot == UINT32_MAX && plan->wait_us == 0) {
        int32_t code = job->first_exit.signal != 0 ? 128 + job->first_exit.signal
                       : job->first_exit.code != 0 ? job->first_exit.code
                                                   : 1;
        if (!names(job, job->first_end)) {
            return "failed and names another task than the one that died";
        }
        if (job->stored->ended_as.exit_code != code) {
            return "failed with another exit code than that of the task that died";
        }
        if (job->first_cause != CADRE_OK && job->stored->ended_as.code != job->first_cause) {
            return "failed with another code than that of why its task did not start";
        }
    }
    return NULL;
}

/* Whether it ended because it ran too long. */
static bool ran_over(const struct job *job)
{
    const struct core_ending *end = &job->stored->ended_as;
    return end->state == JOB_FAILED && end->code == CADRE_DEADLINE_EXCEEDED &&
           strncmp(end->text, "ran longer than ", 16) == 0;
}

/* When it was over, all tasks had to come to a step, to save, and to end; then their workers might
 * be lost, and their outputs did not come. A start of the coordinator gives each of these its time
 * again. */
static const char *wrong_time(const struct sim *sim, const struct job *job)
{
    uint64_t limit_us = job->plan->limit_us;
    uint64_t once_us = 2 * (SCENARIO_GRACE_US + SCENARIO_COLLECT_US) + 2 * SCENARIO_REWIND_US;
    uint64_t most_us = limit_us + (1 + job->crashes) * once_us;
    bool drifts = sim->scenario.coordinator_ppm != 0 || sim->scenario.replicas > 0; /* by 1% */
    uint64_t least_us = drifts ? limit_us - limit_us / 100 : limit_us;
    uint64_t took_us = job->stored->first_us == 0 ? 0 : job->ended_us - job->begun_us;
    most_us += (drifts ? most_us / 99 : 0) + sim->away_us - job->away_us;
    if (ran_over(job) && (limit_us == 0 || took_us < least_us)) {
        return "was ended before its time";
    }
    return limit_us > 0 && took_us > most_us ? "went on after its time" : NULL;
}

static void check_outcome(struct sim *sim, const struct job *job)
{
    const struct core_ending *end = &job->stored->ended_as;
    const char *wrong = NULL;
    if (end->state == JOB_CANCELLED && !job->cancel_asked) {
        wrong = "was cancelled without a request";
    } else if (end->state == JOB_PREEMPTED && !job->noticed && job->touches == 0) {
        wrong = "was preempted without a request";
    } else if (end->state == JOB_PREEMPTED && job->plan->max_restarts > 0) {
        wrong = "was preempted for good, but it may be started again";
    } else if (end->state == JOB_PREEMPTED && end->exit_code != JOB_EXIT_PREEMPTED) {
        wrong = "was preempted, and has another exit code";
    } else if (end->state == JOB_SUCCEEDED) {
        wrong = wrong_success(sim, job);
    } else if (end->state == JOB_FAILED && !ran_over(job)) {
        wrong = wrong_failure(sim, job);
    }
    if (wrong == NULL) {
        wrong = wrong_time(sim, job);
    }
    if (wrong != NULL) {
        broken(sim, "TRUTH", "job %llu %s (%s, exit code %d: %.300s)", (ull)job->id.n, wrong,
            job_state_name(end->state), end->exit_code, end->text);
    }
    if (job->meshes > generations_max(sim, job)) {
        broken(
            sim, "PROGRESS", "job %llu went through %u generations", (ull)job->id.n, job->meshes);
    }
}

static void check_left_over(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->process_count; i++) {
        const struct process *process = &sim->processes[i];
        if (process->program != PROGRAM_DEAD) {
            broken(sim, "LEFT", "job %llu task %u.%llu runs on after the end on w%u",
                (ull)process->ref.job.n, process->ref.slot, (ull)process->ref.incarnation,
                process->agent);
        }
    }
    struct core_worker_view view;
    uint32_t cursor = 0;
    while (core_worker_next(sim->coordinator.core, &cursor, &view)) {
        if (view.slots_used != 0) {
            broken(sim, "SLOTS", "all jobs have ended, but %u slots of %s are taken",
                view.slots_used, view.name);
        }
    }
}

void check_outcomes(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        const struct job *job = &sim->jobs[i];
        if (!job->stored->ended) {
            struct core_job_view view = {.job = {0}};
            char text[LIMIT_TEXT_BYTES] = "";
            (void)core_job_text(sim->coordinator.core, job->id, text);
            core_job(sim->coordinator.core, job->id, &view);
            broken(sim, "PROGRESS", "job %llu has not ended after %llu s (%s: %.300s)",
                (ull)job->id.n, (ull)(sim->now_us / 1000000),
                view.job.n != 0 ? job_state_name(view.state) : "not live", text);
            return;
        }
        check_outcome(sim, job);
        check_consumed(sim, job);
    }
    check_left_over(sim);
    check_cores(sim, SIM_NONE, true);
}
