/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <string.h>

static uint64_t between(struct prng *prng, uint64_t low, uint64_t high)
{
    return low + prng_uniform(prng, high - low + 1);
}

static void draw_cluster(struct scenario *s, struct prng *prng)
{
    bool late = prng_chance(prng, 1, 3);
    for (uint32_t i = 0; i < s->agents; i++) {
        s->slots[i] = (uint32_t)between(prng, 1, SCENARIO_SLOTS_MAX);
        s->join_us[i] = between(prng, 0, late ? 2000000 : 1000);
        s->slots_total += s->slots[i];
    }
    static const uint64_t delays_us[] = {20, 200, 2000, 20000};
    s->delay_us = delays_us[prng_uniform(prng, 4)];
    s->jitter_us =
        prng_chance(prng, 1, 2) ? s->delay_us * between(prng, 1, 20) : s->delay_us / 4 + 1;
    s->turn_us = prng_chance(prng, 1, 2) ? between(prng, 10, 200) : between(prng, 1000, 20000);
    if (prng_chance(prng, 1, 12)) {
        s->turn_us = between(prng, 100000, 800000); /* a slow disk */
    }
    s->sync_us = prng_chance(prng, 1, 2) ? 1000000 : between(prng, 10000, 300000);
    s->duplicate_in = prng_chance(prng, 1, 4) ? (uint32_t)between(prng, 2, 20) : 0;
    s->form_fails_in = prng_chance(prng, 1, 8) ? (uint32_t)between(prng, 3, 8) : 0;
    s->publish_fails_in = prng_chance(prng, 1, 4) ? (uint32_t)between(prng, 2, 5) : 0;
}

/* ---- programs ---- */

/* Training epochs with an evaluation between or inside them, some left early, some steps without a
 * batch. */
static void draw_segments(struct scenario_job *job, struct prng *prng)
{
    bool breaks = prng_chance(prng, 1, 4);
    job->segment_count = (uint32_t)between(prng, 1, SCENARIO_SEGMENTS_MAX);
    uint64_t trained = 0;
    uint64_t evaluated = 0;
    for (uint32_t i = 0; i < job->segment_count; i++) {
        struct scenario_segment *segment = &job->segments[i];
        const struct scenario_segment *left = i % 2 == 0 && i > 0 ? &job->segments[i - 2] : NULL;
        if (left != NULL && left->from + left->taken < left->steps && prng_chance(prng, 1, 2)) {
            *segment = *left;
            segment->from += left->taken;
        } else if (i % 2 == 0) {
            *segment = (struct scenario_segment){
                .stream = 1, .epoch = trained++, .steps = between(prng, 1, 12)};
        } else if (prng_chance(prng, 2, 3)) {
            *segment = (struct scenario_segment){
                .stream = 2, .epoch = evaluated++, .steps = between(prng, 1, 3)};
        } else {
            *segment = (struct scenario_segment){.steps = 1};
        }
        bool early = breaks && prng_chance(prng, 1, 2);
        uint64_t rest = segment->steps - segment->from;
        segment->taken = early ? between(prng, 1, rest) : rest;
        job->steps += segment->taken;
    }
}

static void draw_program(struct scenario_job *job, struct prng *prng)
{
    draw_segments(job, prng);
    job->streamed = prng_chance(prng, 1, 4);
    job->replicas = prng_chance(prng, 1, 3) ? (uint32_t)between(prng, 2, 3) : 1;
    job->batch = (uint32_t)between(prng, 1, 9);
    job->provable = prng_chance(prng, 3, 4);
    job->bucketed = prng_chance(prng, 1, 8);
    job->collectives = prng_chance(prng, 1, 3) ? 2 : 1;
    job->setup = prng_chance(prng, 1, 2) ? (uint32_t)between(prng, 1, 3) : 0;
    job->checkpoint_every = prng_chance(prng, 1, 2) ? between(prng, 1, 5) : 0;
    job->shared = prng_chance(prng, 1, 3);
    job->save_at = UINT64_MAX;
    if (prng_chance(prng, 1, 3)) {
        for (uint64_t n = between(prng, 1, 4); n > 0; n--) {
            uint64_t position = between(prng, 1, job->steps);
            job->between_steps[position] = (uint8_t)between(prng, 1, 2);
        }
    }
    if (prng_chance(prng, 1, 6)) {
        job->save_at = between(prng, 1, job->steps);
        job->between_steps[job->save_at] = (uint8_t)between(prng, 1, 2);
    }
    if (job->steps > 1 && prng_chance(prng, 1, 10)) {
        job->restore_at = between(prng, 1, job->steps - 1);
    }
}

static void draw_death(struct scenario_job *job, struct prng *prng)
{
    struct scenario_death *death = &job->deaths[job->death_count++];
    death->slot = (uint32_t)prng_uniform(prng, job->tasks);
    death->when = (enum death_when)between(prng, DEATH_AT_START, DEATH_FINISHED);
    death->step = prng_uniform(prng, job->steps);
    death->kind = (enum death_kind)between(prng, DEATH_SIGNAL, DEATH_PREPARE);
    if (death->kind == DEATH_SIGNAL) {
        death->code = prng_chance(prng, 1, 2) ? 11 : 9;
    } else if (death->kind == DEATH_STATUS) {
        death->code = (int32_t)between(prng, 1, 120);
    } else if (death->kind == DEATH_PREPARE) {
        death->code = 127;
    }
}

/* One program makes fewer steps than the others: it has fewer epochs, or skips one. */
static void draw_short(struct scenario_job *job, struct prng *prng)
{
    job->short_slot = (uint32_t)prng_uniform(prng, job->tasks);
    job->short_steps = job->restore_at + prng_uniform(prng, job->steps - job->restore_at);
    job->short_data = prng_chance(prng, 1, 2) && !job->streamed;
    job->max_restarts = job->max_restarts > 3 ? 3 : job->max_restarts; /* each may take a stall */
}

static void draw_size(struct scenario_job *job, struct prng *prng, uint64_t most)
{
    static const uint32_t restarts[] = {0, 1, 3, 1000};
    job->tasks = (uint32_t)between(prng, 1, most);
    job->tasks_min = prng_chance(prng, 1, 2) ? job->tasks : (uint32_t)between(prng, 1, job->tasks);
    job->max_restarts = restarts[prng_uniform(prng, 4)];
    job->wait_us = prng_chance(prng, 1, 5) ? between(prng, 100000, 5000000) : 0;
    job->priority = (int32_t)prng_uniform(prng, 3);
}

static void draw_jobs(struct scenario *s, struct prng *prng)
{
    bool deaths = prng_chance(prng, 1, 2);
    bool cancels = prng_chance(prng, 1, 4);
    bool plains = prng_chance(prng, 1, 4);
    bool wide = prng_chance(prng, 2, 3);
    bool reconnects = prng_chance(prng, 1, 4);
    bool shorts = prng_chance(prng, 1, 8);
    bool fails = prng_chance(prng, 1, 10);
    s->job_count = (uint32_t)between(prng, 2, SCENARIO_JOBS_MAX);
    for (uint32_t i = 0; i < s->job_count; i++) {
        struct scenario_job *job = &s->jobs[i];
        draw_size(job, prng, wide && i == 0 ? s->slots_total : s->slots_total / 3 + 1);
        job->submit_us = between(prng, 0, 3000000);
        job->plain = plains && prng_chance(prng, 1, 2);
        job->stubborn = prng_chance(prng, 1, 6);
        job->reconnect_in = reconnects ? (uint32_t)between(prng, 5, 50) : 0;
        job->compute_us = between(prng, 100, 60000);
        job->slow_slot = prng_chance(prng, 1, 4) ? prng_uniform(prng, job->tasks) : UINT64_MAX;
        job->short_slot = UINT32_MAX;
        job->failing_slot = UINT32_MAX;
        draw_program(job, prng);
        if (cancels && prng_chance(prng, 1, 2)) {
            job->cancel_us = job->submit_us + between(prng, 0, 3000000);
        }
        if (deaths && !job->plain && prng_chance(prng, 2, 3)) {
            for (uint64_t n = prng_chance(prng, 1, 2) ? 1 : between(prng, 1, SCENARIO_DEATHS_MAX);
                 n > 0; n--) {
                draw_death(job, prng);
            }
        } else if (shorts && !job->plain && job->tasks > 1) {
            draw_short(job, prng);
        } else if (fails && !job->plain) {
            job->failing_slot = (uint32_t)prng_uniform(prng, job->tasks);
            job->failing_step = prng_uniform(prng, job->steps);
        }
    }
}

/* ---- faults ---- */

static void add_fault(struct scenario *s, struct prng *prng, enum fault_kind kind)
{
    if (s->fault_count < SCENARIO_FAULTS_MAX) {
        struct scenario_fault *fault = &s->faults[s->fault_count++];
        fault->kind = kind;
        fault->at_us = between(prng, 1000, s->heal_us - 1000000);
        fault->agent = (uint32_t)prng_uniform(prng, s->agents);
    }
}

static void draw_kind(struct scenario *s, struct prng *prng, enum fault_kind kind)
{
    static const struct {
        uint32_t one_in; /* scenarios */
        uint32_t most;
    } kinds[FAULT_KINDS] = {
        [FAULT_BLINK] = {3, 8},
        [FAULT_OUTAGE] = {6, 2},
        [FAULT_MUTE] = {6, 3},
        [FAULT_HOST] = {5, 3},
        [FAULT_DAEMON] = {6, 3},
        [FAULT_KILL] = {4, 6},
        [FAULT_STOP] = {6, 3},
        [FAULT_MESH] = {6, 4},
        [FAULT_DRAIN] = {6, 3},
        [FAULT_SIGTERM] = {6, 3},
        [FAULT_COORDINATOR] = {6, 3},
        [FAULT_TAIL] = {6, 3},
        [FAULT_PREEMPT] = {4, 4},
        [FAULT_SAVE] = {5, 4},
        [FAULT_RESTART] = {4, 6},
        [FAULT_CUT] = {4, 2},
        [FAULT_DAMAGE] = {4, 6},
        [FAULT_FULL] = {4, 3},
        [FAULT_DISK] = {5, 3},
        [FAULT_ONE_WAY] = {3, 3},
        [FAULT_PAUSE] = {3, 4},
        [FAULT_SECOND] = {6, 2},
        [FAULT_SUPERSEDE] = {4, 2},
        [FAULT_KILL_LEADER] = {3, 4},
        [FAULT_LATE] = {3, 4},
        [FAULT_CUT_STORE] = {3, 4},
        [FAULT_CUT_LEADER] = {4, 3},
        [FAULT_NO_QUORUM] = {4, 3},
        [FAULT_SLOW_COPY] = {4, 3},
        [FAULT_HAND_OVER] = {4, 3},
        [FAULT_RESTORE] = {3, 1},
        [FAULT_FULL_COPY] = {4, 3},
    };
    if (prng_chance(prng, 1, kinds[kind].one_in)) {
        for (uint64_t n = between(prng, 1, kinds[kind].most); n > 0; n--) {
            add_fault(s, prng, kind);
        }
    }
}

static void draw_faults(struct scenario *s, struct prng *prng, int world)
{
    struct prng apart = {prng_mix(prng->state)}; /* the rest is drawn as without these */
    for (int kind = FAULT_BLINK; kind < FAULT_FULL; kind++) {
        draw_kind(s, kind >= FAULT_RESTART ? &apart : prng, (enum fault_kind)kind);
    }
    static const int ends[] = {[0] = FAULT_FULL,
        [1] = FAULT_SUPERSEDE,
        [2] = FAULT_JOIN,
        [3] = FAULT_JOIN,
        [4] = FAULT_JOIN,
        [5] = FAULT_JOIN,
        [WORLD_HA] = FAULT_RESTORE,
        [WORLD_HA_2] = FAULT_KINDS};
    for (int kind = FAULT_FULL; kind < ends[world]; kind++) {
        if (kind == FAULT_JOIN) {
            continue;
        }
        struct prng own = {prng_mix(apart.state ^ (uint64_t)kind)};
        draw_kind(s, &own, (enum fault_kind)kind);
    }
}

static void scenario_clear(struct scenario *scenario, uint32_t agents)
{
    memset(scenario->jobs, 0, sizeof(scenario->jobs));
    scenario->agents = agents;
    scenario->slots_total = 0;
    scenario->job_count = 0;
    scenario->fault_count = 0;
    scenario->heal_us = 8000000;
    scenario->coordinator_ppm = 0;
    scenario->lie_us = 0;
    scenario->replicas = 0;
    scenario->terse = false;
    memset(scenario->ppm, 0, agents * sizeof(scenario->ppm[0]));
}

/* Slots on workers whose slots have so many GPUs each. */
static uint32_t slots_with(const struct scenario *s, uint32_t gpus)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < s->agents; i++) {
        slots += s->gpus[i] / s->slots[i] >= gpus ? s->slots[i] : 0;
    }
    return slots;
}

/* In some clusters workers have GPUs, more or fewer than slots, and jobs request as many as exist,
 * because a job that never fits would never end. Drawn apart, so that a seed without any is what it
 * would be if the world had none. */
static void draw_gpus(struct scenario *s, struct prng prng)
{
    bool some = prng_chance(&prng, 1, 3);
    for (uint32_t i = 0; i < s->agents; i++) {
        uint64_t most = some && prng_chance(&prng, 2, 3) ? 3 * (uint64_t)s->slots[i] : 0;
        s->gpus[i] = (uint32_t)between(&prng, 0, most);
    }
    for (uint32_t i = 0; some && i < s->job_count; i++) {
        struct scenario_job *job = &s->jobs[i];
        uint32_t gpus = (uint32_t)between(&prng, 0, 3);
        job->gpus = slots_with(s, gpus) >= job->tasks_min ? gpus : 0;
    }
}

/* Drawn apart, too. Most such jobs have time enough. */
static void draw_limits(struct scenario *s, struct prng prng)
{
    static const uint64_t most_us[] = {200000, 3000000, 30000000, 200000000};
    prng.state = prng_mix(prng.state);
    bool some = prng_chance(&prng, 1, 4);
    for (uint32_t i = 0; some && i < s->job_count; i++) {
        uint64_t limit_us = between(&prng, 1000, most_us[prng_uniform(&prng, 4)]);
        s->jobs[i].limit_us = prng_chance(&prng, 1, 2) ? limit_us : 0;
    }
}

static int32_t draw_ppm(struct prng *prng)
{
    return (int32_t)between(prng, 0, 2 * SCENARIO_PPM_MAX) - SCENARIO_PPM_MAX;
}

/* Drawn apart, too. */
static void draw_clocks(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1000);
    if (prng_chance(&prng, 1, 2)) {
        return;
    }
    s->coordinator_ppm = draw_ppm(&prng);
    for (uint32_t i = 0; i < s->agents; i++) {
        s->ppm[i] = draw_ppm(&prng);
    }
}

static void make_ps_job(struct scenario_job *job, const struct ps_job *ps_job)
{
    job->ps_job = *ps_job;
    job->tasks = (uint32_t)ps_job_task_count(ps_job);
    job->tasks_min = job->tasks;
    job->gpus = 0;
    job->plain = false;
    job->slow_slot = UINT64_MAX;
    job->short_slot = UINT32_MAX;
    job->short_data = false;
    job->failing_slot = UINT32_MAX;
}

/* Drawn apart, too. */
static void draw_ps_jobs(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1001);
    bool some = prng_chance(&prng, 1, 3);
    for (uint32_t i = 0; some && i < s->job_count; i++) {
        struct ps_job ps_job = {.workers = (uint32_t)between(&prng, 1, 2),
            .servers = (uint32_t)between(&prng, 1, 3),
            .evaluators = (uint32_t)between(&prng, 0, 1)};
        ps_job.backups = prng_chance(&prng, 1, 2) && ps_job.servers > 1;
        if (prng_chance(&prng, 1, 2) && ps_job_task_count(&ps_job) <= s->slots_total) {
            make_ps_job(&s->jobs[i], &ps_job);
        }
    }
}

static uint32_t stream_at(const struct scenario_job *job, uint64_t position)
{
    uint32_t segment = 0;
    for (uint64_t end = job->segments[0].taken; position >= end;) {
        end += job->segments[++segment].taken;
    }
    return job->segments[segment].stream;
}

/* Between two steps a name is given once, because a joiner after the first creation would count the
 * second one as the first. */
static void add_creation(struct scenario_job *job, uint32_t name, uint64_t from)
{
    uint32_t stream = stream_at(job, from);
    bool again = false;
    for (uint32_t i = 0; i < job->creation_count; i++) {
        again |= job->creations[i].between && job->creations[i].name == name;
    }
    if (stream != 0 || !again) {
        job->creations[job->creation_count++] = (struct scenario_creation){
            .name = name, .between = stream == 0, .stream = stream, .from = from};
    }
}

/* Drawn apart, too. */
static void draw_creations(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1002);
    for (uint32_t i = 0; i < s->job_count; i++) {
        struct scenario_job *job = &s->jobs[i];
        uint32_t bases = (uint32_t)between(&prng, 1, SCENARIO_BASES_MAX);
        uint32_t creations = (uint32_t)between(&prng, 1, SCENARIO_CREATIONS_MAX);
        if (job->plain || ps_job_is_set(&job->ps_job) || prng_chance(&prng, 1, 4)) {
            continue;
        }
        for (; job->base_count < bases; job->base_count++) {
            job->bases[job->base_count] = (uint32_t)prng_uniform(&prng, LAYOUT_NAMES);
        }
        for (; creations > 0; creations--) {
            uint32_t name = (uint32_t)prng_uniform(&prng, LAYOUT_NAMES);
            add_creation(job, name, prng_uniform(&prng, job->steps));
        }
    }
}

/* Drawn apart, too. */
static void draw_state_keepers(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1003);
    for (uint32_t i = 0; i < s->job_count; i++) {
        struct scenario_job *job = &s->jobs[i];
        job->keeps_state = prng_chance(&prng, 1, 2) && !job->plain && !ps_job_is_set(&job->ps_job);
        for (uint64_t p = 1; job->keeps_state && p <= job->steps; p++) {
            if (job->between_steps[p] == 0) {
                job->between_steps[p] = 1; /* it saves there */
            }
        }
    }
}

/* Drawn apart, too. */
static void draw_lie(struct scenario *s, struct prng prng)
{
    prng.state = prng_mix(prng.state ^ 1004);
    s->lie_us = between(&prng, 100000, s->heal_us / 2);
    s->lie_shows_us = s->lie_us + between(&prng, 10000, s->heal_us / 2);
}

static const uint64_t firsts[] = {0, SCENARIO_WORLD_1, SCENARIO_WORLD_2, SCENARIO_CREATES,
    SCENARIO_KEEPS, SCENARIO_LIES, SCENARIO_HA, SCENARIO_HA_2};

int scenario_world(uint64_t seed)
{
    int world = sizeof(firsts) / sizeof(firsts[0]) - 1;
    while (seed < firsts[world]) {
        world--;
    }
    return world;
}

uint64_t scenario_first(int world)
{
    return firsts[world];
}

void scenario_draw(struct scenario *scenario, struct prng *prng, uint32_t agents, int world)
{
    scenario_clear(scenario, agents);
    draw_cluster(scenario, prng);
    draw_jobs(scenario, prng);
    draw_faults(scenario, prng, world);
    draw_gpus(scenario, *prng);
    draw_limits(scenario, *prng);
    scenario->terse = world > 1;
    if (world > 0) {
        draw_clocks(scenario, *prng);
        if (world != WORLD_HA) {
            draw_ps_jobs(scenario, *prng);
        }
    }
    if (world > 2) {
        draw_creations(scenario, *prng);
    }
    if (world == 4) {
        draw_state_keepers(scenario, *prng);
    }
    if (world >= WORLD_HA) {
        scenario_draw_replicas(scenario, *prng, world);
    } else if (world > 4) {
        draw_lie(scenario, *prng);
    }
}

/* ---- scenarios that are not drawn ---- */

static void calm_cluster(struct scenario *s, uint32_t agents)
{
    scenario_clear(s, agents);
    for (uint32_t i = 0; i < agents; i++) {
        s->slots[i] = 1;
        s->gpus[i] = 0;
        s->join_us[i] = i;
    }
    s->slots_total = agents;
    s->delay_us = 100;
    s->jitter_us = 10;
    s->turn_us = 200;
    s->sync_us = 1000000;
    s->duplicate_in = 0;
    s->form_fails_in = 0;
    s->publish_fails_in = 0;
    s->job_count = 1;
}

static struct scenario_job calm_job(uint32_t tasks, uint32_t tasks_min)
{
    return (struct scenario_job){.submit_us = 20000,
        .tasks = tasks,
        .tasks_min = tasks_min,
        .max_restarts = 1000,
        .compute_us = 2000,
        .slow_slot = UINT64_MAX,
        .replicas = 1,
        .batch = 8,
        .provable = true,
        .collectives = 1,
        .save_at = UINT64_MAX,
        .short_slot = UINT32_MAX,
        .failing_slot = UINT32_MAX};
}

static void add_segment(struct scenario_job *job, uint32_t stream, uint64_t epoch, uint64_t steps)
{
    job->segments[job->segment_count++] =
        (struct scenario_segment){.stream = stream, .epoch = epoch, .steps = steps, .taken = steps};
    job->steps += steps;
}

static void place_fault(
    struct scenario *scenario, enum fault_kind kind, uint64_t at_us, uint32_t agent)
{
    scenario->faults[scenario->fault_count++] =
        (struct scenario_fault){.kind = kind, .at_us = at_us, .agent = agent};
}

void scenario_scale(struct scenario *scenario, struct prng *prng, uint32_t workers)
{
    calm_cluster(scenario, workers);
    struct scenario_job *job = &scenario->jobs[0];
    *job = calm_job(workers, workers - workers / 10);
    add_segment(job, 1, 0, 22);
    add_segment(job, 2, 0, 2);
    job->submit_us = 2000000;
    job->compute_us = 20000;
    job->batch = workers;
    job->deaths[job->death_count++] = (struct scenario_death){.kind = DEATH_SIGNAL,
        .when = DEATH_IN_COLLECTIVE,
        .slot = (uint32_t)prng_uniform(prng, workers),
        .step = 6,
        .code = 9};
    place_fault(scenario, FAULT_SAVE, 2300000, 0);
    place_fault(scenario, FAULT_DRAIN, 2400000, workers / 2);
}

void scenario_tiny(struct scenario *scenario, uint32_t variant)
{
    calm_cluster(scenario, 4);
    struct scenario_job *job = &scenario->jobs[0];
    *job = calm_job(3, 1 + variant % 3);
    add_segment(job, 1, 0, 3);
    add_segment(job, 2, 0, 1);
    job->between_steps[3] = 1;
    job->setup = 1;
    job->checkpoint_every = 2;
    job->collectives = 1 + variant / 3 % 2;
    job->bucketed = variant / 6 % 2 == 1;
    job->restore_at = variant % 6 == 2 ? 3 : 0;
    if (variant >= SCENARIO_TINY_CREATES) {
        add_segment(job, 0, 0, 1);
        job->base_count = 1; /* of name 0 */
        add_creation(job, 0, 1);
        add_creation(job, 0, 2);
        add_creation(job, 1, 3);
        add_creation(job, 0, 4);
    }
}

void scenario_combined(struct scenario *scenario, uint32_t variant)
{
    calm_cluster(scenario, 3);
    scenario->join_us[COMBINED_JOINER] = UINT64_C(1000000000);
    scenario->slots_total = 3;
    struct scenario_job *job = &scenario->jobs[0];
    *job = calm_job(3, 1 + variant % 2);
    add_segment(job, 1, 0, 3);
    add_segment(job, 2, 0, 1);
    job->checkpoint_every = 2;
    job->collectives = 1 + variant / 2 % 2;
    job->bucketed = variant / 4 % 2 == 1;
}
