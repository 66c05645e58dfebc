/* SPDX-License-Identifier: Apache-2.0
 * A task's process: its start and end, its socket, and the production task core in it, whose
 * actions are executed here. */
#include "common/pure/assert.h"
#include "replicas/replicas.h"
#include "sim.h"

/* Shorter than the runtime's second, as its steps are. */
#define TICK_US 200000

typedef unsigned long long ull;

static const struct scenario_job *plan_of(const struct sim *sim, const struct process *process)
{
    return sim->jobs[process->job].plan;
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
    process->doing++;
    process->exit = (struct task_exit){.code = code, .signal = signal};
    trace(sim, "job %llu task %u.%llu exits: status %d signal %d", (ull)process->ref.job.n,
        process->ref.slot, (ull)process->ref.incarnation, code, signal);
    layout_end(process);
    if (born) {
        check_left(sim, process);
        mesh_remove(sim, index, true);
    }
    uint64_t at_us = sim->now_us + draw(sim, 10, 2000);
    at_us = at_us > process->up_last_us ? at_us : process->up_last_us + 1;
    schedule_message(sim, at_us, ON_EXITED, process->agent, process->incarnation, index, NULL);
}

/* Not ended by the daemon or a signal: the coordinator counts it as a failure of the job. */
static void ends_by_itself(struct sim *sim, uint32_t index, struct task_exit exit)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    bool member = process->core.phase != TASK_JOIN && process->core.phase != 0;
    job->early_end |= !job->planned || process->core.finished || !member;
    if (sim->broke_us == 0 && job->planned) {
        sim->broke_us = sim->now_us;
    }
    job->quit |= exit.code == 0 && exit.signal == 0;
    if (job->own_ends++ == 0) {
        job->first_end = process->ref.slot;
        job->first_exit = exit;
    }
}

const struct scenario_death *process_dies(
    struct sim *sim, uint32_t index, enum death_when when, uint64_t step)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    if (process->program == PROGRAM_DEAD || process->ending) {
        return NULL;
    }
    for (uint32_t i = 0; i < job->plan->death_count; i++) {
        const struct scenario_death *death = &job->plan->deaths[i];
        bool always = when == DEATH_AT_START || when == DEATH_FINISHED;
        bool here = death->when == when && (always || death->step == step);
        bool prepares = death->kind == DEATH_PREPARE;
        if (death->slot == process->ref.slot && here && !prepares &&
            (job->deaths_done >> i & 1) == 0) {
            job->deaths_done |= 1U << i;
            return death;
        }
    }
    return NULL;
}

void process_die(struct sim *sim, uint32_t index, const struct scenario_death *death)
{
    struct process *process = &sim->processes[index];
    if (process->program == PROGRAM_ENDS || process->program == PROGRAM_DEAD || process->ending) {
        return;
    }
    bool signal = death->kind == DEATH_SIGNAL;
    struct task_exit exit = {.code = signal ? 0 : death->code, .signal = signal ? death->code : 0};
    ends_by_itself(sim, index, exit);
    process_exit(sim, index, exit.code, exit.signal);
}

/* Its socket breaks; messages on the way to it are lost, and it may come back. */
void process_disconnect(struct sim *sim, uint32_t index, bool returns)
{
    struct process *process = &sim->processes[index];
    trace(sim, "job %llu task %u loses its daemon", (ull)process->ref.job.n, process->ref.slot);
    process->socket++;
    sim->links_broke = true;
    uint64_t at_us = sim->now_us + draw(sim, 5, 100);
    process->up_last_us = at_us > process->up_last_us ? at_us : process->up_last_us;
    schedule_message(
        sim, process->up_last_us, ON_FRAME_UP, process->agent, process->incarnation, index, NULL);
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_DISCONNECTED});
    if (returns) {
        schedule(sim, draw(sim, 100, 300000), ON_RECONNECT, 0, process->incarnation, index);
    }
}

void process_signal(struct sim *sim, uint32_t index, int signal)
{
    CADRE_ASSERT(index != SIM_NONE);
    struct process *process = &sim->processes[index];
    process->ending = true;
    if (signal == 15 && plan_of(sim, process)->stubborn) {
        return;
    }
    schedule(sim, draw(sim, 10, 1000), ON_DEATH, (uint32_t)signal, process->incarnation, index);
}

/* A signal of the daemon; or the operator's kill -9 when it was not ending. */
static void signalled(struct sim *sim, uint32_t index, int signal)
{
    struct process *process = &sim->processes[index];
    if (process->program == PROGRAM_ENDS) {
        sim->jobs[process->job].early_end = true;
    } else if (!process->ending) {
        ends_by_itself(sim, index, (struct task_exit){.signal = signal});
    }
    process_exit(sim, index, 0, signal);
}

/* ---- the core's actions ---- */

void process_send(struct sim *sim, uint32_t index, const struct task_up *up)
{
    struct process *process = &sim->processes[index];
    uint64_t at_us = sim->now_us + draw(sim, 5, 100);
    process->up_last_us = at_us > process->up_last_us ? at_us : process->up_last_us;
    if (sim->tracing) {
        char text[SIM_TRACE_BYTES];
        trace(sim, "job %llu task %u.%llu: %s", (ull)process->ref.job.n, process->ref.slot,
            (ull)process->ref.incarnation, trace_task_up(up, text));
    }
    schedule_message(sim, process->up_last_us, ON_FRAME_UP, process->agent, process->incarnation,
        index, message_of_task_up(&sim->pool, up));
}

/* What it waits for in its mesh fails. */
static void aborted(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    mesh_remove(sim, index, false);
    if (process->program == PROGRAM_INSIDE || process->program == PROGRAM_FORMS) {
        schedule(sim, draw(sim, 5, 1000), ON_PEER_LEFT, process->doing, 0, index);
    } else if (process->program == PROGRAM_SAVES) {
        process->program = PROGRAM_IDLE;
    }
}

static void form(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    layout_undo(sim, process);
    process->program = PROGRAM_FORMS;
    process->doing++;
    process->collective = 0;
    process->steps_begun = 0;
    process->ready_sent = 0;
    process->stalled_at = POSITION_NONE;
    process->writing &= process->written_at <= process->core.resume;
    mesh_form(sim, index);
}

/* A program that keeps its state itself, and has saved it or waits to join, ends in order. */
static bool leaves_in_order(const struct process *process)
{
    const struct task_core *core = &process->core;
    bool halted = core->reason == REPORT_HALT && core->halt_kind == HALT_REGROUP;
    return core->plain && (core->generation.number == 0 ? core->joins : halted);
}

static void leaves(struct sim *sim, uint32_t index, bool void_state)
{
    struct process *process = &sim->processes[index];
    process->ending = true;
    process->exit_sent = true;
    if (void_state && leaves_in_order(process)) {
        process->program = PROGRAM_ENDS;
        process->exit.code = JOB_EXIT_PREEMPTED;
        process->doing++;
        if (!one_in(sim, 10)) { /* else it is stopped */
            schedule(sim, draw(sim, 100, 20000), ON_PROGRAM, process->doing, process->incarnation,
                index);
        }
    } else if (void_state) {
        process_exit(sim, index, 1, 0);
    } else {
        process->program = PROGRAM_ENDS;
        bool stops = process->core.halt_kind == HALT_STOP && one_in(sim, 2);
        process->exit.code = stops && process->core.reason == REPORT_HALT ? 42 : 0;
        process->doing++;
        schedule(
            sim, draw(sim, 100, 20000), ON_PROGRAM, process->doing, process->incarnation, index);
    }
}

static void carry_out(struct sim *sim, uint32_t index, const struct task_action *action,
    const struct task_event *event)
{
    if (sim->processes[index].program == PROGRAM_DEAD) {
        return;
    }
    switch (action->type) {
    case TASK_ACTION_SEND:
        process_send(sim, index, &action->up);
        break;
    case TASK_ACTION_FORM:
        form(sim, index);
        break;
    case TASK_ACTION_ABORT_MESH:
        aborted(sim, index);
        break;
    case TASK_ACTION_CHANGED:
        break;
    case TASK_ACTION_WARM:
        join_warm(sim, index, &event->down->warm);
        break;
    case TASK_ACTION_EXIT_OK:
        leaves(sim, index, false);
        break;
    case TASK_ACTION_EXIT_VOID:
        leaves(sim, index,
            sim->processes[index].core.generation.number == 0 ||
                !mutant_acts(sim, MUTANT_GOODBYE_TO_ZOMBIE));
        break;
    }
}

void program_event(struct sim *sim, uint32_t index, const struct task_event *event)
{
    struct task_actions actions;
    struct process *process = &sim->processes[index];
    struct task_event timed = *event;
    bool changed = false;
    timed.now_us = clock_shows(&sim->agents[process->agent].clock, sim->now_us);
    task_core_step(&process->core, &timed, &actions);
    const char *wrong = task_core_invariant(&process->core);
    if (wrong != NULL) {
        broken(sim, "TASK", "job %llu task %u: not true that %s", (ull)process->ref.job.n,
            process->ref.slot, wrong);
    }
    for (size_t i = 0; i < actions.count; i++) {
        carry_out(sim, index, &actions.items[i], event);
        changed |= actions.items[i].type == TASK_ACTION_CHANGED;
    }
    if (changed) {
        program_go(sim, index);
    }
}

void process_receive(struct sim *sim, uint32_t index, const struct task_down *down)
{
    struct process *process = &sim->processes[index];
    struct task_down misheard = *down;
    if (down->type == TASK_DOWN_RELEASE && down->release.halt_kind == HALT_STOP &&
        down->release.halt_at == down->release.up_to && mutant_goes_on(sim, MUTANT_STOP_UNSEEN)) {
        misheard.release.halt_kind = HALT_NONE;
        misheard.release.halt_at = POSITION_NONE;
        misheard.release.up_to++;
        down = &misheard;
    }
    if (process->program != PROGRAM_DEAD && process->core.phase != 0) {
        if (down->type == TASK_DOWN_RESET) {
            check_begins_again(sim, process);
        }
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_DOWN, .down = down});
        if (down->type == TASK_DOWN_MEMBERS) {
            ps_on_members(sim, index, &down->members);
        }
    }
}

/* ---- starts ---- */

void process_spawned(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->spawned = true;
    bool slow = plan_of(sim, process)->slow_slot == process->ref.slot;
    schedule(sim, draw(sim, 1000, slow ? 2000000 : 100000), ON_PROGRAM, process->doing,
        process->incarnation, index);
}

void process_send_streams(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->distributed = true;
    for (uint32_t stream = 1; stream < SCENARIO_STREAMS; stream++) {
        const struct task_stream stream_message = {.stream = stream,
            .name = stream == 1 ? "train" : "evaluation",
            .samples = 1000,
            .shares = true};
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_STREAM, .stream = &stream_message});
    }
}

static void connect(struct sim *sim, uint32_t index)
{
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_CONNECTED});
    struct process *process = &sim->processes[index];
    if (process->distributed && process->program != PROGRAM_DEAD) {
        process_send_streams(sim, index);
    }
}

static void born(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    const struct scenario_job *plan = plan_of(sim, process);
    if (plan->plain) {
        process->program = PROGRAM_ENDS;
        schedule(
            sim, draw(sim, 1000, 2000000), ON_PROGRAM, process->doing, process->incarnation, index);
        return;
    }
    process->program = PROGRAM_IDLE;
    const struct scenario_death *death = process_dies(sim, index, DEATH_AT_START, 0);
    if (death != NULL) {
        process_die(sim, index, death);
        return;
    }
    task_core_init(&process->core, process->ref.slot, process->ref.incarnation, plan->replicas,
        index, "virtual");
    layout_begin(sim, process);
    process->core.behind_steps = sim->behind_steps;
    process->core.plain = plan->keeps_state;
    process->core.verifies_losses = values_verify_losses(sim, &sim->jobs[process->job]);
    schedule(sim, TICK_US, ON_TASK_TICK, 0, process->incarnation, index);
    const struct agent *agent = &sim->agents[process->agent];
    if (!agent->adopts || (agent->alive && agent->incarnation == process->incarnation)) {
        connect(sim, index); /* else it does when its daemon is back */
    }
}

static void goes_on(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    switch (process->program) {
    case PROGRAM_UNBORN:
        born(sim, index);
        break;
    case PROGRAM_WARMS:
        join_warmed(sim, index);
        break;
    case PROGRAM_COMPUTES:
        program_computed(sim, index);
        break;
    case PROGRAM_ENDS:
        process_exit(sim, index, process->exit.code, 0);
        break;
    default:
        break; /* a mutant has ended it */
    }
}

static void died(struct sim *sim, uint32_t index, uint32_t signal)
{
    const struct scenario_job *plan = plan_of(sim, &sim->processes[index]);
    if (signal >= 100) { /* by itself: number of the death */
        process_die(sim, index, &plan->deaths[signal - 100]);
    } else {
        signalled(sim, index, (int)signal);
    }
}

/* A program that has taken no step since the last tick has reported all that it applied, so that
 * the shown position of a job that does other work between two steps is not behind for ever. */
static void ticks(struct sim *sim, uint32_t index)
{
    const struct process *process = &sim->processes[index];
    const struct task_core *core = &process->core;
    bool is_idle = core->ticked == core->position;
    schedule(sim, TICK_US, ON_TASK_TICK, 0, process->incarnation, index);
    ps_tick(sim, index);
    if (!is_idle || core->sent_applied == core->position || !mutant_acts(sim, MUTANT_IDLE_UNSENT)) {
        program_event(sim, index, &(struct task_event){.type = TASK_EVENT_TICK});
    }
    if (is_idle && core->phase == TASK_RUN && core->sent_applied < core->position) {
        broken(sim, "REPORTED", "job %llu task %u is at %llu and has reported %llu",
            (ull)process->ref.job.n, process->ref.slot, (ull)core->position,
            (ull)core->sent_applied);
    }
}

void process_happens(struct sim *sim, const struct happening *happening)
{
    uint32_t index = (uint32_t)happening->n;
    struct process *process = &sim->processes[index];
    if (process->program == PROGRAM_DEAD) {
        return;
    }
    bool activity = happening->type >= ON_PROGRAM && happening->type <= ON_WAITS;
    if (activity && happening->a != process->doing) {
        return; /* it waits for something else by now */
    }
    switch (happening->type) {
    case ON_FRAME_DOWN:
        if (process->socket == happening->a) {
            if (sim->scenario.replicas > 0) {
                check_term(sim, index, happening->message);
            }
            process_receive(sim, index, &happening->message->down.relay_down.down);
        }
        break;
    case ON_PROGRAM:
        goes_on(sim, index);
        break;
    case ON_SYNCED:
        join_synced(sim, index);
        break;
    case ON_COLLECTIVE_DONE:
        program_collective_done(sim, index);
        break;
    case ON_PEER_LEFT:
        program_peer_left(sim, index);
        break;
    case ON_APPLIED:
        program_applied(sim, index);
        break;
    case ON_WAITS:
        program_waits(sim, index);
        break;
    case ON_WRITTEN:
        if (happening->a == 1) {
            value_agreed(sim, index);
        } else {
            saving_written(sim, index);
        }
        break;
    case ON_RECONNECT:
        if (sim->agents[process->agent].alive &&
            sim->agents[process->agent].incarnation == happening->b && process->core.phase != 0) {
            connect(sim, index);
        }
        break;
    case ON_TASK_TICK:
        ticks(sim, index);
        break;
    case ON_DEATH:
        died(sim, index, happening->a);
        break;
    default:
        CADRE_ASSERT(false);
    }
}
