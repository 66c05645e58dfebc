/* SPDX-License-Identifier: Apache-2.0
 * A run: one happening after the other, in the order of virtual time, until every job has ended and
 * nothing is left. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

/* After the last job has ended, what is left over may take so long to go. */
#define SETTLE_US (2 * SCENARIO_OUTAGE_US)

uint64_t draw(struct sim *sim, uint64_t low, uint64_t high)
{
    return low + prng_below(&sim->prng, high - low + 1);
}

void later_with(struct sim *sim, uint64_t at_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n, struct message *message)
{
    queue_put(&sim->queue, &(struct happening){.at_us = at_us > sim->now_us ? at_us : sim->now_us,
                               .type = type,
                               .a = a,
                               .b = b,
                               .n = n,
                               .message = message});
}

void later(struct sim *sim, uint64_t delay_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n)
{
    later_with(sim, sim->now_us + delay_us, type, a, b, n, NULL);
}

/* ---- clients and faults ---- */

static void submit(struct sim *sim, uint32_t index)
{
    struct job *job = &sim->jobs[index];
    sim->coordinator.submitting = index;
    job->call = ++sim->calls;
    coordinator_step(sim,
        &(struct core_event){.type = CORE_EVENT_SUBMIT,
            .submit = {
                .call = {job->call}, .tasks = job->plan->tasks, .priority = job->plan->priority}});
    sim->coordinator.submitting = NOBODY;
}

static void cancel(struct sim *sim, uint32_t index)
{
    const struct job *job = &sim->jobs[index];
    if (job->answered && job->id.n != 0) {
        coordinator_step(
            sim, &(struct core_event){.type = CORE_EVENT_CANCEL,
                     .cancel = {.call = {UINT32_MAX + (uint64_t)index}, .job = job->id}});
    }
}

static void drain(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    if (!a->alive || a->draining) {
        return;
    }
    trace(sim, "w%u is told to drain", agent);
    agent_touch(sim, agent);
    a->draining = true;
    agent_step(sim, agent, &(struct agent_event){.type = AGENT_EVENT_DRAIN}, NULL);
}

static void fault(struct sim *sim, const struct scenario_fault *what)
{
    struct agent *a = &sim->agents[what->agent];
    switch (what->kind) {
    case FAULT_BLINK:
        a->blocked_us = sim->now_us + draw(sim, 0, SCENARIO_BLINK_US / 2);
        if (a->alive && a->link != NOBODY) {
            link_cut(sim, a->link, SCENARIO_BLINK_US / 4);
        }
        break;
    case FAULT_OUTAGE:
        trace(sim, "w%u is cut off", what->agent);
        agent_touch(sim, what->agent);
        a->blocked_us = sim->now_us + SCENARIO_OUTAGE_US;
        if (a->alive && a->link != NOBODY) {
            link_cut(sim, a->link, SCENARIO_LEASE_US);
        }
        break;
    case FAULT_HOST:
        if (a->alive) {
            agent_crash(sim, what->agent);
        }
        break;
    case FAULT_DRAIN:
        drain(sim, what->agent);
        break;
    case FAULT_COORDINATOR:
        coordinator_crash(sim);
        break;
    }
}

/* ---- deliveries ---- */

static void coordinator_hears(struct sim *sim, uint32_t index, const struct message *message)
{
    const struct link *link = &sim->links[index];
    if (link->cut || !link->coordinator_open) {
        return;
    }
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_AGENT_UP,
                              .agent = {.link = {index + 1}, .up = &message->up}});
}

static void coordinator_link_down(struct sim *sim, uint32_t index)
{
    struct link *link = &sim->links[index];
    bool was_refused = !link->coordinator_open;
    link->coordinator_open = false;
    if (!was_refused) {
        coordinator_step(
            sim, &(struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {index + 1}});
    }
}

/* The link that its daemon has now; NULL: it is of the past. */
static struct agent *agent_of_link(struct sim *sim, uint32_t index)
{
    struct link *link = &sim->links[index];
    struct agent *a = &sim->agents[link->agent];
    return a->alive && a->life == link->life && a->link == index ? a : NULL;
}

static void agent_hears(struct sim *sim, uint32_t index, struct message *message)
{
    const struct link *link = &sim->links[index];
    if (link->cut || agent_of_link(sim, index) == NULL) {
        return;
    }
    if (sim->tracing) {
        char text[SIM_TRACE_BYTES];
        trace(sim, "c -> w%u: %s", link->agent, trace_down(&message->down, text));
    }
    agent_step(sim, link->agent,
        &(struct agent_event){.type = AGENT_EVENT_DOWN, .down = &message->down}, message);
}

static void agent_link_down(struct sim *sim, uint32_t index)
{
    struct link *link = &sim->links[index];
    struct agent *a = agent_of_link(sim, index);
    link->agent_open = false;
    if (a == NULL) {
        return;
    }
    a->link = NOBODY;
    if (!link->cut) {
        link_cut(sim, index, 1000);
    }
    agent_step(sim, link->agent, &(struct agent_event){.type = AGENT_EVENT_LINK_DOWN}, NULL);
    later(sim, draw(sim, 10000, 500000), ON_AGENT_CONNECT, link->agent, a->life, 0);
}

static void frame_down(struct sim *sim, const struct happening *happening)
{
    if (sim->processes[happening->n].socket != happening->a) {
        return; /* it went down with its connection */
    }
    process_hear(sim, (uint32_t)happening->n, &happening->message->down.tell.down);
}

static void agent_happens(struct sim *sim, const struct happening *happening)
{
    struct agent *a = &sim->agents[happening->a];
    if (happening->type == ON_AGENT_BOOT) {
        agent_boot(sim, happening->a);
        return;
    }
    if (!a->alive || a->life != happening->b) {
        return;
    }
    if (happening->type == ON_AGENT_CONNECT) {
        if (a->link == NOBODY) {
            agent_connect(sim, happening->a);
        }
    } else {
        a->tick_at_us = UINT64_MAX;
        agent_step(sim, happening->a, &(struct agent_event){.type = AGENT_EVENT_TICK}, NULL);
    }
}

static void dispatch(struct sim *sim, const struct happening *happening)
{
    bool current = happening->b == sim->coordinator.life;
    switch ((enum happening_type)happening->type) {
    case ON_SUBMIT:
        submit(sim, happening->a);
        break;
    case ON_CANCEL:
        cancel(sim, happening->a);
        break;
    case ON_FAULT:
        fault(sim, &sim->scenario.faults[happening->a]);
        break;
    case ON_COORDINATOR_UP:
        coordinator_hears(sim, happening->a, happening->message);
        break;
    case ON_COORDINATOR_LINK_DOWN:
        coordinator_link_down(sim, happening->a);
        break;
    case ON_COORDINATOR_TICK:
        if (current) {
            coordinator_tick(sim);
        }
        break;
    case ON_TURN_END:
        if (current) {
            coordinator_turn_end(sim);
        }
        break;
    case ON_AGENT_DOWN:
        agent_hears(sim, happening->a, happening->message);
        break;
    case ON_AGENT_LINK_DOWN:
        agent_link_down(sim, happening->a);
        break;
    case ON_AGENT_CONNECT:
    case ON_AGENT_TICK:
    case ON_AGENT_BOOT:
        agent_happens(sim, happening);
        break;
    case ON_PREPARED:
    case ON_SPAWNED:
    case ON_EXITED:
    case ON_COLLECTED:
    case ON_FRAME_UP:
        agent_of_process(sim, happening);
        break;
    case ON_FRAME_DOWN:
        frame_down(sim, happening);
        break;
    case ON_PROGRAM:
    case ON_SYNCED:
    case ON_COLLECTIVE_DONE:
    case ON_PEER_LEFT:
    case ON_APPLIED:
    case ON_RECONNECT:
    case ON_DEATH:
        program_happens(sim, happening);
        break;
    }
}

/* ---- the run ---- */

static void world_make(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    if (sim->agents == NULL) {
        sim->agents = calloc(SCENARIO_AGENTS_MAX, sizeof(*sim->agents));
        sim->agent_bytes = (agent_core_bytes(SCENARIO_SLOTS_MAX) + 63) / 64 * 64;
        sim->agent_memory = malloc(SCENARIO_AGENTS_MAX * sim->agent_bytes);
        sim->agent_actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(SCENARIO_SLOTS_MAX);
        sim->agent_actions.items =
            malloc(sim->agent_actions.capacity * sizeof(*sim->agent_actions.items));
        CADRE_ASSERT(sim->agents != NULL && sim->agent_memory != NULL);
        CADRE_ASSERT(sim->agent_actions.items != NULL);
    }
    memset(sim->agents, 0, SCENARIO_AGENTS_MAX * sizeof(*sim->agents));
    for (uint32_t i = 0; i < s->job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->plan = &s->jobs[i];
        job->mesh = NOBODY;
        job->processes = malloc(job->plan->tasks * sizeof(*job->processes));
        CADRE_ASSERT(job->processes != NULL);
        for (uint32_t slot = 0; slot < job->plan->tasks; slot++) {
            job->processes[slot] = NOBODY;
        }
        later(sim, job->plan->submit_us, ON_SUBMIT, i, 0, 0);
        if (job->plan->cancel_us != 0) {
            later(sim, job->plan->cancel_us, ON_CANCEL, i, 0, 0);
        }
    }
    coordinator_boot(sim);
    for (uint32_t i = 0; i < s->agents; i++) {
        sim->agents[i].link = NOBODY;
        later(sim, s->join_us[i], ON_AGENT_BOOT, i, 0, 0);
    }
    for (uint32_t i = 0; i < s->fault_count; i++) {
        later(sim, s->faults[i].at_us, ON_FAULT, i, 0, 0);
    }
}

static void world_reset(struct sim *sim)
{
    struct happening left;
    while (queue_take(&sim->queue, &left)) {
        message_drop(&sim->pool, left.message);
    }
    for (uint32_t i = 0; i < SCENARIO_JOBS_MAX; i++) {
        free(sim->jobs[i].processes);
    }
    memset(sim->jobs, 0, sizeof(sim->jobs));
    sim->queue.serial = 0;
    sim->now_us = 0;
    sim->events = 0;
    sim->digest = 0;
    sim->coordinator.life = 0;
    sim->link_count = 0;
    sim->process_count = 0;
    sim->mesh_count = 0;
    sim->member_count = 0;
    sim->job_max = 0;
    sim->calls = 0;
    sim->jobs_ended = 0;
    sim->links_broke = false;
    sim->mutated = false;
    sim->broken = NULL;
    sim->trace_count = 0;
}

static bool all_quiet(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->process_count; i++) {
        if (sim->processes[i].program != PROGRAM_DEAD) {
            return false;
        }
    }
    return true;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
    return prng_mix(digest ^ value);
}

static void run_happenings(struct sim *sim)
{
    struct happening next;
    uint64_t ended_us = UINT64_MAX;
    while (sim->broken == NULL && queue_take(&sim->queue, &next)) {
        CADRE_ASSERT(next.at_us >= sim->now_us);
        sim->now_us = next.at_us;
        sim->events++;
        sim->digest = mix(sim->digest, next.at_us << 8 ^ next.type);
        sim->digest = mix(sim->digest, next.n ^ (uint64_t)next.a << 32);
        dispatch(sim, &next);
        message_drop(&sim->pool, next.message);
        if (ended_us == UINT64_MAX && sim->jobs_ended == sim->scenario.job_count) {
            ended_us = sim->now_us;
        }
        bool over = sim->now_us >= SIM_LIMIT_US || sim->events >= SIM_EVENTS_MAX;
        bool settled = ended_us != UINT64_MAX && sim->now_us >= sim->scenario.heal_us &&
                       !sim->coordinator.turn_open &&
                       (all_quiet(sim) || sim->now_us >= ended_us + SETTLE_US);
        if (over || settled) {
            break;
        }
    }
}

void sim_run(struct sim *sim, uint64_t seed, uint32_t agents)
{
    jmp_buf panic;
    world_reset(sim);
    sim->seed = seed;
    sim->prng = (struct prng){.state = prng_mix(seed)};
    scenario_draw(&sim->scenario, &sim->prng, agents);
    sim->panic = &panic;
    if (setjmp(panic) == 0) {
        world_make(sim);
        run_happenings(sim);
        if (sim->broken == NULL) {
            check_outcomes(sim);
        }
        sim->digest = mix(sim->digest, core_digest(sim->coordinator.core));
        for (uint32_t i = 0; i < agents; i++) {
            if (sim->agents[i].alive) {
                sim->digest = mix(sim->digest, agent_core_digest(sim->agents[i].core));
            }
        }
        for (uint32_t i = 0; i < sim->process_count; i++) {
            sim->digest = mix(sim->digest, sim->processes[i].variables);
        }
    }
    sim->panic = NULL;
}

void sim_free(struct sim *sim)
{
    world_reset(sim);
    queue_free(&sim->queue);
    message_pool_free(&sim->pool);
    free(sim->coordinator.memory);
    free(sim->coordinator.turn.items);
    free(sim->agents);
    free(sim->agent_memory);
    free(sim->agent_actions.items);
    free(sim->links);
    free(sim->processes);
    free(sim->meshes);
    free(sim->members);
}
