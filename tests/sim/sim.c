/* SPDX-License-Identifier: Apache-2.0
 * A run: one event after the other, in the order of virtual time, until every job has ended and
 * nothing is left. main.c calls it. */
#include "sim.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "replicas/replicas.h"

/* The longest time that what is left over may take to end after the last job. */
#define SETTLE_US (3 * SCENARIO_OUTAGE_US)

uint64_t draw(struct sim *sim, uint64_t low, uint64_t high)
{
    return low + prng_uniform(&sim->prng, high - low + 1);
}

bool one_in(struct sim *sim, uint32_t n)
{
    return n != 0 && prng_chance(&sim->prng, 1, n);
}

void *grown(void *items, uint32_t *capacity, uint32_t needed, size_t size)
{
    if (needed <= *capacity) {
        return items;
    }
    while (*capacity < needed) {
        *capacity = *capacity == 0 ? 64 : 2 * *capacity;
    }
    items = realloc(items, *capacity * size);
    CADRE_ASSERT(items != NULL);
    return items;
}

void schedule_message(struct sim *sim, uint64_t at_us, enum happening_type type, uint32_t a,
    uint32_t b, uint64_t n, struct message *message)
{
    queue_put(&sim->queue, &(struct happening){.at_us = at_us > sim->now_us ? at_us : sim->now_us,
                               .type = type,
                               .a = a,
                               .b = b,
                               .n = n,
                               .message = message});
}

void schedule(struct sim *sim, uint64_t delay_us, enum happening_type type, uint32_t a, uint32_t b,
    uint64_t n)
{
    schedule_message(sim, sim->now_us + delay_us, type, a, b, n, NULL);
}

/* ---- deliveries ---- */

/* A decision of this turn before the message is recorded at the end of the turn. */
static void agent_is_alive(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    uint64_t silent_us = coordinator_now(sim) - a->last_seen_us;
    if (silent_us > a->silent_us || silent_us > sim->scenario.turn_us) {
        a->silent_us = silent_us;
    }
    a->last_seen_us = coordinator_now(sim);
}

/* As the coordinator has it. */
static bool is_link_of(const struct sim *sim, uint32_t agent, uint32_t index)
{
    struct core_worker_view view;
    return core_worker_named(sim->coordinator.core, sim->agents[agent].name, &view) &&
           view.link.n == index + 1;
}

/* Planted: while the coordinator has another open link of this worker, which is dead, messages on
 * this one are dropped. */
static bool keeps_half_open(struct sim *sim, uint32_t agent, uint32_t but)
{
    if (sim->mutant != MUTANT_HALF_OPEN_KEPT) {
        return false; /* a walk over all links for each message costs too much */
    }
    bool open = false;
    for (uint32_t i = 0; i < but && !open; i++) {
        const struct link *link = &sim->links[i];
        open = link->agent == agent && link->coordinator_open && !link->cut && !link->second &&
               (link->lost_up || link->lost_down);
    }
    return open && mutant_goes_on(sim, MUTANT_HALF_OPEN_KEPT);
}

static void coordinator_receive(struct sim *sim, uint32_t index, const struct message *message)
{
    const struct link *link = &sim->links[index];
    if (link->cut || !link->coordinator_open) {
        return;
    }
    uint32_t agent = link->agent;
    if (link->second) {
        second_receive(sim, index, &message->up);
        return;
    }
    if (keeps_half_open(sim, agent, index)) {
        return;
    }
    bool serves = sim->scenario.replicas > 0 ? replica_may_serve(sim, index, &message->up)
                                             : coordinator_may_serve(sim, index, &message->up);
    if (!serves) {
        return;
    }
    agent_is_alive(sim, agent); /* also when the core has closed the link: it was unread */
    lie_receives(sim, &message->up);
    coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_AGENT_UP,
                              .agent = {.link = {index + 1}, .up = &message->up}});
}

static void coordinator_link_down(struct sim *sim, uint32_t index)
{
    struct link *link = &sim->links[index];
    bool was_refused = !link->coordinator_open;
    link->coordinator_open = false;
    if (!was_refused && !link->second) {
        if (is_link_of(sim, link->agent, index)) {
            agent_is_alive(sim, link->agent); /* its lease begins again */
        }
        coordinator_step(
            sim, &(struct core_event){.type = CORE_EVENT_LINK_DOWN, .link_down = {index + 1}});
    }
}

/* The link that its daemon has now; NULL: it is an old one. */
static struct agent *agent_of_link(struct sim *sim, uint32_t index)
{
    struct link *link = &sim->links[index];
    struct agent *a = &sim->agents[link->agent];
    return a->alive && a->incarnation == link->incarnation && a->link == index ? a : NULL;
}

/* Planted: it takes what comes on the link to an older leader as well. */
static bool takes(struct sim *sim, uint32_t index)
{
    const struct agent *a = &sim->agents[sim->links[index].agent];
    bool lives = a->alive && a->incarnation == sim->links[index].incarnation;
    return agent_of_link(sim, index) != NULL ||
           (lives && a->link != SIM_NONE && mutant_goes_on(sim, MUTANT_TERM_UNLOOKED));
}

static void agent_receive(struct sim *sim, uint32_t index, struct message *message)
{
    const struct link *link = &sim->links[index];
    if (link->cut || !takes(sim, index)) {
        return;
    }
    if (sim->tracing) {
        char text[SIM_TRACE_BYTES];
        trace(sim, "c -> w%u: %s", link->agent, trace_down(&message->down, text));
    }
    if (message->down.type == AGENT_DOWN_WELCOME &&
        !agent_accepts_term(sim, link->agent, &message->down.welcome.term)) {
        link_cut(sim, index, 1000);
        return;
    }
    if (sim->scenario.replicas > 0) {
        check_kept(sim, link->agent, message);
    }
    if (message->down.type == AGENT_DOWN_START &&
        agent_core_linked(sim->agents[link->agent].core)) {
        check_started_on(sim, link->agent, message->down.start.task);
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
    a->link = SIM_NONE;
    if (!link->cut && !link->lost_up && !link->lost_down &&
        !mutant_goes_on(sim, MUTANT_TERM_UNLOOKED)) {
        link_cut(sim, index, 1000);
    }
    agent_step(sim, link->agent, &(struct agent_event){.type = AGENT_EVENT_LINK_DOWN}, NULL);
    schedule(sim, draw(sim, 10000, 500000), ON_AGENT_CONNECT, link->agent, a->incarnation, 0);
}

static void unmute(struct sim *sim, uint32_t index, bool breaks)
{
    struct link *link = &sim->links[index];
    link->mute_up = false;
    link->mute_down = false;
    if (breaks) {
        link_cut(sim, index, 1000);
    }
}

static void agent_happens(struct sim *sim, const struct happening *happening)
{
    struct agent *a = &sim->agents[happening->a];
    if (happening->type == ON_AGENT_BOOT) {
        if (!a->alive && a->incarnation == happening->b) {
            agent_boot(sim, happening->a);
        }
        return;
    }
    bool still = happening->type == ON_AGENT_SIGTERM && a->adopts;
    if (still && (!a->alive || a->incarnation != happening->b)) {
        schedule(sim, 500000, ON_AGENT_SIGTERM, happening->a, a->incarnation,
            0); /* of the next incarnation, too */
        return;
    }
    if (!a->alive || a->incarnation != happening->b) {
        return;
    }
    if (happening->type == ON_AGENT_CONNECT) {
        if (a->link == SIM_NONE) {
            agent_connect(sim, happening->a);
        }
    } else if (happening->type == ON_AGENT_SIGTERM) {
        fault_happens(sim, FAULT_SIGTERM, happening->a);
    } else {
        a->tick_at_us = UINT64_MAX;
        agent_step(sim, happening->a, &(struct agent_event){.type = AGENT_EVENT_TICK}, NULL);
    }
}

/* Only for the start of it that made the request. */
static void coordinator_happens(struct sim *sim, const struct happening *happening)
{
    if (happening->b != sim->coordinator.incarnation) {
        return;
    }
    if (happening->type == ON_SYNC) {
        coordinator_sync(sim);
    } else if (happening->type == ON_TURN_END) {
        coordinator_turn_end(sim);
    } else {
        coordinator_tick(sim);
    }
}

static void dispatch(struct sim *sim, const struct happening *happening)
{
    switch ((enum happening_type)happening->type) {
    case ON_SUBMIT:
        client_submits(sim, happening->a);
        break;
    case ON_CANCEL:
        client_cancels(sim, happening->a);
        break;
    case ON_FAULT:
        fault_happens(
            sim, sim->scenario.faults[happening->a].kind, sim->scenario.faults[happening->a].agent);
        break;
    case ON_LIE:
        lie_happens(sim, (enum lie)happening->a, (uint32_t)happening->b);
        break;
    case ON_SYNC:
    case ON_COORDINATOR_TICK:
    case ON_TURN_END:
        coordinator_happens(sim, happening);
        break;
    case ON_UNMUTE:
        unmute(sim, happening->a, happening->b != 0);
        break;
    case ON_COORDINATOR_UP:
        coordinator_receive(sim, happening->a, happening->message);
        break;
    case ON_COORDINATOR_LINK_DOWN:
        coordinator_link_down(sim, happening->a);
        break;
    case ON_AGENT_DOWN:
        agent_receive(sim, happening->a, happening->message);
        break;
    case ON_AGENT_LINK_DOWN:
        agent_link_down(sim, happening->a);
        break;
    case ON_AGENT_CONNECT:
    case ON_AGENT_TICK:
    case ON_AGENT_BOOT:
    case ON_AGENT_SIGTERM:
        agent_happens(sim, happening);
        break;
    case ON_UNDRAIN:
        drain_is_over(sim, happening->a);
        break;
    case ON_RESUME:
        pause_ends(sim, happening->a, happening->b);
        break;
    case ON_SECOND:
        second_goes_on(sim);
        break;
    case ON_SUPERSEDE:
        supersede_goes_on(sim);
        break;
    default: /* replicas_take */
        break;
    case ON_MESH_STALL:
        mesh_stalls(sim, happening->a, happening->n);
        break;
    case ON_PREPARED:
    case ON_SPAWNED:
    case ON_EXITED:
    case ON_COLLECTED:
    case ON_PUBLISHED:
    case ON_FRAME_UP:
        agent_of_process(sim, happening);
        break;
    case ON_CONTINUE:
        process_continue(sim, (uint32_t)happening->n);
        break;
    case ON_FRAME_DOWN:
    case ON_PROGRAM:
    case ON_SYNCED:
    case ON_COLLECTIVE_DONE:
    case ON_PEER_LEFT:
    case ON_APPLIED:
    case ON_WAITS:
    case ON_WRITTEN:
    case ON_RECONNECT:
    case ON_TASK_TICK:
    case ON_DEATH:
        process_happens(sim, happening);
        break;
    }
}

/* ---- the run ---- */

static void make_agents(struct sim *sim)
{
    uint32_t count = sim->scenario.agents;
    if (sim->agent_capacity < count) {
        sim->agent_capacity = count;
        free(sim->agents);
        free(sim->agent_memory);
        sim->agents = calloc(count, sizeof(*sim->agents));
        sim->agent_bytes = (agent_core_bytes(SCENARIO_SLOTS_MAX) + 63) / 64 * 64;
        sim->agent_memory = malloc(count * sim->agent_bytes);
        CADRE_ASSERT(sim->agents != NULL && sim->agent_memory != NULL);
    }
    if (sim->agent_actions.items == NULL) {
        sim->agent_actions.capacity = AGENT_ACTIONS_PER_STEP_MAX(SCENARIO_SLOTS_MAX);
        sim->agent_actions.items =
            malloc(sim->agent_actions.capacity * sizeof(*sim->agent_actions.items));
        CADRE_ASSERT(sim->agent_actions.items != NULL);
    }
    memset(sim->agents, 0, count * sizeof(*sim->agents));
    for (uint32_t i = 0; i < count; i++) {
        sim->agents[i].link = SIM_NONE;
        sim->agents[i].clock.ppm = sim->scenario.ppm[i];
        schedule(sim, sim->scenario.join_us[i], ON_AGENT_BOOT, i, 0, 0);
    }
}

static void make_jobs(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        struct job *job = &sim->jobs[i];
        job->plan = &sim->scenario.jobs[i];
        job->mesh = SIM_NONE;
        job->first_end = SIM_NONE;
        job->saved_at = POSITION_NONE;
        job->failed_slot = SIM_NONE;
        job->processes = malloc(job->plan->tasks * sizeof(*job->processes));
        CADRE_ASSERT(job->processes != NULL);
        for (uint32_t slot = 0; slot < job->plan->tasks; slot++) {
            job->processes[slot] = SIM_NONE;
        }
        truth_make(job);
        schedule(sim, job->plan->submit_us, ON_SUBMIT, i, 0, 0);
        if (job->plan->cancel_us != 0) {
            schedule(sim, job->plan->cancel_us, ON_CANCEL, i, 0, 0);
        }
    }
}

static void world_make(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    make_jobs(sim);
    store_open(sim);
    lie_open(sim);
    sim->coordinator.clock = (struct machine_clock){.ppm = s->coordinator_ppm};
    sim->coordinator.pause = (struct pause){0};
    sim->away_us = 0;
    sim->away_until_us = 0;
    sim->second = (struct second){0};
    sim->owner = (struct owner){0};
    sim->coordinator.supersedes = false;
    if (s->replicas > 0) {
        make_agents(sim);
        replicas_open(sim);
    } else {
        coordinator_boot(sim);
        coordinator_step(sim, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE});
        make_agents(sim);
    }
    for (uint32_t i = 0; i < s->fault_count; i++) {
        schedule(sim, s->faults[i].at_us, ON_FAULT, i, 0, 0);
    }
}

static void world_reset(struct sim *sim)
{
    struct happening left;
    while (queue_take(&sim->queue, &left)) {
        message_drop(&sim->pool, left.message);
    }
    for (uint32_t i = 0; i < sim->parked_count; i++) {
        message_drop(&sim->pool, sim->parked[i].message);
    }
    message_drop(&sim->pool, sim->shared);
    sim->shared = NULL;
    replicas_close(sim);
    coordinator_drop_turn(sim);
    store_close(sim);
    for (uint32_t i = 0; i < SCENARIO_JOBS_MAX; i++) {
        free(sim->jobs[i].processes);
        members_sent_free(&sim->jobs[i].members_sent);
    }
    for (uint32_t i = 0; i < sim->process_count; i++) {
        layout_end(&sim->processes[i]);
    }
    memset(sim->jobs, 0, sizeof(sim->jobs));
    sim->queue.serial = 0;
    sim->now_us = 0;
    sim->paused_until_us = 0;
    sim->events = 0;
    sim->core_events = 0;
    sim->digest = 0;
    sim->coordinator.incarnation = 0;
    sim->link_count = 0;
    sim->process_count = 0;
    sim->memory_count = 0;
    sim->memory_nonce = 0;
    sim->parked_count = 0;
    sim->mesh_count = 0;
    sim->member_count = 0;
    sim->calls = 0;
    sim->jobs_ended = 0;
    sim->links_broke = false;
    sim->planned_us = 0;
    sim->broke_us = 0;
    sim->resumed_us = 0;
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
        for (size_t i = 0; i < sizeof(sim->placed) / sizeof(sim->placed[0]); i++) {
            if (sim->placed[i].at_event == sim->events) {
                fault_happens(sim, sim->placed[i].kind, sim->placed[i].which);
            }
        }
        if (pause_delays(sim, &next)) {
            continue;
        }
        bool own = next.type >= ON_FRAME_DOWN && next.type <= ON_DEATH;
        if (own && process_parks(sim, &next)) {
            continue;
        }
        bool several = sim->scenario.replicas > 0;
        if (!several || replicas_take(sim, &next)) {
            dispatch(sim, &next);
        }
        if (several) {
            replica_leaves(sim);
        }
        message_drop(&sim->pool, next.message);
        if (ended_us == UINT64_MAX && sim->jobs_ended == sim->scenario.job_count) {
            ended_us = sim->now_us;
        }
        bool over = sim->now_us >= SIM_LIMIT_US || sim->events >= SIM_EVENTS_MAX;
        bool settled = ended_us != UINT64_MAX && sim->now_us >= sim->scenario.heal_us &&
                       !sim->coordinator.pending_update_open &&
                       (!several || replicas_settled(sim)) &&
                       (all_quiet(sim) || sim->now_us >= ended_us + SETTLE_US);
        if (over || settled) {
            break;
        }
    }
}

static void digest_end(struct sim *sim)
{
    if (sim->coordinator.core != NULL) {
        sim->digest = mix(sim->digest, core_digest(sim->coordinator.core));
    }
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        if (sim->agents[i].alive) {
            sim->digest = mix(sim->digest, agent_core_digest(sim->agents[i].core));
        }
    }
    for (uint32_t i = 0; i < sim->process_count; i++) {
        sim->digest = mix(sim->digest, sim->processes[i].state.timeline);
    }
}

static void run(struct sim *sim)
{
    jmp_buf panic;
    sim->panic = &panic;
    if (setjmp(panic) == 0) {
        world_make(sim);
        run_happenings(sim);
        if (sim->scenario.replicas > 0) {
            replicas_end(sim);
        }
        if (sim->broken == NULL) {
            check_outcomes(sim);
        }
        digest_end(sim);
    }
    sim->panic = NULL;
}

static void set_seed(struct sim *sim, uint64_t seed)
{
    CADRE_ASSERT(TASK_STEPS_BEHIND_RUN >= 2 << 5); /* more make no difference in so short jobs */
    sim->seed = seed;
    sim->prng = (struct prng){.state = prng_mix(seed)};
    sim->behind_steps = UINT32_C(2) << prng_mix(~seed) % 6;
}

void sim_run_scenario(struct sim *sim, uint64_t seed)
{
    world_reset(sim);
    set_seed(sim, seed);
    run(sim);
}

void sim_run(struct sim *sim, uint64_t seed, uint32_t agents)
{
    world_reset(sim);
    set_seed(sim, seed);
    scenario_draw(&sim->scenario, &sim->prng, agents, scenario_world(seed));
    run(sim);
}

void sim_free(struct sim *sim)
{
    world_reset(sim);
    replicas_free(sim);
    queue_free(&sim->queue);
    message_pool_free(&sim->pool);
    free(sim->coordinator.memory);
    free(sim->coordinator.turn.items);
    free(sim->coordinator.placements);
    store_free(sim);
    free(sim->parked);
    free(sim->memories);
    free(sim->worker_agents);
    free(sim->agents);
    free(sim->agent_memory);
    free(sim->agent_actions.items);
    free(sim->links);
    free(sim->processes);
    free(sim->meshes);
    free(sim->members);
}
