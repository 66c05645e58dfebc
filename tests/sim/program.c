/* SPDX-License-Identifier: Apache-2.0
 * A virtual training program with the production task core: a loop over epochs, a collective in
 * each step, and a state that tells which steps went into it. */
#include "common/pure/assert.h"
#include "sim.h"

static uint64_t step_id(const struct scenario_epoch *epoch, uint64_t step)
{
    return prng_mix(prng_mix(epoch->stream) ^ prng_mix(epoch->epoch << 20 ^ step));
}

static uint64_t mixed(uint64_t variables, uint64_t id)
{
    return prng_mix(variables ^ id);
}

void job_truth(struct job *job, uint64_t variables)
{
    uint64_t position = 0;
    job->truth[0] = variables;
    for (uint32_t i = 0; i < job->plan->epoch_count; i++) {
        const struct scenario_epoch *epoch = &job->plan->epochs[i];
        for (uint64_t step = 0; step < epoch->taken; step++, position++) {
            job->truth[position + 1] =
                mixed(job->truth[position], step_id(epoch, epoch->from + step));
        }
    }
    CADRE_ASSERT(position == job->plan->steps);
}

static const struct scenario_job *program_of(const struct sim *sim, const struct process *process)
{
    return sim->jobs[process->job].plan;
}

/* After so many steps its program calls cadre_finish. */
static uint64_t steps_of(const struct sim *sim, const struct process *process)
{
    const struct scenario_job *plan = program_of(sim, process);
    return plan->short_slot == process->ref.slot ? plan->short_steps : plan->steps;
}

/* ---- ends ---- */

void process_exit(struct sim *sim, uint32_t index, int32_t code, int32_t signal)
{
    struct process *process = &sim->processes[index];
    if (process->program == PROGRAM_DEAD) {
        return;
    }
    bool born = process->program != PROGRAM_UNBORN || process->core.phase != 0;
    process->program = PROGRAM_DEAD;
    process->exit = (struct task_exit){.code = code, .signal = signal};
    trace(sim, "job %llu task %u exits: status %d signal %d",
        (unsigned long long)process->ref.job.n, process->ref.slot, code, signal);
    if (born) {
        mesh_leave(sim, index);
    }
    uint64_t at_us = sim->now_us + draw(sim, 10, 2000);
    at_us = at_us > process->up_last_us ? at_us : process->up_last_us + 1;
    later_with(sim, at_us, ON_EXITED, process->agent, process->life, index, NULL);
}

/* The death that the scenario has for it; false: none here and now. */
static bool dies(struct sim *sim, uint32_t index, enum death_when when, uint64_t step)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    const struct scenario_job *plan = job->plan;
    bool dying = plan->death != DEATH_NONE && plan->death != DEATH_PREPARE &&
                 plan->death_slot == process->ref.slot && plan->death_when == when &&
                 (when == DEATH_AT_START || when == DEATH_FINISHED || plan->death_step == step);
    return dying && process->program != PROGRAM_DEAD;
}

static void die(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    bool ends = process->program == PROGRAM_ENDS || process->program == PROGRAM_DEAD;
    if (ends) {
        return;
    }
    job->died = true;
    job->died_finished = process->core.finished;
    bool by_signal = job->plan->death == DEATH_SIGNAL;
    process_exit(
        sim, index, by_signal ? 0 : job->plan->death_code, by_signal ? job->plan->death_code : 0);
}

/* Its socket breaks; what was on its way to it is lost, and it comes back. */
static void disconnect(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    trace(sim, "job %llu task %u loses its daemon", (unsigned long long)process->ref.job.n,
        process->ref.slot);
    process->socket++;
    sim->links_broke = true;
    uint64_t at_us = sim->now_us + draw(sim, 5, 100);
    process->up_last_us = at_us > process->up_last_us ? at_us : process->up_last_us;
    later_with(sim, process->up_last_us, ON_FRAME_UP, process->agent, process->life, index, NULL);
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_DISCONNECTED});
    later(sim, draw(sim, 100, 300000), ON_RECONNECT, 0, process->life, index);
}

void process_signal(struct sim *sim, uint32_t index, int signal)
{
    CADRE_ASSERT(index != NOBODY);
    const struct process *process = &sim->processes[index];
    if (signal == 15 && program_of(sim, process)->stubborn) {
        return;
    }
    later(sim, draw(sim, 10, 1000), ON_DEATH, (uint32_t)signal, process->life, index);
}

/* ---- the core's actions ---- */

static void frame_up(struct sim *sim, uint32_t index, const struct task_up *up)
{
    struct process *process = &sim->processes[index];
    uint64_t at_us = sim->now_us + draw(sim, 5, 100);
    process->up_last_us = at_us > process->up_last_us ? at_us : process->up_last_us;
    if (sim->tracing) {
        char text[SIM_TRACE_BYTES];
        trace(sim, "job %llu task %u: %s", (unsigned long long)process->ref.job.n,
            process->ref.slot, trace_task_up(up, text));
    }
    later_with(sim, process->up_last_us, ON_FRAME_UP, process->agent, process->life, index,
        message_of_task_up(&sim->pool, up));
}

static void program_go(struct sim *sim, uint32_t index);

void program_event(struct sim *sim, uint32_t index, const struct task_event *event)
{
    struct task_actions actions;
    struct process *process = &sim->processes[index];
    bool changed = false;
    task_core_step(&process->core, event, &actions);
    const char *wrong = task_core_invariant(&process->core);
    if (wrong != NULL) {
        broken(sim, "TASK", "job %llu task %u: not true that %s",
            (unsigned long long)process->ref.job.n, process->ref.slot, wrong);
    }
    for (size_t i = 0; i < actions.count; i++) {
        switch (actions.items[i].type) {
        case TASK_ACTION_SEND:
            frame_up(sim, index, &actions.items[i].up);
            break;
        case TASK_ACTION_FORM:
            process->program = PROGRAM_FORMS;
            mesh_form(sim, index);
            break;
        case TASK_ACTION_ABORT_MESH:
            mesh_leave(sim, index);
            break;
        case TASK_ACTION_CHANGED:
            changed = true;
            break;
        case TASK_ACTION_EXIT_OK:
            process->program = PROGRAM_ENDS;
            later(sim, draw(sim, 100, 20000), ON_PROGRAM, 0, process->life, index);
            break;
        case TASK_ACTION_EXIT_VOID:
            process_exit(sim, index, 1, 0);
            break;
        }
    }
    if (changed) {
        program_go(sim, index);
    }
}

void process_hear(struct sim *sim, uint32_t index, const struct task_down *down)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_DEAD && process->program != PROGRAM_UNBORN) {
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_DOWN, .down = down});
    }
}

/* ---- the training loop ---- */

/* Which epoch it stands in at this position, and how far its batches can be had. */
static void tell_ready(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = program_of(sim, process);
    uint64_t position = process->core.position;
    const struct scenario_epoch *epoch = &plan->epochs[process->epoch];
    if (position == process->epoch_first + epoch->taken) {
        process->epoch++;
        process->epoch_first = position;
        process->epoch_told = 0;
        epoch = &plan->epochs[process->epoch];
    }
    uint64_t first = process->epoch_first - epoch->from; /* those steps were before */
    uint64_t end = first + epoch->steps;
    if (plan->short_data && plan->short_slot == process->ref.slot && end > plan->short_steps) {
        end = plan->short_steps;
    }
    uint64_t ready = plan->streamed && position + 2 < end ? position + 2 : end;
    if (ready <= process->epoch_told) {
        return;
    }
    process->epoch_told = ready;
    program_event(sim, index,
        &(struct task_event){.type = TASK_EVENT_READY,
            .position = ready,
            .cursor = {.stream = epoch->stream,
                .epoch = epoch->epoch,
                .first = first,
                .begin = process->epoch_first,
                .steps = ready == end ? end - first : 0}});
}

static void finish(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->rank == 0 && process->core.snapshot_at != process->core.position) {
        const struct task_part part = {
            .position = process->core.position, .path = "checkpoint/final", .size_bytes = 1};
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_PART, .part = &part});
        return; /* it goes on with what this changed */
    }
    if (dies(sim, index, DEATH_FINISHED, 0)) {
        later(sim, draw(sim, 0, 3000), ON_DEATH, 0, process->life, index);
    }
    struct job *job = &sim->jobs[process->job];
    job->short_finished |= process->core.position < job->plan->steps;
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_FINISH});
    mesh_end(sim, index);
}

/* Goes as far as its core allows. */
static void program_go(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_IDLE || process->core.phase != TASK_RUN) {
        return;
    }
    const struct scenario_job *plan = program_of(sim, process);
    uint64_t position = process->core.position;
    if (position == steps_of(sim, process)) {
        if (!process->core.finished) {
            finish(sim, index);
        }
        return;
    }
    tell_ready(sim, index);
    if (!task_core_may_enter(&process->core, position) && process->stalled_at != position) {
        process->stalled_at = position;
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_STALLED, .position = position});
        if (mutant_acts(sim, MUTANT_ENTERED_UNRELEASED)) {
            check_enter(sim, process, position);
            mesh_enter(sim, index, position);
        }
    }
    if (process->program == PROGRAM_IDLE && task_core_may_enter(&process->core, position)) {
        uint64_t compute_us = plan->compute_us / 2 + draw(sim, 0, plan->compute_us);
        compute_us *= plan->slow_slot == process->ref.slot ? 5 : 1;
        process->program = PROGRAM_COMPUTES;
        later(sim, compute_us, ON_PROGRAM, 0, process->life, index);
    }
}

/* The gradients of a step are there. */
static void computed(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    uint64_t position = process->core.position;
    process->program = PROGRAM_IDLE;
    if (!task_core_may_enter(&process->core, position)) {
        program_go(sim, index);
        return;
    }
    if (dies(sim, index, DEATH_BEFORE_STEP, position)) {
        die(sim, index);
        return;
    }
    uint32_t one_in = program_of(sim, process)->reconnect_in;
    if (one_in != 0 && process->core.connected && prng_chance(&sim->prng, 1, one_in)) {
        disconnect(sim, index);
    }
    process->program = PROGRAM_INSIDE;
    if (dies(sim, index, DEATH_IN_COLLECTIVE, position)) {
        later(sim, draw(sim, 0, 2000), ON_DEATH, 0, process->life, index);
    }
    check_enter(sim, process, position);
    mesh_enter(sim, index, position);
}

static void peer_left(struct sim *sim, uint32_t index, uint64_t position)
{
    struct process *process = &sim->processes[index];
    struct task_event event = {.text = "a peer left the mesh"};
    if (process->program == PROGRAM_FORMS) {
        event.type = TASK_EVENT_SYNC_FAILED;
    } else if (process->program == PROGRAM_INSIDE && process->core.position == position) {
        event.type = TASK_EVENT_PEER_ERROR;
    } else {
        return;
    }
    process->program = PROGRAM_IDLE;
    program_event(sim, index, &event);
}

static void collective_done(struct sim *sim, uint32_t index, uint64_t position)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_INSIDE || process->core.position != position) {
        return;
    }
    if (process->doomed == position) {
        peer_left(sim, index, position);
        return;
    }
    process->program = PROGRAM_APPLIES;
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_APPLY, .position = position});
    if (!process->core.applying) {
        process->program = PROGRAM_IDLE; /* it was frozen meanwhile */
    } else if (dies(sim, index, DEATH_APPLYING, position)) {
        die(sim, index);
    } else {
        later(sim, draw(sim, 5, 500), ON_APPLIED, 0, process->life, index);
    }
}

static void applied(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = program_of(sim, process);
    uint64_t position = process->core.position;
    const struct scenario_epoch *epoch = &plan->epochs[process->epoch];
    uint64_t id = step_id(epoch, epoch->from + position - process->epoch_first);
    process->variables = mixed(process->variables, id);
    if (mutant_acts(sim, MUTANT_APPLIED_TWICE)) {
        process->variables = mixed(process->variables, id);
    }
    check_applied(sim, process, position);
    process->program = PROGRAM_IDLE;
    program_event(sim, index,
        &(struct task_event){.type = TASK_EVENT_APPLIED, .position = position, .digest = {1, id}});
    program_go(sim, index);
}

static void synced(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    if (process->program != PROGRAM_FORMS) {
        return;
    }
    if (!process->core.clean && !mutant_acts(sim, MUTANT_STATE_NOT_TAKEN_OVER)) {
        process->variables = sim->meshes[process->mesh].source_variables;
    }
    process->program = PROGRAM_IDLE;
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_SYNCED});
}

/* ---- starts ---- */

void process_spawned(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    bool slow = program_of(sim, process)->slow_slot == process->ref.slot;
    later(sim, draw(sim, 1000, slow ? 2000000 : 100000), ON_PROGRAM, 0, process->life, index);
}

static void born(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = program_of(sim, process);
    if (plan->plain) {
        process->program = PROGRAM_ENDS;
        later(sim, draw(sim, 1000, 2000000), ON_PROGRAM, 0, process->life, index);
        return;
    }
    process->program = PROGRAM_IDLE;
    if (dies(sim, index, DEATH_AT_START, 0)) {
        die(sim, index);
        return;
    }
    task_core_init(
        &process->core, process->ref.slot, process->ref.incarnation, 1, index, "virtual");
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_CONNECTED});
}

void program_happens(struct sim *sim, const struct happening *happening)
{
    uint32_t index = (uint32_t)happening->n;
    struct process *process = &sim->processes[index];
    if (process->program == PROGRAM_DEAD) {
        return;
    }
    switch (happening->type) {
    case ON_PROGRAM:
        if (process->program == PROGRAM_UNBORN) {
            born(sim, index);
        } else if (process->program == PROGRAM_COMPUTES) {
            computed(sim, index);
        } else if (process->program == PROGRAM_ENDS) {
            process_exit(sim, index, process->exit.code, 0);
        }
        break;
    case ON_SYNCED:
        synced(sim, index);
        break;
    case ON_COLLECTIVE_DONE:
        collective_done(sim, index, happening->a);
        break;
    case ON_PEER_LEFT:
        peer_left(sim, index, happening->a);
        break;
    case ON_APPLIED:
        applied(sim, index);
        break;
    case ON_RECONNECT:
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_CONNECTED});
        break;
    case ON_DEATH:
        if (happening->a == 0) {
            die(sim, index);
        } else {
            process_exit(sim, index, 0, (int32_t)happening->a);
        }
        break;
    default:
        CADRE_ASSERT(false);
    }
}
