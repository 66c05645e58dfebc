/* SPDX-License-Identifier: Apache-2.0
 * Machines and daemons that are paused: their events wait until they continue. A stopped process
 * then finds its clock far ahead; the clock of a suspended machine stopped with it. */
#include "replicas/replicas.h"
#include "sim.h"

static bool is_of_coordinator(enum happening_type type)
{
    switch (type) {
    case ON_SUBMIT:
    case ON_CANCEL:
    case ON_SYNC:
    case ON_UNDRAIN:
    case ON_COORDINATOR_UP:
    case ON_COORDINATOR_LINK_DOWN:
    case ON_COORDINATOR_TICK:
    case ON_TURN_END:
        return true;
    default:
        return false;
    }
}

/* The worker of the event; SIM_NONE: of none. */
static uint32_t agent_of(const struct sim *sim, const struct happening *happening)
{
    switch (happening->type) {
    case ON_AGENT_DOWN:
    case ON_AGENT_LINK_DOWN:
        return sim->links[happening->a].agent;
    case ON_AGENT_CONNECT:
    case ON_AGENT_TICK:
    case ON_AGENT_SIGTERM:
        return happening->a;
    default:
        return happening->type >= ON_PREPARED && happening->type <= ON_CONTINUE
                   ? sim->processes[happening->n].agent
                   : SIM_NONE;
    }
}

/* The daemon is paused, or its machine with all that runs there. */
static const struct pause *pause_of(const struct sim *sim, const struct happening *happening)
{
    static const struct pause none = {0};
    if (sim->scenario.replicas > 0) {
        const struct pause *its = replicas_pause_of(sim, happening);
        if (its != NULL || is_of_coordinator(happening->type)) {
            return its != NULL ? its : &none;
        }
    }
    if (is_of_coordinator(happening->type)) {
        return &sim->coordinator.pause;
    }
    uint32_t agent = agent_of(sim, happening);
    bool task = happening->type >= ON_FRAME_DOWN && happening->type <= ON_CONTINUE;
    return agent != SIM_NONE && (!task || sim->agents[agent].pause.suspended)
               ? &sim->agents[agent].pause
               : &none;
}

bool pause_delays(struct sim *sim, const struct happening *happening)
{
    if (sim->now_us > sim->paused_until_us) {
        return false;
    }
    const struct pause *pause = pause_of(sim, happening);
    if (pause->on) {
        struct happening again = *happening;
        again.at_us = pause->until_us;
        queue_put(&sim->queue, &again);
    }
    return pause->on;
}

static void begin(struct sim *sim, struct pause *pause, uint32_t agent, uint64_t length_us)
{
    *pause = (struct pause){.on = true,
        .number = pause->number + 1,
        .suspended = one_in(sim, 2),
        .since_us = sim->now_us,
        .until_us = sim->now_us + length_us};
    if (pause->until_us > sim->paused_until_us) {
        sim->paused_until_us = pause->until_us;
    }
    schedule(sim, length_us, ON_RESUME, agent, pause->number, 0);
}

static void coordinator_pauses(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    uint64_t most_us = one_in(sim, 2) ? SCENARIO_LEASE_US : SCENARIO_CUT_MOST_US;
    uint64_t length_us = draw(sim, 10000, most_us);
    begin(sim, &c->pause, SIM_NONE, length_us);
    coordinator_is_away(sim, length_us);
    trace(sim, "the coordinator%s is paused until %llu", c->pause.suspended ? "'s machine" : "",
        (unsigned long long)c->pause.until_us);
}

void pause_replica(struct sim *sim, uint32_t r, uint64_t length_us)
{
    struct pause *pause = &replica_of(sim, r)->pause;
    begin(sim, pause, SIM_NONE - 1 - r, length_us);
    trace(sim, "c%u%s is paused until %llu", r, pause->suspended ? "'s machine" : "",
        (unsigned long long)pause->until_us);
}

static void agent_pauses(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    uint64_t most_us = one_in(sim, 2) ? SCENARIO_LEASE_US : SCENARIO_CUT_MOST_US;
    uint64_t length_us = draw(sim, 10000, most_us);
    begin(sim, &a->pause, agent, length_us);
    agent_touch(sim, agent);
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        sim->jobs[i].stopped_long |= length_us > SCENARIO_FORM_US / 2;
    }
    trace(sim, "w%u%s is paused until %llu", agent, a->pause.suspended ? "'s machine" : "",
        (unsigned long long)a->pause.until_us);
}

void pause_begins(struct sim *sim, uint32_t which)
{
    uint32_t agent = which % sim->scenario.agents;
    if (sim->scenario.replicas == 0 && one_in(sim, 2)) {
        if (!sim->coordinator.pause.on) {
            coordinator_pauses(sim);
        }
    } else if (sim->agents[agent].alive && !sim->agents[agent].pause.on) {
        agent_pauses(sim, agent);
    }
}

void pause_ends(struct sim *sim, uint32_t agent, uint32_t number)
{
    struct pause *pause = agent == SIM_NONE ? &sim->coordinator.pause : &sim->agents[agent].pause;
    if (!pause->on || pause->number != number) {
        return; /* it was ended meanwhile */
    }
    pause->on = false;
    if (pause->suspended) {
        clock_paused(agent == SIM_NONE ? &sim->coordinator.clock : &sim->agents[agent].clock,
            pause->since_us, pause->until_us);
    }
    if (agent == SIM_NONE && !pause->suspended && mutant_goes_on(sim, MUTANT_PAUSE_UNSEEN)) {
        coordinator_catches_up(sim, pause->since_us);
    } else if (agent == SIM_NONE && one_in(sim, 2)) {
        coordinator_tick(sim); /* before it has read what arrived */
    }
}
