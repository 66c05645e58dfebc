/* SPDX-License-Identifier: Apache-2.0
 * The faults of the cluster. */
#include "replicas/replicas.h"
#include "sim.h"
#include "truth.h"

/* Their daemons may have received the last message a lease before. */
#define SILENT_US (SCENARIO_ORPHAN_US - SCENARIO_LEASE_US)

void agent_touch(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    a->faulty = true;
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        bool here = false;
        for (uint32_t slot = 0; slot < job->plan->tasks && !here; slot++) {
            uint32_t process = job->processes[slot];
            here = process != SIM_NONE && sim->processes[process].agent == agent;
        }
        bool live = job->placed && !job->stored->ended;
        /* A task may be on its way to it. */
        job->touches += live && (here || !job->planned) ? 1 : 0;
    }
}

/* A daemon that connects meanwhile gets no message: it may be without the coordinator for longer
 * than it keeps tasks. */
void coordinator_is_away(struct sim *sim, uint64_t length_us)
{
    uint64_t until_us = sim->now_us + length_us;
    sim->away_us += length_us;
    sim->away_until_us = until_us > sim->away_until_us ? until_us : sim->away_until_us;
    for (uint32_t i = 0; i < sim->scenario.agents && length_us > SILENT_US; i++) {
        agent_touch(sim, i);
    }
}

/* Some process that runs; SIM_NONE: there is none. */
static uint32_t some_process(const struct sim *sim, uint32_t which)
{
    for (uint32_t i = 0; i < sim->process_count; i++) {
        uint32_t index = (which * 7 + i) % sim->process_count;
        const struct process *process = &sim->processes[index];
        bool attempts = process->program != PROGRAM_DEAD && process->core.phase != 0;
        if (attempts && !process->ending) {
            return index;
        }
    }
    return SIM_NONE;
}

/* ---- a task that is stopped but not dead ---- */

static void stop(struct sim *sim, uint32_t which)
{
    uint32_t index = some_process(sim, which);
    if (index == SIM_NONE || sim->processes[index].stopped) {
        return;
    }
    struct process *process = &sim->processes[index];
    trace(sim, "job %llu task %u.%llu is stopped", (unsigned long long)process->ref.job.n,
        process->ref.slot, (unsigned long long)process->ref.incarnation);
    process->stopped = true;
    sim->jobs[process->job].touches++;
    /* No task waits for one that is alone, so a second signal continues it in the end. */
    bool soon = prng_chance(&sim->prng, 2, 3);
    uint64_t length_us = soon ? draw(sim, 10000, 20000000) : draw(sim, 40000000, 90000000);
    sim->jobs[process->job].stopped_long |=
        length_us > SCENARIO_FORM_US / 2; /* other waits take some of it */
    schedule(sim, length_us, ON_CONTINUE, 0, 0, index);
}

bool process_parks(struct sim *sim, const struct happening *happening)
{
    const struct process *process = &sim->processes[happening->n];
    bool killed = happening->type == ON_DEATH && happening->a == 9;
    if (!process->stopped || process->program == PROGRAM_DEAD || killed) {
        return false;
    }
    uint32_t at = sim->parked_count++;
    sim->parked =
        grown(sim->parked, &sim->parked_capacity, sim->parked_count, sizeof(*sim->parked));
    sim->parked[at] = *happening;
    return true;
}

void process_continue(struct sim *sim, uint32_t index)
{
    struct process *process = &sim->processes[index];
    process->stopped = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sim->parked_count; i++) {
        if (sim->parked[i].n == index) {
            struct happening again = sim->parked[i];
            again.at_us = sim->now_us;
            queue_put(&sim->queue, &again);
        } else {
            sim->parked[kept++] = sim->parked[i];
        }
    }
    sim->parked_count = kept;
}

/* ---- the others ---- */

static void kill_task(struct sim *sim, uint32_t which)
{
    uint32_t index = some_process(sim, which);
    if (index != SIM_NONE) {
        schedule(sim, 0, ON_DEATH, 9, 0, index);
    }
}

/* Sent twice now and then: the second changes nothing. */
static void preempt(struct sim *sim, uint32_t which)
{
    uint32_t index = some_process(sim, which);
    if (index == SIM_NONE) {
        return;
    }
    struct process *process = &sim->processes[index];
    const struct task_preempt notice = {
        .stops = true, .grace_us = one_in(sim, 2) ? draw(sim, 50000, 20000000) : 0};
    trace(sim, "job %llu task %u has to leave its machine", (unsigned long long)process->ref.job.n,
        process->ref.slot);
    sim->jobs[process->job].touches++;
    sim->jobs[process->job].noticed = true;
    program_event(sim, index, &(struct task_event){.type = TASK_EVENT_PREEMPT, .preempt = &notice});
}

static void save(struct sim *sim, uint32_t which)
{
    uint32_t index = some_process(sim, which);
    if (index == SIM_NONE) {
        return;
    }
    const struct process *process = &sim->processes[index];
    if (one_in(sim, 2)) {
        const struct task_preempt notice = {.stops = false};
        program_event(
            sim, index, &(struct task_event){.type = TASK_EVENT_PREEMPT, .preempt = &notice});
    } else if (coordinator_takes_calls(sim)) {
        coordinator_step(
            sim, &(struct core_event){.type = CORE_EVENT_CHECKPOINT,
                     .checkpoint = {.call = {CANCEL_CALLS - 1}, .job = process->ref.job}});
    }
}

/* The other job kept one at half of the steps, at half of that, and so on. */
static bool origin_before(const struct job *job, struct core_checkpoint *ret_previous)
{
    uint64_t position = job->stored->origin.position / 2;
    if (position > 0) {
        *ret_previous = origin_of(job, position);
    }
    return position > 0;
}

/* The shell finds it when it is fetched, or read for a client. */
static void damage(struct sim *sim, uint32_t which)
{
    if (sim->coordinator.pause.on) {
        return;
    }
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[(which + i) % sim->scenario.job_count];
        const struct stored *stored = job->stored;
        bool origin = stored->checkpoint_count == 0 && stored->restores;
        if (!stored->known || stored->ended || (stored->checkpoint_count == 0 && !origin)) {
            continue;
        }
        struct core_event event = {.type = CORE_EVENT_CHECKPOINT_DAMAGED,
            .damaged = {.job = job->id,
                .position = stored->checkpoint.position,
                .is_origin = origin,
                .source = {job->id.n + 1000},
                .why = "a block does not have its hash",
                .remedy = "no copy of it is left"}};
        event.damaged.has_previous = origin ? origin_before(job, &event.damaged.previous)
                                            : stored_previous(stored, &event.damaged.previous);
        trace(sim, "job %llu: its checkpoint of %llu is damaged", (unsigned long long)job->id.n,
            (unsigned long long)event.damaged.position);
        job->touches++;
        job->damaged = true;
        job->saved_at = POSITION_NONE;
        coordinator_step(sim, &event);
        return;
    }
}

static void break_mesh(struct sim *sim, uint32_t which)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[(which + i) % sim->scenario.job_count];
        if (job->mesh != SIM_NONE && !job->stored->ended && !sim->meshes[job->mesh].broken) {
            trace(sim, "the mesh of job %llu breaks", (unsigned long long)job->id.n);
            job->breaks++;
            mesh_break(sim, &sim->meshes[job->mesh]);
            return;
        }
    }
}

static void mute(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (!a->alive || a->link == SIM_NONE) {
        return;
    }
    uint64_t most = prng_chance(&sim->prng, 1, 2) ? SCENARIO_LEASE_US / 2 : SCENARIO_OUTAGE_US;
    uint64_t length_us = draw(sim, 1000, most);
    bool up = prng_chance(&sim->prng, 1, 2);
    bool breaks = prng_chance(&sim->prng, 1, 2);
    agent_touch(sim, agent);
    link_mute(sim, a->link, up ? MUTE_UP : MUTE_DOWN, sim->now_us + length_us, breaks);
}

/* Of all hosts, or of each second one: no message arrives in one direction or in both, and no new
 * connection. Each side notices by itself, if at all; messages in flight arrive late or never. */
static void cut_coordinator(struct sim *sim, uint32_t which)
{
    uint64_t length_us = draw(sim, SCENARIO_CUT_LEAST_US, SCENARIO_CUT_MOST_US);
    enum mute ways = (enum mute)draw(sim, MUTE_UP, MUTE_BOTH);
    uint32_t stride = one_in(sim, 2) ? 1 : 2;
    trace(sim, "the coordinator is cut off from %s for %llu us",
        stride == 1 ? "all" : "half of the hosts", (unsigned long long)length_us);
    for (uint32_t agent = which % stride; agent < sim->scenario.agents; agent += stride) {
        struct agent *a = &sim->agents[agent];
        a->blocked_us = sim->now_us + length_us;
        agent_touch(sim, agent);
        if (a->alive && a->link != SIM_NONE && one_in(sim, 3)) {
            link_cut(sim, a->link, SCENARIO_LEASE_US);
        } else if (a->alive && a->link != SIM_NONE) {
            link_mute(sim, a->link, ways, a->blocked_us, one_in(sim, 2));
        }
    }
}

/* Between the coordinator and one host, or all at once: the messages of one side are lost, and
 * those of the other one arrive until the first has noticed the silence. */
static void cut_one_way(struct sim *sim, uint32_t which)
{
    uint64_t length_us = draw(sim, SCENARIO_CUT_LEAST_US, SCENARIO_CUT_MOST_US);
    enum mute way = one_in(sim, 2) ? MUTE_UP : MUTE_DOWN;
    bool all = one_in(sim, 2);
    for (uint32_t agent = 0; agent < sim->scenario.agents; agent++) {
        struct agent *a = &sim->agents[agent];
        if (!all && agent != which % sim->scenario.agents) {
            continue;
        }
        a->blocked_us = sim->now_us + length_us;
        agent_touch(sim, agent);
        if (a->alive && a->link != SIM_NONE) {
            link_lose(sim, a->link, way);
        }
    }
}

static void leave(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (!a->alive || a->draining || a->pause.on) {
        return;
    }
    trace(sim, "w%u gets SIGTERM and drains", agent);
    agent_touch(sim, agent);
    a->draining = true;
    agent_step(sim, agent, &(struct agent_event){.type = AGENT_EVENT_DRAIN}, NULL);
}

static void client_drains(struct sim *sim, uint32_t agent, bool ends)
{
    struct core_event event = {
        .type = CORE_EVENT_DRAIN, .drain = {.ends = ends, .drained = {.who = "operator"}}};
    for (uint32_t i = 0; i < sizeof(sim->agents[agent].name); i++) {
        event.drain.drained.worker[i] = sim->agents[agent].name[i];
    }
    coordinator_step(sim, &event);
}

/* A client drains the worker; its operator restarts the daemon, perhaps, and the client ends the
 * drain after that. */
static void drain(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (!a->alive || !coordinator_takes_calls(sim)) {
        return;
    }
    trace(sim, "a client drains w%u", agent);
    agent_touch(sim, agent);
    client_drains(sim, agent, false);
    if (one_in(sim, 2)) {
        schedule(sim, draw(sim, 500000, 6000000), ON_AGENT_SIGTERM, agent, a->incarnation, 0);
    }
    schedule(sim, draw(sim, 1000000, 20000000), ON_UNDRAIN, agent, 0, 0);
}

/* Until it is over for sure, because the client's request may be lost with the coordinator. */
void drain_is_over(struct sim *sim, uint32_t agent)
{
    const struct agent *a = &sim->agents[agent];
    if (!coordinator_takes_calls(sim)) {
        schedule(sim, 1000000, ON_UNDRAIN, agent, 0, 0); /* it is refused */
    } else if (a->drain_stored || core_drain_of(sim->coordinator.core, a->name) != NULL) {
        agent_touch(sim, agent);
        client_drains(sim, agent, true);
        schedule(sim, 1000000, ON_UNDRAIN, agent, 0, 0);
    } else if (sim->scenario.replicas > 0 && replicas_drained(sim, agent)) {
        schedule(sim, 1000000, ON_UNDRAIN, agent, 0, 0); /* it has no answer yet */
    }
}

/* Some of these take longer than a lease. */
static void fill_disk(struct sim *sim)
{
    uint64_t most_us = one_in(sim, 2) ? 2000000 : SCENARIO_CUT_MOST_US;
    uint64_t length_us = draw(sim, 1000, most_us);
    uint64_t until_us = sim->now_us + length_us;
    trace(sim, "the disk of the ledger is full until %llu", (unsigned long long)until_us);
    coordinator_is_away(sim, length_us);
    if (sim->disk.full_until_us < until_us) {
        sim->disk.full_until_us = until_us;
    }
}

static void cut_off(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    trace(sim, "w%u is cut off", agent);
    agent_touch(sim, agent);
    a->blocked_us = sim->now_us + SCENARIO_OUTAGE_US;
    if (a->alive && a->link != SIM_NONE) {
        link_cut(sim, a->link, SCENARIO_LEASE_US);
    }
}

static void blink(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    a->blocked_us = sim->now_us + draw(sim, 0, SCENARIO_BLINK_US / 2);
    if (a->alive && a->link != SIM_NONE) {
        link_cut(sim, a->link, SCENARIO_BLINK_US / 4);
    }
}

void fault_happens(struct sim *sim, enum fault_kind kind, uint32_t which)
{
    uint32_t agent = which % sim->scenario.agents;
    switch (kind) {
    case FAULT_BLINK:
        blink(sim, agent);
        break;
    case FAULT_OUTAGE:
        cut_off(sim, agent);
        break;
    case FAULT_MUTE:
        mute(sim, agent);
        break;
    case FAULT_HOST:
        if (sim->agents[agent].alive) {
            agent_crash(sim, agent);
        }
        break;
    case FAULT_DAEMON:
        if (sim->agents[agent].alive) {
            agent_kill(sim, agent);
        }
        break;
    case FAULT_KILL:
        kill_task(sim, which);
        break;
    case FAULT_STOP:
        stop(sim, which);
        break;
    case FAULT_MESH:
        break_mesh(sim, which);
        break;
    case FAULT_DRAIN:
        drain(sim, agent);
        break;
    case FAULT_SIGTERM:
        leave(sim, agent);
        break;
    case FAULT_COORDINATOR:
        coordinator_crash(sim, false);
        break;
    case FAULT_TAIL:
        coordinator_crash(sim, true);
        break;
    case FAULT_PREEMPT:
        preempt(sim, which);
        break;
    case FAULT_SAVE:
        save(sim, which);
        break;
    case FAULT_DAMAGE:
        damage(sim, agent);
        break;
    case FAULT_RESTART:
        if (sim->agents[agent].alive) {
            agent_restart(sim, agent);
        }
        break;
    case FAULT_CUT:
        cut_coordinator(sim, which);
        break;
    case FAULT_FULL:
        fill_disk(sim);
        break;
    case FAULT_DISK:
        sim->disk.fails = true;
        break;
    case FAULT_ONE_WAY:
        cut_one_way(sim, which);
        break;
    case FAULT_PAUSE:
        pause_begins(sim, which);
        break;
    case FAULT_SECOND:
        second_begins(sim);
        break;
    case FAULT_SUPERSEDE:
        supersede_begins(sim);
        break;
    case FAULT_JOIN:
        if (sim->agents[agent].incarnation == 0) {
            agent_boot(sim, agent);
        }
        break;
    default: /* of several coordinators: fault_replicas.c */
        break;
    }
}
