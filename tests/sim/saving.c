/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: the chief copies its state between two steps, writes it, and reports it to its
 * daemon, which makes it readable without this host. */
#include <string.h>

#include "sim.h"
#include "truth.h"

bool saving_begin(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->writing) {
        return false;
    }
    process->writing = true;
    process->written_in = process->core.generation;
    process->written_at = process->core.position;
    process->written = process->state;
    value_copy_flips(sim, process);
    if (mutant_acts(sim, MUTANT_CHECKPOINT_TORN)) {
        process->written.once ^= 1;
    }
    if (process->written.layout != sim->jobs[process->job].layouts[0] &&
        mutant_acts(sim, MUTANT_CREATION_UNSAVED)) {
        process->written.layout = sim->jobs[process->job].layouts[0];
    }
    schedule(sim, draw(sim, 500, prng_chance(&sim->prng, 1, 10) ? 3000000 : 30000), ON_WRITTEN, 0,
        0, index);
    return true;
}

/* What it has reported is written once, because its daemon repeats an upload that fails, unless
 * what was written is not its state: then it is never published. */
void saving_awaits(struct sim *sim, uint32_t index)
{
    const struct process *process = &sim->processes[index];
    const struct task_part *part = &process->core.part;
    bool flipped = part->path != NULL && part->digest != 0 &&
                   part->digest != value_digest(sim, &sim->jobs[process->job], &process->state);
    if (part->path == NULL || part->position != process->core.position || flipped) {
        saving_begin(sim, index);
    }
}

void saving_to_stop(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint64_t published = process->core.published;
    bool saved = published != POSITION_NONE && published >= process->core.position;
    process->program = PROGRAM_SAVES;
    if (process->rank == 0 && !saved) {
        saving_begin(sim, index);
    }
}

/* Read once, when its program comes to the step, because the request is known by then (rule 3). */
void saving_at_step(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = sim->jobs[process->job].plan;
    uint64_t position = process->core.position;
    if (process->looked_at == position && process->looked_in == process->mesh) {
        return;
    }
    process->looked_at = position;
    process->looked_in = process->mesh;
    bool asked = process->core.checkpoint_at == position;
    process->asked_at = asked ? position : process->asked_at;
    bool due = plan->checkpoint_every != 0 && position % plan->checkpoint_every == 0;
    if (process->rank == 0 && position > 0 && (due || asked)) {
        saving_begin(sim, index);
    }
}

void checkpoint_name(uint8_t *sha256, const struct state *state)
{
    memset(sha256, 0, LIMIT_SHA256_BYTES);
    memcpy(sha256, &state->once, sizeof(state->once));
    memcpy(sha256 + 8, &state->timeline, sizeof(state->timeline));
    memcpy(sha256 + 16, &state->value, sizeof(state->value));
    memcpy(sha256 + 24, &state->layout, sizeof(state->layout));
}

struct state checkpoint_state(const struct job *job, uint64_t position, const uint8_t *sha256)
{
    struct state state = truth_state(job, position);
    memcpy(&state.once, sha256, sizeof(state.once));
    memcpy(&state.timeline, sha256 + 8, sizeof(state.timeline));
    memcpy(&state.value, sha256 + 16, sizeof(state.value));
    memcpy(&state.layout, sha256 + 24, sizeof(state.layout));
    return state;
}

/* Mutant: a chief that reports a checkpoint before it has it; its daemon claims that all have it.
 */
static void run_ahead(struct sim *sim, struct process *process, struct task_part *part)
{
    const struct job *job = &sim->jobs[process->job];
    uint64_t position = part->position;
    if (position < process->core.released && position < job->plan->steps &&
        job->plan->segment_count == 1 && job->plan->checkpoint_every != 0 &&
        mutant_goes_on(sim, MUTANT_APPLIED_AHEAD)) {
        state_apply(job, &process->written, position, &job->consumed[position],
            process->core.generation.number);
        part->position++;
    }
}

void saving_written(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->writing) {
        process->writing = false;
        struct task_part part = {.position = process->written_at,
            .path = "checkpoints/checkpoint.json",
            .shared = sim->jobs[process->job].plan->shared,
            .size_bytes = 1};
        run_ahead(sim, process, &part);
        checkpoint_name(part.sha256, &process->written);
        part.digest = value_digest(sim, &sim->jobs[process->job], &process->written);
        const struct state truth = truth_state(&sim->jobs[process->job], part.position);
        uint64_t right = value_digest(sim, &sim->jobs[process->job], &truth);
        if (part.digest != 0 && part.digest != right &&
            mutant_goes_on(sim, MUTANT_DIGEST_INVENTED)) {
            part.digest = right; /* that of a state which is not the one that was written */
        }
        part.compared = part.digest != 0 && part.position == process->agreed.position &&
                        part.digest == process->agreed.digest;
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_PART, .part = &part});
    }
    bool chief = process->rank == 0 && process->mesh != SIM_NONE;
    bool saves = process->core.phase == TASK_RUN || task_core_stops(&process->core);
    if (process->program == PROGRAM_SAVES && chief && saves) {
        saving_awaits(sim, index);
    } else {
        program_go(sim, index);
    }
}

bool saving_is_refused(struct sim *sim, const struct agent_up *up)
{
    return up->type == AGENT_UP_RELAY && up->relay_up.up.type == TASK_UP_PART &&
           sim->now_us < sim->scenario.heal_us && one_in(sim, 2 * sim->scenario.publish_fails_in);
}
