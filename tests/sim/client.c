/* SPDX-License-Identifier: Apache-2.0
 * Clients: jobs are submitted and cancelled. */
#include "sim.h"
#include "truth.h"

struct core_checkpoint origin_of(const struct job *job, uint64_t position)
{
    struct core_checkpoint checkpoint = {
        .position = position, .manifest_bytes = 1, .path = "checkpoints/other.json"};
    const struct state state = truth_state(job, position);
    checkpoint_name(checkpoint.manifest_sha256, &state);
    return checkpoint;
}

void client_submits(struct sim *sim, uint32_t index)
{
    struct job *job = &sim->jobs[index];
    const struct scenario_job *plan = job->plan;
    if (!coordinator_takes_calls(sim)) {
        schedule(sim, 500000, ON_SUBMIT, index, 0, 0); /* it is refused, and retries */
        return;
    }
    sim->coordinator.submitting = index;
    job->call = ++sim->calls;
    struct core_event event = {.type = CORE_EVENT_SUBMIT,
        .submit = {.call = {job->call},
            .spec = {.tasks = plan->tasks,
                .tasks_min = plan->tasks_min,
                .gpus = plan->gpus,
                .priority = plan->priority,
                .max_restarts = plan->max_restarts,
                .wait_us = plan->wait_us,
                .time_limit_us = plan->limit_us,
                .ps_job = plan->ps_job},
            .restores = plan->restore_at != 0}};
    if (plan->restore_at != 0) {
        event.submit.checkpoint = origin_of(job, plan->restore_at);
    }
    coordinator_step(sim, &event);
    sim->coordinator.submitting = SIM_NONE;
}

void client_cancels(struct sim *sim, uint32_t index)
{
    struct job *job = &sim->jobs[index];
    if (!coordinator_takes_calls(sim)) {
        schedule(sim, 500000, ON_CANCEL, index, 0, 0);
    } else if ((job->answered || sim->lied) && job->id.n != 0) {
        job->cancel_asked = true;
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_CANCEL,
                                  .cancel = {.call = {CANCEL_CALLS + index}, .job = job->id}});
    }
}
