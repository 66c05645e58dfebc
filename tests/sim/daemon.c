/* SPDX-License-Identifier: Apache-2.0
 * The shell of a worker daemon: its link, the virtual processes of its tasks, and its own end and
 * restart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "replicas/replicas.h"
#include "sim.h"

/* Processes of an older daemon of this host. */
static void end_orphans(struct sim *sim, struct agent *agent)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (agent->held[i] != SIM_NONE) {
            sim->processes[agent->held[i]].ending = true;
            process_exit(sim, agent->held[i], 0, 9);
        }
    }
}

/* Processes of an older daemon of this host are adopted, with their past; what it had not started
 * yet is dropped. */
static void adopt(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        struct process *process = a->held[i] == SIM_NONE ? NULL : &sim->processes[a->held[i]];
        if (process != NULL && !process->spawned) {
            /* The report that it could not start may be lost. */
            sim->jobs[process->job].touches += process->program == PROGRAM_DEAD ? 1 : 0;
            process->program = PROGRAM_DEAD;
            a->held[i] = SIM_NONE;
        } else if (process != NULL) {
            bool ended = process->program == PROGRAM_DEAD;
            const struct agent_down down = {.type = AGENT_DOWN_START,
                .start = {
                    .task = process->ref, .spec.ps_job = sim->jobs[process->job].plan->ps_job}};
            process->incarnation = a->incarnation;
            process->publish++;
            agent_step(sim, agent,
                &(struct agent_event){.type = AGENT_EVENT_ADOPTED,
                    .task = process->ref,
                    .pid = a->held[i],
                    .ended = ended,
                    .down = &down},
                NULL);
            if (ended || process->core.phase != 0) { /* else it connects when it starts */
                schedule(sim, draw(sim, 100, 300000), ended ? ON_EXITED : ON_RECONNECT, agent,
                    a->incarnation, a->held[i]);
            }
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
    bool adopts = a->incarnation > 0 && a->adopts;
    if (a->incarnation > 0 && !adopts) {
        end_orphans(sim, a);
        ps_forget(sim, agent, (struct job_id){0});
    }
    a->alive = true;
    a->draining = false;
    a->incarnation++;
    a->link = SIM_NONE;
    a->tick_at_us = UINT64_MAX;
    snprintf(a->name, sizeof(a->name), "w%u", agent);
    if (mutant_goes_on(sim, MUTANT_TERM_FORGOTTEN)) {
        a->seen = (struct term){0};
    }
    if (adopts) {
        adopt(sim, agent);
    } else {
        a->boot_nonce = prng_next(&sim->prng);
        for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
            a->held[i] = SIM_NONE;
        }
    }
    schedule(sim, draw(sim, 0, 1000), ON_AGENT_CONNECT, agent, a->incarnation, 0);
    if (sim->scenario.replicas > 0) {
        schedule(
            sim, draw(sim, 1, sim->scenario.log_lease_us), ON_AGENT_ASKS, agent, a->incarnation, 0);
    }
}

void agent_connect(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (sim->now_us < a->blocked_us) {
        schedule(sim, a->blocked_us - sim->now_us, ON_AGENT_CONNECT, agent, a->incarnation, 0);
        return;
    }
    uint32_t replica = sim->scenario.replicas > 0 ? replicas_choose(sim, agent) : 0;
    if (replica == SIM_NONE) {
        schedule(sim, draw(sim, 20000, 200000), ON_AGENT_CONNECT, agent, a->incarnation, 0);
        return;
    }
    link_open(sim, agent, replica);
    agent_step(sim, agent, &(struct agent_event){.type = AGENT_EVENT_LINK_UP}, NULL);
}

static void agent_die(struct sim *sim, uint32_t agent, uint64_t notice_us, uint64_t back_us)
{
    struct agent *a = &sim->agents[agent];
    a->alive = false;
    a->pause.on = false;
    a->adopts = false;
    if (a->link != SIM_NONE) {
        link_cut(sim, a->link, notice_us);
    }
    schedule(sim, back_us, ON_AGENT_BOOT, agent, a->incarnation, 0);
}

void agent_crash(struct sim *sim, uint32_t agent)
{
    trace(sim, "host of w%u crashes", agent);
    agent_touch(sim, agent);
    agent_die(sim, agent, 3000000, draw(sim, 100000, 15000000));
    end_orphans(sim, &sim->agents[agent]);
}

static void lose_sockets(struct sim *sim, const struct agent *a)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        uint32_t process = a->held[i];
        if (process != SIM_NONE && sim->processes[process].program != PROGRAM_DEAD &&
            sim->processes[process].core.phase != 0) {
            process_disconnect(sim, process, false);
        }
    }
}

void agent_kill(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    trace(sim, "daemon of w%u is killed", agent);
    agent_touch(sim, agent);
    agent_die(sim, agent, 2000, draw(sim, 10000, 15000000));
    lose_sockets(sim, a);
}

/* Mostly it is back before any job notices. */
void agent_restart(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    bool soon = !one_in(sim, 4);
    trace(sim, "daemon of w%u is started again", agent);
    if (!soon) {
        agent_touch(sim, agent);
    }
    agent_die(sim, agent, soon ? SCENARIO_BLINK_US / 4 : 2000,
        soon ? draw(sim, 0, SCENARIO_BLINK_US / 2) : draw(sim, 10000, 15000000));
    a->adopts = true;
    lose_sockets(sim, a);
}

static uint32_t held(const struct sim *sim, const struct agent *agent, struct task_ref ref)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (agent->held[i] != SIM_NONE && task_ref_equal(sim->processes[agent->held[i]].ref, ref)) {
            return agent->held[i];
        }
    }
    return SIM_NONE;
}

static void release_held(struct agent *agent, uint32_t process)
{
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        if (agent->held[i] == process) {
            agent->held[i] = SIM_NONE;
        }
    }
}

/* ---- actions ---- */

/* The checkpoint that it is started with is fetched before it is spawned. */
static void restore(const struct job *job, struct process *process, const struct agent_start *start)
{
    process->restores = start->restores;
    if (start->restores) {
        process->restore_position = start->checkpoint.position;
        process->restored =
            checkpoint_state(job, start->checkpoint.position, start->checkpoint.manifest_sha256);
    }
}

static void prepare(
    struct sim *sim, uint32_t agent, struct task_ref ref, const struct message *message)
{
    struct agent *a = &sim->agents[agent];
    struct job *job = job_by_id(sim, ref.job);
    CADRE_ASSERT(job != NULL);
    if (sim->scenario.gpus[agent] / sim->scenario.slots[agent] < job->plan->gpus) {
        broken(sim, "GPUS", "job %llu: task %u.%llu needs %u GPUs, w%u has %u for %u slots",
            (unsigned long long)ref.job.n, ref.slot, (unsigned long long)ref.incarnation,
            job->plan->gpus, agent, sim->scenario.gpus[agent], sim->scenario.slots[agent]);
    }
    uint32_t index = sim->process_count++;
    sim->processes =
        grown(sim->processes, &sim->process_capacity, sim->process_count, sizeof(*sim->processes));
    struct process *process = &sim->processes[index];
    memset(process, 0, sizeof(*process));
    process->ref = ref;
    process->agent = agent;
    process->incarnation = a->incarnation;
    process->job = (uint32_t)(job - sim->jobs);
    process->mesh = SIM_NONE;
    process->listed_in = SIM_NONE;
    process->stalled_at = POSITION_NONE;
    process->entered_at = POSITION_NONE;
    process->state.once = prng_next(&sim->prng); /* its program's initial state */
    if (message != NULL && message->down.type == AGENT_DOWN_START) {
        restore(job, process, &message->down.start);
        ps_prepared(sim, index, message->down.start.predecessor);
    }
    uint32_t newest = job->processes[ref.slot];
    if (newest != SIM_NONE && sim->processes[newest].ref.incarnation == ref.incarnation &&
        sim->processes[newest].listed_in != SIM_NONE) {
        broken(sim, "IDS", "job %llu: task %u.%llu was a member and is started once more",
            (unsigned long long)ref.job.n, ref.slot, (unsigned long long)ref.incarnation);
    }
    /* Until it is one, a START that may have been lost is sent again with the same number. */
    if (newest == SIM_NONE || sim->processes[newest].ref.incarnation <= ref.incarnation) {
        job->processes[ref.slot] = index;
    }
    uint32_t free_index = 0;
    while (a->held[free_index] != SIM_NONE) {
        free_index++;
        CADRE_ASSERT(free_index < AGENT_HELD_MAX);
    }
    a->held[free_index] = index;
    schedule(sim, draw(sim, 1000, 50000), ON_PREPARED, agent, a->incarnation, index);
}

static void fill_hello(struct sim *sim, uint32_t agent, struct agent_up *up, struct task_ref *refs)
{
    bool draining = up->hello.draining;
    const struct agent *a = &sim->agents[agent];
    size_t count = 0;
    struct agent_task_view view;
    for (uint32_t i = 0; i < AGENT_ENTRIES(sim->scenario.slots[agent]); i++) {
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
        .gpus = {.usable = sim->scenario.gpus[agent]},
        .draining = draining,
        .seen = a->seen,
        .orphan_us = SCENARIO_ORPHAN_US,
        .tasks = refs,
        .task_count = count};
    sim->links[a->link].sent_draining = draining;
}

static void mutate_relayed(struct sim *sim, struct agent_relay_up *relay_up)
{
    struct task_report *report = &relay_up->up.report;
    if (relay_up->up.type == TASK_UP_HELLO && relay_up->up.hello.generation.number > 0 &&
        (mutant_goes_on(sim, MUTANT_HELLO_WATERMARK_IGNORED) ||
            mutant_goes_on(sim, MUTANT_WATERMARK_OF_COPY))) {
        relay_up->up.hello.released = 0;
    }
    if (relay_up->up.type != TASK_UP_REPORT) {
        return;
    }
    if (!report->clean && mutant_acts(sim, MUTANT_DIRTY_SOURCE)) {
        report->clean = true;
        report->position++;
    }
    if (report->reason == REPORT_PEER_ERROR && report->clean &&
        mutant_goes_on(sim, MUTANT_UNORDERLY_AS_ORDERLY)) {
        report->reason = REPORT_FINISHED;
    }
}

/* Mutant: a hello is taken as a report of a frozen task (rule 6). */
static void send_as_report(struct sim *sim, uint32_t agent, const struct agent_relay_up *relay_up)
{
    struct agent_up up = {.type = AGENT_UP_RELAY, .relay_up = {.task = relay_up->task}};
    up.relay_up.up.type = TASK_UP_REPORT;
    up.relay_up.up.report = (struct task_report){.generation = relay_up->up.hello.generation,
        .position = relay_up->up.hello.position,
        .clean = true,
        .reason = REPORT_ABORT,
        .text = ""};
    send_up(sim, sim->agents[agent].link, &up);
}

/* Mutant: a message of one task is taken for another's: an older incarnation of a slot, or a
 * neighbour (rule 12). */
static void send_as_another(struct sim *sim, uint32_t agent, struct agent_relay_up *relay_up)
{
    const struct agent *a = &sim->agents[agent];
    for (uint32_t i = 0; i < AGENT_HELD_MAX; i++) {
        const struct process *other = a->held[i] == SIM_NONE ? NULL : &sim->processes[a->held[i]];
        bool peer = other != NULL && other->ref.job.n == relay_up->task.job.n &&
                    generation_equal(other->core.generation, relay_up->up.report.generation) &&
                    other->core.position < relay_up->up.report.position;
        if (peer && relay_up->up.report.clean && mutant_acts(sim, MUTANT_REPORT_OF_ANOTHER)) {
            relay_up->task = other->ref;
            return;
        }
    }
}

static void mutate_message(struct sim *sim, uint32_t agent, struct agent_relay_up *relay_up)
{
    if (relay_up->up.type == TASK_UP_HELLO && relay_up->up.hello.generation.number > 0 &&
        !relay_up->up.hello.frozen && mutant_goes_on(sim, MUTANT_HELLO_AS_REPORT)) {
        send_as_report(sim, agent, relay_up);
    } else if (relay_up->up.type == TASK_UP_REPORT) {
        send_as_another(sim, agent, relay_up);
    } else if (relay_up->up.type == TASK_UP_HELLO && relay_up->up.hello.plain &&
               mutant_goes_on(sim, MUTANT_OWN_STATE_GIVEN)) {
        relay_up->up.hello.plain = false; /* it is taken for one that others can go on from */
    }
}

static void mutate_up(struct sim *sim, uint32_t agent, struct agent_up *up)
{
    if (up->type == AGENT_UP_RELAY) {
        mutate_message(sim, agent, &up->relay_up);
    }
    if (up->type == AGENT_UP_ARRIVED) {
        mutant_arrived(sim, &up->arrived);
    } else if (up->type == AGENT_UP_RELAY) {
        mutate_relayed(sim, &up->relay_up);
    } else if (up->type == AGENT_UP_TASK_GONE && up->gone.exit.signal + up->gone.exit.code != 0 &&
               mutant_acts(sim, MUTANT_EXIT_WHITEWASHED)) {
        up->gone.exit = (struct task_exit){0};
    }
}

static void send(struct sim *sim, uint32_t agent, struct agent_up *up)
{
    struct task_ref refs[AGENT_ENTRIES(SCENARIO_SLOTS_MAX)];
    const struct agent *a = &sim->agents[agent];
    if (a->link == SIM_NONE) {
        return;
    }
    if (up->type == AGENT_UP_HELLO) {
        fill_hello(sim, agent, up, refs);
    }
    mutate_up(sim, agent, up);
    if (saving_is_refused(sim, up)) {
        trace(sim, "%s -> c: a part that is refused", a->name);
        return;
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
        if (process != SIM_NONE && sim->processes[process].program != PROGRAM_DEAD) {
            broken(sim, "LEFT", "w%u leaves while a task of it runs", agent);
        }
    }
    agent_die(sim, agent, 1000, draw(sim, 1000000, 5000000));
}

/* It uploads; a newer one replaces one that is under way. */
static void publish(struct sim *sim, uint32_t index, const struct task_part *part)
{
    struct process *process = &sim->processes[index];
    process->publish++;
    process->publishes = part->position;
    schedule(
        sim, draw(sim, 500, 100000), ON_PUBLISHED, process->publish, process->incarnation, index);
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
        prepare(sim, agent, action->task, message);
        break;
    case AGENT_ACTION_SPAWN:
        schedule(sim, draw(sim, 500, 5000), ON_SPAWNED, agent, a->incarnation, index);
        break;
    case AGENT_ACTION_SIGNAL:
        if (sim->processes[index].program != PROGRAM_DEAD &&
            mutant_acts(sim, MUTANT_EXIT_INVENTED)) {
            sim->processes[index].program = PROGRAM_FORMS; /* it hangs for ever */
            schedule(sim, 10, ON_EXITED, agent, a->incarnation, index);
        } else if (action->signal != 9 || !mutant_acts(sim, MUTANT_KILL_LOST)) {
            process_signal(sim, index, action->signal);
        }
        break;
    case AGENT_ACTION_COLLECT:
        if (sim->processes[index].program == PROGRAM_UNBORN) {
            sim->processes[index].program = PROGRAM_DEAD; /* stopped before it started */
        }
        schedule(sim, draw(sim, 100, 200000), ON_COLLECTED, agent, a->incarnation, index);
        break;
    case AGENT_ACTION_PUBLISH:
        publish(sim, index, action->part);
        break;
    case AGENT_ACTION_DELIVER: {
        struct process *process = &sim->processes[index];
        uint64_t at_us = sim->now_us + draw(sim, 5, 100);
        process->down_last_us = at_us > process->down_last_us ? at_us : process->down_last_us;
        message->references++;
        schedule_message(sim, process->down_last_us, ON_FRAME_DOWN, process->socket, a->incarnation,
            index, message);
        break;
    }
    case AGENT_ACTION_REFUSE:
        broken(sim, "REFUSED", "a correct task was refused: %s", action->text);
        break;
    case AGENT_ACTION_FORGET_JOB:
        ps_forget(sim, agent, action->task.job);
        break;
    case AGENT_ACTION_FORGET:
        release_held(a, index);
        break;
    case AGENT_ACTION_EXIT:
        leave(sim, agent);
        break;
    }
}

void agent_step(struct sim *sim, uint32_t agent, struct agent_event *event, struct message *message)
{
    struct agent *a = &sim->agents[agent];
    event->now_us = clock_shows(&a->clock, sim->now_us);
    sim->agent_actions.count = 0;
    agent_core_step(a->core, event, &sim->agent_actions);
    check_cores(sim, agent, false);
    for (size_t i = 0; i < sim->agent_actions.count && a->alive; i++) {
        carry_out(sim, agent, &sim->agent_actions.items[i], message);
    }
    uint64_t wake_us = clock_when(&a->clock, agent_core_wake_us(a->core));
    if (a->alive && wake_us < a->tick_at_us) {
        a->tick_at_us = wake_us;
        schedule_message(sim, wake_us, ON_AGENT_TICK, agent, a->incarnation, 0, NULL);
    }
}

/* ---- what its processes do ---- */

static bool fails_to_start(struct job *job, uint32_t slot)
{
    for (uint32_t i = 0; i < job->plan->death_count; i++) {
        const struct scenario_death *death = &job->plan->deaths[i];
        if (death->kind == DEATH_PREPARE && death->slot == slot &&
            (job->deaths_done >> i & 1) == 0) {
            job->deaths_done |= 1U << i;
            job->early_end = true;
            if (job->own_ends++ == 0) {
                job->first_end = slot;
                job->first_exit = (struct task_exit){.code = death->code};
                job->first_cause = CADRE_NOT_FOUND;
            }
            return true;
        }
    }
    return false;
}

static void prepared(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    struct agent_event event = {.type = AGENT_EVENT_PREPARED, .task = process->ref};
    if (process->program == PROGRAM_DEAD) {
        return;
    }
    if (fails_to_start(&sim->jobs[process->job], process->ref.slot)) {
        process->program = PROGRAM_DEAD;
        event.type = AGENT_EVENT_FAILED;
        event.exit = (struct task_exit){.code = 127, .text = "no such program"};
        event.code = CADRE_NOT_FOUND;
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
        schedule(sim, 50000, ON_COLLECTED, agent, sim->agents[agent].incarnation, index);
        return; /* no daemon to send its log */
    }
    agent_step(sim, agent,
        &(struct agent_event){.type = AGENT_EVENT_COLLECTED,
            .task = sim->processes[index].ref,
            .code = CADRE_OK,
            .text = ""},
        NULL);
}

static void published(struct sim *sim, uint32_t index, uint32_t attempt)
{
    struct process *process = &sim->processes[index];
    uint32_t agent = process->agent;
    if (attempt != process->publish || process->program == PROGRAM_DEAD) {
        return;
    }
    bool linked = agent_core_linked(sim->agents[agent].core);
    bool failed = !linked || one_in(sim, sim->scenario.publish_fails_in);
    if (!failed && !mutant_acts(sim, MUTANT_PUBLISHED_UNSTORED)) {
        process->stored |= UINT64_C(1) << process->publishes;
    }
    agent_step(sim, agent,
        &(struct agent_event){.type = AGENT_EVENT_PUBLISHED,
            .task = process->ref,
            .code = failed ? CADRE_UNAVAILABLE : CADRE_OK,
            .text = failed ? "the upload failed" : ""},
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
    if (!a->alive || a->incarnation != happening->b) {
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
    case ON_PUBLISHED:
        published(sim, index, happening->a);
        break;
    case ON_FRAME_UP:
        frame_up(sim, process, happening->message);
        break;
    default:
        CADRE_ASSERT(false);
    }
}
