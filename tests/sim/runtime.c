/* SPDX-License-Identifier: Apache-2.0
 * The training loop of a process, as the runtime runs it: collectives outside of steps, steps of
 * one or two collectives, repeated work after a regroup, cadre_finish. */
#include <stdio.h>

#include "common/pure/assert.h"
#include "sim.h"
#include "truth.h"

#define STALL_FIRST_US 1000000
#define STALL_AGAIN_US 5000000

static const struct job *job_of(const struct sim *sim, const struct process *process)
{
    return &sim->jobs[process->job];
}

/* After so many steps its program calls cadre_finish. */
static uint64_t steps_of(const struct sim *sim, const struct process *process)
{
    const struct scenario_job *plan = job_of(sim, process)->plan;
    return plan->short_slot == process->ref.slot ? plan->short_steps : plan->steps;
}

/* A collective of a generation: those before step p, counted down, then those of the step. So a
 * task that entered by a join or a checkpoint uses the same keys. */
static uint64_t between_steps_key(uint64_t position, uint32_t left)
{
    return position << 9 | (255 - left);
}

static uint64_t step_key(uint64_t position, uint32_t collective)
{
    return position << 9 | 256 | (collective << 1);
}

uint32_t program_between_steps_left(const struct sim *sim, const struct process *process)
{
    const struct job *job = job_of(sim, process);
    uint64_t position = process->core.position;
    uint32_t all = process->set_up ? 0 : job->plan->setup;
    if (process->entered_at != position && position <= job->plan->steps) {
        all += job->between_steps[position];
    }
    CADRE_ASSERT(process->done <= all);
    return all - process->done;
}

/* ---- steps ---- */

/* The run of its epoch, and how far its batches can be had. */
static void send_ready(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct job *job = job_of(sim, process);
    const struct scenario_job *plan = job->plan;
    uint64_t position = process->core.position;
    const struct program_position *at = &job->positions[position];
    const struct scenario_segment *segment = &plan->segments[at->segment];
    uint64_t first = segment->stream == 0 ? position : position - at->step;
    uint64_t end = first + segment->steps;
    if (plan->short_data && plan->short_slot == process->ref.slot && end > plan->short_steps) {
        end = plan->short_steps;
    }
    uint64_t ready = plan->streamed && position + 2 < end ? position + 2 : end;
    struct task_event event = {.type = TASK_EVENT_READY,
        .position = ready,
        .cursor = {.stream = segment->stream,
            .epoch = segment->epoch,
            .first = first,
            .begin = at->begin > process->core.resume ? at->begin : process->core.resume,
            .steps = ready == end ? end - first : 0,
            .nested = at->nested}};
    if (process->state.epochs[segment->stream] == segment->epoch + 1) {
        event.consumption = process->state.consumptions[segment->stream];
    }
    process->steps_begun = position + 1;
    program_event(sim, index, &event);
}

static bool is_published(const struct process *process)
{
    uint64_t published = process->core.published;
    return published != POSITION_NONE && published >= process->core.position;
}

static bool is_save(const struct sim *sim, const struct process *process)
{
    const struct job *job = job_of(sim, process);
    uint64_t position = process->core.position;
    bool saves = position == job->plan->save_at || (job->plan->keeps_state && position > 0);
    return saves && program_between_steps_left(sim, process) == job->between_steps[position];
}

/* The saved checkpoint is to be published: it reports its position, and the chief does the rest. */
static void await_published(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->program = PROGRAM_SAVES;
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_FLUSH});
    if (process->rank == 0) {
        saving_awaits(sim, index);
    }
}

static void finish(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    uint64_t position = process->core.position;
    if (process->rank == 0 && !is_published(process)) {
        if (mesh_of(sim, process)->count == 1) { /* the replicas of the only task compare */
            values_exchange(sim, process, true);
            if (!values_agree(sim, index, true)) {
                return;
            }
        }
        await_published(sim, index);
        return;
    }
    const struct scenario_death *death = process_dies(sim, index, DEATH_FINISHED, 0);
    if (death != NULL) {
        schedule(sim, draw(sim, 0, 3000), ON_DEATH, 100 + (uint32_t)(death - job->plan->deaths), 0,
            index);
    }
    job->short_finished |= position < job->plan->steps;
    program_event(sim, index,
        &(struct task_event){
            .type = TASK_EVENT_FINISH, .digest = value_digest(sim, job, &process->state)});
    mesh_end(sim, index);
    if (mutant_acts(sim, MUTANT_OWN_EXIT)) {
        process->program = PROGRAM_ENDS;
        schedule(sim, 1000, ON_PROGRAM, ++process->doing, process->incarnation, index);
    }
}

static void compute(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = job_of(sim, process)->plan;
    uint64_t compute_us = plan->compute_us / 2 + draw(sim, 0, plan->compute_us);
    compute_us *= plan->slow_slot == process->ref.slot ? 5 : 1;
    process->program = PROGRAM_COMPUTES;
    process->doing++;
    schedule(sim, compute_us, ON_PROGRAM, process->doing, process->incarnation, index);
}

static void wait_for_release(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint64_t position = process->core.position;
    if (process->stalled_at != position && process->core.phase == TASK_RUN) {
        process->stalled_at = position;
        process->doing++;
        schedule(sim, STALL_FIRST_US, ON_WAITS, process->doing, process->incarnation, index);
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_STALLED, .position = position});
        if (process->core.phase == TASK_RUN && mutant_acts(sim, MUTANT_ENTERED_UNRELEASED)) {
            check_enter(sim, process, position);
        }
    }
}

void program_waits(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_IDLE || process->core.phase != TASK_RUN) {
        return;
    }
    const struct task_stall stall = {
        .position = process->core.position, .slot = process->ref.slot, .waited_us = STALL_FIRST_US};
    schedule(sim, STALL_AGAIN_US, ON_WAITS, process->doing, process->incarnation, index);
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_STALL, .stall = &stall});
}

/* Its job stops here, or pauses for tasks that join or leave. */
static void wait_at_step(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    program_event(sim, index,
        &(struct task_event){.type = TASK_EVENT_PAUSE_POINT,
            .digest = value_digest(sim, job_of(sim, process), &process->state)});
    program_go(sim, index);
}

/* The step at its position. */
static void take_step(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint64_t position = process->core.position;
    bool rises = job_of(sim, process)->plan->streamed;
    if (!process->distributed) {
        process_send_streams(sim, index);
    }
    if (process->steps_begun != position + 1 || process->steps_begun == 0) {
        const struct job *job = job_of(sim, process);
        bool turned =
            process->steps_begun == 0 || job->positions[position].begin == position || rises;
        /* The runtime may send READY at each step, or only where it must. */
        if (turned || position % 2 == 0) {
            send_ready(sim, index);
        } else {
            process->steps_begun = position + 1;
        }
    }
    if (process->program != PROGRAM_IDLE || process->core.phase != TASK_RUN) {
        return;
    }
    if (task_core_halts_next(&process->core)) {
        wait_at_step(sim, index);
        return;
    }
    saving_at_step(sim, index);
    if (!task_core_may_enter(&process->core, position)) {
        wait_for_release(sim, index);
    }
    if (process->program == PROGRAM_IDLE && task_core_halts_next(&process->core)) {
        wait_at_step(sim, index); /* its wait is also its READY */
        return;
    }
    if (process->program == PROGRAM_IDLE && process->core.phase == TASK_RUN &&
        task_core_may_enter(&process->core, position)) {
        compute(sim, index);
    }
}

/* ---- outside of steps ---- */

static void between_steps_done(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->done++;
    process->program = PROGRAM_IDLE;
    program_go(sim, index);
}

static void enter_between_steps(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    uint64_t position = process->core.position;
    if (is_save(sim, process)) {
        values_exchange(sim, process, true);
        if (process->rank == 0 && !is_published(process)) {
            saving_begin(sim, index);
        }
    }
    const struct scenario_death *death = process_dies(sim, index, DEATH_BETWEEN_STEPS, position);
    if (death != NULL) {
        schedule(sim, draw(sim, 0, 2000), ON_DEATH, 100 + (uint32_t)(death - job->plan->deaths), 0,
            index);
    }
    process->program = PROGRAM_INSIDE;
    process->doing++;
    process->doomed = false;
    mesh_enter(
        sim, index, between_steps_key(position, program_between_steps_left(sim, process)), true);
}

/* All have met in it. cadre_save continues when its checkpoint is published: a task that is frozen
 * before that saves again, with others, or gets the publication from one that was further. */
static void between_steps_met(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    bool saves = is_save(sim, process);
    bool runs = process->core.phase == TASK_RUN;
    process->program = PROGRAM_IDLE;
    if (saves && runs && !values_agree(sim, index, true)) {
        process->doing++;
        program_go(sim, index);
    } else if (saves && runs && !is_published(process) &&
               !(process->core.plain && mutant_goes_on(sim, MUTANT_PAUSE_UNSAVED))) {
        await_published(sim, index);
    } else if (runs) {
        between_steps_done(sim, index);
    } else {
        /* It has the result, and is frozen behind it. */
        process->done += !saves || is_published(process) ? 1 : 0;
        program_go(sim, index);
    }
}

/* The checkpoint that it waited for is published. */
static void saved(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->program = PROGRAM_IDLE;
    if (is_save(sim, process)) {
        between_steps_done(sim, index);
    } else {
        program_go(sim, index); /* the last one */
    }
}

/* ---- the loop ---- */

void program_go(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct job *job = job_of(sim, process);
    if (process->program == PROGRAM_SAVES) {
        if (process->core.phase == TASK_RUN && is_published(process)) {
            saved(sim, index);
        }
        return;
    }
    if (process->program != PROGRAM_IDLE || process->core.generation.number == 0) {
        return;
    }
    uint64_t position = process->core.position;
    if (task_core_stops(&process->core)) {
        saving_to_stop(sim, index);
        return;
    }
    if (process->core.phase == TASK_FROZEN) {
        /* Work without peers goes on: the program comes to its next step, and waits there. */
        if (position < steps_of(sim, process) && program_between_steps_left(sim, process) == 0 &&
            !process->core.begun && position < job->plan->steps && process->mesh != SIM_NONE &&
            process->core.code == CADRE_OK) {
            send_ready(sim, index);
        }
        return;
    }
    if (process->core.phase != TASK_RUN) {
        return;
    }
    if (program_between_steps_left(sim, process) > 0) {
        enter_between_steps(sim, index);
    } else if (position >= steps_of(sim, process)) {
        if (!process->core.finished) {
            finish(sim, index);
        }
    } else if (task_core_stops_next(&process->core)) {
        wait_at_step(sim, index);
    } else {
        take_step(sim, index);
    }
}

/* ---- a step's collectives ---- */

static void consumed_by(struct sim *sim, const struct process *process)
{
    const struct job *job = job_of(sim, process);
    struct mesh *mesh = mesh_of(sim, process);
    uint64_t position = process->core.position;
    struct step_consumption *consumed = &mesh->consumed[position % 2];
    if (consumed->position != position + 1) {
        *consumed = (struct step_consumption){.position = position + 1};
    }
    uint32_t rank = process->rank;
    uint32_t count = mesh->count;
    if (mesh->generation.number > 1 && count > 1 && mutant_acts(sim, MUTANT_CONSUMED_OLD_SLICE)) {
        rank = (rank + 1) % count;
    }
    truth_slice(job, position, rank, count, consumed);
    if (job->plan->segments[job->positions[position].segment].stream != 0 &&
        mutant_acts(sim, MUTANT_CONSUMED_TWICE)) {
        truth_sample(job, position, 0, consumed);
    }
}

/* The step is not done, and its created variables are undone. */
static void leave_step(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->program = PROGRAM_IDLE;
    layout_undo(sim, process);
}

static void enter_step(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct job *job = job_of(sim, process);
    uint64_t position = process->core.position;
    check_enter(sim, process, position);
    if (process->collective == 0) {
        process->met = 0;
        consumed_by(sim, process);
        values_exchange(sim, process, false);
    }
    bool creates = layout_creates(sim, process);
    bool last = !creates && process->collective - process->met + 1 == job->plan->collectives;
    if (creates) {
        layout_tells(sim, process);
    }
    if (last && job->plan->bucketed) {
        /* A part of the step is written before its last collective. */
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_APPLY, .position = position});
        if (!process->core.applying) {
            leave_step(sim, index);
            program_go(sim, index);
            return;
        }
        process->torn = true;
        process->state.once = ~process->state.once;
    }
    process->program = PROGRAM_INSIDE;
    process->doing++;
    process->doomed = false;
    mesh_enter(sim, index, step_key(position, process->collective), true);
}

/* The gradients of a step are computed. */
void program_computed(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    uint64_t position = process->core.position;
    if (task_core_may_enter(&process->core, position) && !ps_push(sim, index)) {
        return;
    }
    process->program = PROGRAM_IDLE;
    process->collective = 0;
    if (!task_core_may_enter(&process->core, position)) {
        program_go(sim, index);
        return;
    }
    const struct scenario_death *death = process_dies(sim, index, DEATH_BEFORE_STEP, position);
    if (death != NULL) {
        process_die(sim, index, death);
        return;
    }
    if (job->plan->failing_slot == process->ref.slot && job->plan->failing_step == position) {
        job->program_failed = true;
        program_fails(sim, index, "the step function returned INVALID_ARGUMENT");
        return;
    }
    if (process->core.connected && one_in(sim, job->plan->reconnect_in)) {
        process_disconnect(sim, index, true);
    }
    death = process_dies(sim, index, DEATH_IN_COLLECTIVE, position);
    if (death != NULL) {
        schedule(sim, draw(sim, 0, 2000), ON_DEATH, 100 + (uint32_t)(death - job->plan->deaths), 0,
            index);
    }
    enter_step(sim, index);
}

void program_fails(struct sim *sim, uint32_t index, const char *text)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    if (job->failed_slot == SIM_NONE) {
        job->failed_slot = process->ref.slot;
    }
    process->failed = true;
    process->ending = true;
    process->program = PROGRAM_ENDS;
    process->exit.code = 1;
    process->doing++;
    schedule(sim, draw(sim, 100, 200000), ON_PROGRAM, process->doing, process->incarnation, index);
    program_event(sim, index,
        &(struct task_event){
            .type = TASK_EVENT_FAILED, .code = CADRE_INVALID_ARGUMENT, .text = text});
}

void program_peer_left(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct task_event event = {.type = TASK_EVENT_PEER_ERROR, .text = "a peer left the mesh"};
    if (process->program == PROGRAM_FORMS) {
        event.type = TASK_EVENT_SYNC_FAILED;
        if (!process->core.clean && mutant_acts(sim, MUTANT_RECEIVER_NOT_DIRTY)) {
            process->core.clean = true;
        }
    } else if (process->program != PROGRAM_INSIDE) {
        return;
    }
    leave_step(sim, index);
    process->doing++;
    if ((process->key & 256) == 0 && program_between_steps_left(sim, process) > 0 &&
        event.type == TASK_EVENT_PEER_ERROR && mutant_acts(sim, MUTANT_BETWEEN_STEPS_NOT_REDONE)) {
        process->done++;
    }
    if (process->torn && mutant_acts(sim, MUTANT_TORN_NOT_DIRTY)) {
        process->core.applying = false;
        process->core.clean = true;
    }
    program_event(sim, index, &event);
    program_go(sim, index);
}

static void last_collective_done(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    uint64_t position = process->core.position;
    if (!process->torn) {
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_APPLY, .position = position});
    }
    if (process->program == PROGRAM_DEAD) {
        return;
    }
    if (!process->core.applying) {
        leave_step(sim, index); /* it was frozen meanwhile */
        program_go(sim, index);
        return;
    }
    process->program = PROGRAM_APPLIES;
    process->doing++;
    const struct scenario_death *death = process_dies(sim, index, DEATH_APPLYING, position);
    if (death != NULL) {
        process_die(sim, index, &job->plan->deaths[death - job->plan->deaths]);
        return;
    }
    schedule(sim, draw(sim, 5, 500), ON_APPLIED, process->doing, process->incarnation, index);
}

/* All have met in a collective of the step. */
static void step_met(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint32_t own = job_of(sim, process)->plan->collectives;
    bool created = layout_met(process);
    if (!created && process->collective - process->met + 1 == own) {
        last_collective_done(sim, index);
        return;
    }
    process->met += created ? 1 : 0;
    process->collective++;
    if (process->core.phase == TASK_RUN) {
        enter_step(sim, index);
    } else {
        leave_step(sim, index);
    }
}

void program_collective_done(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_INSIDE) {
        return;
    }
    if (process->doomed) {
        program_peer_left(sim, index);
        return;
    }
    if ((process->key & 256) == 0) {
        between_steps_met(sim, index);
    } else if (process->collective == 0 && !values_agree(sim, index, false)) {
        leave_step(sim, index);
        process->doing++;
        program_go(sim, index);
    } else {
        step_met(sim, index);
    }
}

void program_applied(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct job *job = job_of(sim, process);
    const struct mesh *mesh = mesh_of(sim, process);
    uint64_t position = process->core.position;
    const struct scenario_segment *segment = &job->plan->segments[job->positions[position].segment];
    if (process->torn) {
        process->torn = false;
        process->state.once = ~process->state.once;
    }
    CADRE_ASSERT(mesh->consumed[position % 2].position == position + 1);
    state_apply(
        job, &process->state, position, &mesh->consumed[position % 2], mesh->generation.number);
    process->state.cursor = process->core.cursor;
    layout_commit(sim, process);
    if (mutant_acts(sim, MUTANT_APPLIED_TWICE)) {
        state_apply(
            job, &process->state, position, &mesh->consumed[position % 2], mesh->generation.number);
    }
    value_flips(sim, process);
    check_applied(sim, process, position);
    process->program = PROGRAM_IDLE;
    process->set_up = true;
    process->done = 0;
    program_event(sim, index,
        &(struct task_event){.type = TASK_EVENT_APPLIED,
            .position = position,
            .consumption = process->state.consumptions[segment->stream]});
    program_go(sim, index);
}
