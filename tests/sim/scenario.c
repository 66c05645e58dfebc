/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <string.h>

static uint64_t between(struct prng *prng, uint64_t low, uint64_t high)
{
    return low + prng_below(prng, high - low + 1);
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
    s->delay_us = delays_us[prng_below(prng, 4)];
    s->jitter_us =
        prng_chance(prng, 1, 2) ? s->delay_us * between(prng, 1, 20) : s->delay_us / 4 + 1;
    s->turn_us = prng_chance(prng, 1, 2) ? between(prng, 10, 200) : between(prng, 1000, 20000);
}

/* Training epochs with an evaluation between them or in their midst, some left early, some steps
 * without a batch. */
static void draw_program(struct scenario_job *job, struct prng *prng)
{
    bool breaks = prng_chance(prng, 1, 4);
    job->epoch_count = (uint32_t)between(prng, 1, SCENARIO_EPOCHS_MAX);
    uint64_t trained = 0;
    uint64_t evaluated = 0;
    for (uint32_t i = 0; i < job->epoch_count; i++) {
        struct scenario_epoch *epoch = &job->epochs[i];
        const struct scenario_epoch *left = i % 2 == 0 && i > 0 ? &job->epochs[i - 2] : NULL;
        if (left != NULL && left->from + left->taken < left->steps && prng_chance(prng, 1, 2)) {
            *epoch = *left;
            epoch->from += left->taken;
        } else if (i % 2 == 0) {
            *epoch = (struct scenario_epoch){
                .stream = 1, .epoch = trained++, .steps = between(prng, 1, 12)};
        } else if (prng_chance(prng, 2, 3)) {
            *epoch = (struct scenario_epoch){
                .stream = 2, .epoch = evaluated++, .steps = between(prng, 1, 3)};
        } else {
            *epoch = (struct scenario_epoch){.epoch = i, .steps = 1};
        }
        bool early = breaks && prng_chance(prng, 1, 2);
        uint64_t rest = epoch->steps - epoch->from;
        epoch->taken = early ? between(prng, 1, rest) : rest;
        job->steps += epoch->taken;
    }
}

static void draw_death(struct scenario_job *job, struct prng *prng)
{
    job->death_slot = (uint32_t)prng_below(prng, job->tasks);
    job->death_when = (enum death_when)between(prng, DEATH_AT_START, DEATH_FINISHED);
    job->death_step = prng_below(prng, job->steps);
    job->death = (enum death_kind)between(prng, DEATH_SIGNAL, DEATH_PREPARE);
    if (job->death == DEATH_QUIT) {
        return;
    }
    job->death_code = job->death == DEATH_SIGNAL ? (prng_chance(prng, 1, 2) ? 11 : 9)
                                                 : (int32_t)between(prng, 1, 120);
    if (job->death == DEATH_PREPARE) {
        job->death_code = 127;
    }
}

/* One program makes fewer steps than the others: it knows of fewer epochs, or leaves one alone. */
static void draw_short(struct scenario_job *job, struct prng *prng)
{
    job->short_slot = (uint32_t)prng_below(prng, job->tasks);
    job->short_steps = prng_below(prng, job->steps);
    job->short_data = prng_chance(prng, 1, 2);
}

static void draw_jobs(struct scenario *s, struct prng *prng)
{
    bool deaths = prng_chance(prng, 1, 2);
    bool cancels = prng_chance(prng, 1, 4);
    bool plains = prng_chance(prng, 1, 4);
    bool wide = prng_chance(prng, 2, 3);
    bool reconnects = prng_chance(prng, 1, 4);
    bool shorts = prng_chance(prng, 1, 8);
    s->job_count = (uint32_t)between(prng, 2, SCENARIO_JOBS_MAX);
    for (uint32_t i = 0; i < s->job_count; i++) {
        struct scenario_job *job = &s->jobs[i];
        uint32_t most = wide && i == 0 ? s->slots_total : s->slots_total / 3 + 1;
        job->tasks = (uint32_t)between(prng, 1, most);
        job->submit_us = between(prng, 0, 3000000);
        job->priority = (int32_t)prng_below(prng, 3);
        job->plain = plains && prng_chance(prng, 1, 2);
        job->streamed = prng_chance(prng, 1, 3);
        job->stubborn = prng_chance(prng, 1, 6);
        job->reconnect_in = reconnects ? (uint32_t)between(prng, 5, 50) : 0;
        job->compute_us = between(prng, 100, 30000);
        job->slow_slot = prng_chance(prng, 1, 4) ? prng_below(prng, job->tasks) : UINT64_MAX;
        job->short_slot = UINT32_MAX;
        draw_program(job, prng);
        if (cancels && prng_chance(prng, 1, 2)) {
            job->cancel_us = job->submit_us + between(prng, 0, 3000000);
        }
        if (deaths && !job->plain && prng_chance(prng, 2, 3)) {
            draw_death(job, prng);
        } else if (shorts && !job->plain && job->tasks > 1) {
            draw_short(job, prng);
        }
    }
}

static void add_fault(struct scenario *s, struct prng *prng, enum fault_kind kind)
{
    if (s->fault_count < SCENARIO_FAULTS_MAX) {
        s->faults[s->fault_count++] = (struct scenario_fault){.kind = kind,
            .at_us = between(prng, 1000, 5000000),
            .agent = (uint32_t)prng_below(prng, s->agents)};
    }
}

static void draw_faults(struct scenario *s, struct prng *prng)
{
    static const struct {
        enum fault_kind kind;
        uint32_t one_in; /* scenarios */
        uint32_t most;
    } kinds[] = {{FAULT_BLINK, 2, 8}, {FAULT_OUTAGE, 6, 2}, {FAULT_HOST, 6, 2}, {FAULT_DRAIN, 6, 2},
        {FAULT_COORDINATOR, 6, 1}};
    for (uint32_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        if (!prng_chance(prng, 1, kinds[k].one_in)) {
            continue;
        }
        for (uint64_t n = between(prng, 1, kinds[k].most); n > 0; n--) {
            add_fault(s, prng, kinds[k].kind);
        }
    }
    /* One fault an agent: what a job may notice is then known. */
    for (uint32_t i = 0; i < s->fault_count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (s->faults[k].agent == s->faults[i].agent) {
                s->faults[i--] = s->faults[--s->fault_count];
                break;
            }
        }
    }
}

void scenario_draw(struct scenario *scenario, struct prng *prng, uint32_t agents)
{
    memset(scenario, 0, sizeof(*scenario));
    scenario->agents = agents;
    scenario->heal_us = 6000000;
    draw_cluster(scenario, prng);
    draw_jobs(scenario, prng);
    draw_faults(scenario, prng);
}
