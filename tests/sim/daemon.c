/* SPDX-License-Identifier: Apache-2.0
 * The shell of a worker daemon: its link, the virtual processes of its tasks, and its own death and
 * return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "sim.h"

void agent_touch(struct sim *sim, uint32_t agent)
{
    sim->agents[agent].faulty = true;
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        if (job->placed && !job->stored.ended && job->used[agent]) {
            job->touched = true;
        }
    }
}

void agent_boot(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    const struct agent_options options = {.slots = sim->scenario.slots[agent],
        .heartbeat_us = SCENARIO_LEASE_US / 3,
        .orphan_us = SCENARIO_ORPHAN_US,
        .grace_us = SCENARIO_GRACE_US};
    a->core = agent_core_init(sim->agent_memory + agent * sim->agent_bytes, &options);
    a->alive = true;
    a->draining = false;
    a->life++;
    a->boot_nonce = prng_next(&sim->prng);
    a->link = NOBODY;
    a->tick_at_us = UINT64_MAX;
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        a->held[i] = NOBODY;
    }
    snprintf(a->name, sizeof(a->name), "w%u", agent);
    later(sim, draw(sim, 0, 1000), ON_AGENT_CONNECT, agent, a->life, 0);
}

void agent_connect(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (sim->now_us < a->blocked_us) {
        later(sim, a->blocked_us - sim->now_us, ON_AGENT_CONNECT, agent, a->life, 0);
        return;
    }
    link_open(sim, agent);
    agent_step(sim, agent, &(struct agent_event){.type = AGENT_EVENT_LINK_UP}, NULL);
}

static void agent_die(struct sim *sim, uint32_t agent, uint64_t notice_us, uint64_t back_us)
{
    struct agent *a = &sim->agents[agent];
    a->alive = false;
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (a->held[i] != NOBODY) {
            process_exit(sim, a->held[i], 0, 9);
        }
    }
    if (a->link != NOBODY) {
        link_cut(sim, a->link, notice_us);
    }
    later(sim, back_us, ON_AGENT_BOOT, agent, a->life, 0);
}

/* The whole host goes, with its tasks; it comes back as another life of the same name. */
void agent_crash(struct sim *sim, uint32_t agent)
{
    trace(sim, "host of w%u crashes", agent);
    agent_touch(sim, agent);
    agent_die(sim, agent, 3000000, draw(sim, 100000, 15000000));
}

static uint32_t held(const struct sim *sim, const struct agent *agent, struct task_ref ref)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (agent->held[i] != NOBODY && task_ref_equal(sim->processes[agent->held[i]].ref, ref)) {
            return agent->held[i];
        }
    }
    return NOBODY;
}

static void release_held(struct agent *agent, uint32_t process)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (agent->held[i] == process) {
            agent->held[i] = NOBODY;
        }
    }
}

/* ---- actions ---- */

static void prepare(struct sim *sim, uint32_t agent, struct task_ref ref)
{
    struct agent *a = &sim->agents[agent];
    struct job *job = job_by_id(sim, ref.job);
    CADRE_ASSERT(job != NULL);
    if (sim->process_count == sim->process_capacity) {
        sim->process_capacity = sim->process_capacity == 0 ? 1024 : 2 * sim->process_capacity;
        sim->processes = realloc(sim->processes, sim->process_capacity * sizeof(*sim->processes));
        CADRE_ASSERT(sim->processes != NULL);
    }
    uint32_t index = sim->process_count++;
    struct process *process = &sim->processes[index];
    memset(process, 0, sizeof(*process));
    process->ref = ref;
    process->agent = agent;
    process->life = a->life;
    process->job = (uint32_t)(job - sim->jobs);
    process->mesh = NOBODY;
    process->doomed = POSITION_NONE;
    process->stalled_at = POSITION_NONE;
    process->variables = prng_next(&sim->prng);
    job->processes[ref.slot] = index;
    uint32_t place = 0;
    while (a->held[place] != NOBODY) {
        place++;
        CADRE_ASSERT(place < AGENT_HELD_MAX);
    }
    a->held[place] = index;
    later(sim, draw(sim, 1000, 50000), ON_PREPARED, agent, a->life, index);
}

static void fill_hello(struct sim *sim, uint32_t agent, struct agent_up *up, struct task_ref *refs)
{
    bool draining = up->hello.draining;
    const struct agent *a = &sim->agents[agent];
    size_t count = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_PLACES(sim->scenario.slots[agent]); i++) {
        if (agent_core_task(a->core, i, &view)) {
            refs[count++] = view.task;
        }
    }
    up->hello = (struct agent_hello){.protocol_version = AGENT_PROTOCOL_VERSION,
        .library_version = "virtual",
        .name = a->name,
        .host = a->name,
        .boot_nonce = a->boot_nonce,
        .slots = sim->scenario.slots[agent],
        .cpus = 1,
        .draining = draining && !mutant_acts(sim, MUTANT_DRAIN_UNTOLD),
        .tasks = refs,
        .task_count = count};
    sim->links[a->link].told_draining = draining;
}

static void send(struct sim *sim, uint32_t agent, struct agent_up *up)
{
    struct task_ref refs[AGENT_PLACES(SCENARIO_SLOTS_MAX)];
    const struct agent *a = &sim->agents[agent];
    if (a->link == NOBODY) {
        return;
    }
    if (up->type == AGENT_UP_HELLO) {
        fill_hello(sim, agent, up, refs);
    }
    if (up->type == AGENT_UP_ARRIVED) {
        if (up->arrived.applied > 0 && mutant_acts(sim, MUTANT_FED_LESS)) {
            up->arrived.digest[0]--;
        }
        const struct job *job = job_by_id(sim, up->arrived.job);
        if (job->plan->short_slot != NOBODY && up->arrived.wanted > job->plan->short_steps &&
            mutant_acts(sim, MUTANT_WANT_LOST)) {
            up->arrived.wanted = 0;
        }
        check_fed(sim, &up->arrived);
        const struct cursor *cursor = &up->arrived.cursor;
        bool room = cursor->steps == 0 || up->arrived.up_to - cursor->first < cursor->steps;
        if (room && mutant_acts(sim, MUTANT_ABSENT_ARRIVAL)) {
            up->arrived.up_to++;
        }
    }
    if (up->type == AGENT_UP_TASK_GONE && up->gone.exit.signal + up->gone.exit.code != 0 &&
        mutant_acts(sim, MUTANT_EXIT_WHITEWASHED)) {
        up->gone.exit = (struct task_exit){0};
    }
    if (sim->tracing && up->type != AGENT_UP_HEARTBEAT) {
        char text[SIM_TRACE_BYTES];
        trace(sim, "%s -> c: %s", a->name, trace_up(up, text));
    }
    send_up(sim, a->link, up);
}

static void leave(struct sim *sim, uint32_t agent)
{
    trace(sim, "w%u has drained and leaves", agent);
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        uint32_t process = sim->agents[agent].held[i];
        if (process != NOBODY && sim->processes[process].program != PROGRAM_DEAD) {
            broken(sim, "LEFT", "w%u leaves while a task of it runs", agent);
        }
    }
    agent_die(sim, agent, 1000, draw(sim, 1000000, 5000000));
}

static void carry_out(
    struct sim *sim, uint32_t agent, struct agent_action *action, struct message *message)
{
    struct agent *a = &sim->agents[agent];
    uint32_t index = held(sim, a, action->task);
    switch (action->type) {
    case AGENT_ACTION_SEND:
        send(sim, agent, &action->up);
        break;
    case AGENT_ACTION_PREPARE:
        prepare(sim, agent, action->task);
        break;
    case AGENT_ACTION_SPAWN:
        later(sim, draw(sim, 500, 5000), ON_SPAWNED, agent, a->life, index);
        break;
    case AGENT_ACTION_SIGNAL:
        if (sim->processes[index].program != PROGRAM_DEAD &&
            mutant_acts(sim, MUTANT_EXIT_INVENTED)) {
            sim->processes[index].program = PROGRAM_FORMS; /* it hangs there for ever */
            later(sim, 10, ON_EXITED, agent, a->life, index);
        } else if (action->signal != 9 || !mutant_acts(sim, MUTANT_KILL_LOST)) {
            process_signal(sim, index, action->signal);
        }
        break;
    case AGENT_ACTION_COLLECT:
        if (sim->processes[index].program == PROGRAM_UNBORN) {
            sim->processes[index].program = PROGRAM_DEAD; /* stopped before it started */
        }
        later(sim, draw(sim, 100, 200000), ON_COLLECTED, agent, a->life, index);
        break;
    case AGENT_ACTION_TELL: {
        struct process *process = &sim->processes[index];
        uint64_t at_us = sim->now_us + draw(sim, 5, 100);
        process->down_last_us = at_us > process->down_last_us ? at_us : process->down_last_us;
        message->references++;
        later_with(
            sim, process->down_last_us, ON_FRAME_DOWN, process->socket, a->life, index, message);
        break;
    }
    case AGENT_ACTION_REFUSE:
        broken(sim, "REFUSED", "a correct task was refused: %s", action->text);
        break;
    case AGENT_ACTION_FORGET:
        release_held(a, index);
        break;
    case AGENT_ACTION_LEAVE:
        leave(sim, agent);
        break;
    }
}

void agent_step(struct sim *sim, uint32_t agent, struct agent_event *event, struct message *message)
{
    struct agent *a = &sim->agents[agent];
    event->now_us = sim->now_us;
    sim->agent_actions.count = 0;
    agent_core_step(a->core, event, &sim->agent_actions);
    check_cores(sim, agent, false);
    for (size_t i = 0; i < sim->agent_actions.count && a->alive; i++) {
        carry_out(sim, agent, &sim->agent_actions.items[i], message);
    }
    uint64_t wake_us = agent_core_wake_us(a->core);
    if (a->alive && wake_us < a->tick_at_us) {
        a->tick_at_us = wake_us;
        later_with(sim, wake_us, ON_AGENT_TICK, agent, a->life, 0, NULL);
    }
}

/* ---- what its processes do ---- */

static void prepared(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct job *job = &sim->jobs[process->job];
    struct agent_event event = {.type = AGENT_EVENT_PREPARED, .task = process->ref};
    if (job->plan->death == DEATH_PREPARE && job->plan->death_slot == process->ref.slot) {
        job->died = true;
        process->program = PROGRAM_DEAD;
        event.type = AGENT_EVENT_FAILED;
        event.exit = (struct task_exit){.code = 127, .text = "no such program"};
    }
    agent_step(sim, process->agent, &event, NULL);
}

static void exited(struct sim *sim, uint32_t index)
{
    struct task_ref ref = sim->processes[index].ref;
    uint32_t agent = sim->processes[index].agent;
    agent_step(
        sim, agent, &(struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = ref}, NULL);
    agent_step(sim, agent,
        &(struct agent_event){
            .type = AGENT_EVENT_EXITED, .task = ref, .exit = sim->processes[index].exit},
        NULL);
}

static void collected(struct sim *sim, uint32_t index)
{
    uint32_t agent = sim->processes[index].agent;
    if (!agent_core_linked(sim->agents[agent].core)) {
        later(sim, 50000, ON_COLLECTED, agent, sim->agents[agent].life, index);
        return; /* nobody to ship its log to */
    }
    agent_step(sim, agent,
        &(struct agent_event){.type = AGENT_EVENT_COLLECTED,
            .task = sim->processes[index].ref,
            .code = CADRE_OK,
            .text = ""},
        NULL);
}

/* Without a message: its socket was closed. */
static void frame_up(struct sim *sim, const struct process *process, const struct message *message)
{
    struct agent_event event = {.type = AGENT_EVENT_TASK_CLOSED, .task = process->ref};
    if (message != NULL) {
        event.type = AGENT_EVENT_TASK_UP;
        event.up = &message->task_up;
    }
    agent_step(sim, process->agent, &event, NULL);
}

void agent_of_process(struct sim *sim, const struct happening *happening)
{
    uint32_t index = (uint32_t)happening->n;
    struct process *process = &sim->processes[index];
    const struct agent *a = &sim->agents[process->agent];
    if (!a->alive || a->life != happening->b) {
        return;
    }
    switch (happening->type) {
    case ON_PREPARED:
        prepared(sim, index);
        break;
    case ON_SPAWNED:
        process_spawned(sim, index);
        agent_step(sim, process->agent,
            &(struct agent_event){.type = AGENT_EVENT_SPAWNED, .task = process->ref, .pid = index},
            NULL);
        check_running(sim, process->agent);
        break;
    case ON_EXITED:
        exited(sim, index);
        break;
    case ON_COLLECTED:
        collected(sim, index);
        break;
    case ON_FRAME_UP:
        frame_up(sim, process, happening->message);
        break;
    default:
        CADRE_ASSERT(false);
    }
}
