/* SPDX-License-Identifier: Apache-2.0
 * A second coordinator, started on an older copy of the ledger while the first one runs. A worker
 * that has accepted the first one's newer start is refused by it, and refuses it: so it serves no
 * worker, and only its term is used, judged as the daemons do. */
#include "sim.h"

#define CLUSTER 1
#define POLL_US 200000

typedef unsigned long long ull;

/* Independent of all other draws. */
struct term term_of_start(const struct sim *sim, uint64_t start, uint64_t nonce)
{
    return (struct term){
        .cluster = CLUSTER, .start = start, .nonce = prng_mix(sim->seed ^ prng_mix(nonce))};
}

/* A worker that has not accepted a start newer than the copy may still be served. */
static bool all_know_better(const struct sim *sim, uint64_t start)
{
    bool all = true;
    for (uint32_t i = 0; i < sim->scenario.agents && all; i++) {
        all = sim->agents[i].seen.start >= start;
    }
    return all;
}

void second_waits(struct sim *sim, const struct term *term)
{
    sim->second = (struct second){
        .waits = true, .term = *term, .poll_until_us = sim->now_us + 10 * SCENARIO_LEASE_US};
    schedule(sim, POLL_US, ON_SECOND, 0, 0, 0);
}

void second_begins(struct sim *sim)
{
    const struct second *second = &sim->second;
    if (second->waits || second->runs) {
        return;
    }
    const struct term term =
        term_of_start(sim, sim->disk.term_start + 1, UINT64_MAX - second->term.start);
    trace(sim, "the ledger is copied");
    coordinator_crash(sim, false);
    second_waits(sim, &term);
}

static void start(struct sim *sim)
{
    struct second *second = &sim->second;
    second->waits = false;
    second->runs = true;
    trace(sim, "a second coordinator is started on the copy: start %llu", (ull)second->term.start);
    for (uint32_t i = 0; i < sim->scenario.agents; i++) {
        const struct agent *a = &sim->agents[i];
        if (a->alive && a->link != SIM_NONE && one_in(sim, 2)) {
            link_cut(sim, a->link, SCENARIO_BLINK_US / 4);
        }
    }
    schedule(sim, draw(sim, 1000000, 2 * SCENARIO_LEASE_US), ON_SECOND, 0, 0, 0);
}

static void stop(struct sim *sim)
{
    sim->second.runs = false;
    trace(sim, "the second coordinator ends");
    for (uint32_t i = 0; i < sim->link_count; i++) {
        if (sim->links[i].second) {
            link_cut(sim, i, 1000);
        }
    }
}

void second_goes_on(struct sim *sim)
{
    struct second *second = &sim->second;
    if (second->runs) {
        stop(sim);
    } else if (all_know_better(sim, second->term.start)) {
        start(sim);
    } else if (sim->now_us < second->poll_until_us) {
        schedule(sim, POLL_US, ON_SECOND, 0, 0, 0);
    } else {
        second->waits = false;
    }
}

/* Whether a worker with this hello may be served by a coordinator of this term. */
static bool may_serve(const struct term *own, const struct agent_up *up)
{
    enum term_verdict verdict = term_judge(&up->hello.seen, own);
    return verdict == TERM_GOOD || verdict == TERM_FOREIGN;
}

void second_receive(struct sim *sim, uint32_t link, const struct agent_up *up)
{
    if (up->type != AGENT_UP_HELLO) {
        return;
    }
    if (!may_serve(&sim->second.term, up) && !mutant_goes_on(sim, MUTANT_TERMS_UNJUDGED)) {
        link_refuse(sim, link, CADRE_FAILED_PRECONDITION, "it has accepted a newer start");
        return;
    }
    struct agent_down down = {
        .type = AGENT_DOWN_WELCOME, .welcome = {.worker = {1}, .term = sim->second.term}};
    struct message *message = message_of_down(&sim->pool, &down);
    send_down(sim, link, message);
    message_drop(&sim->pool, message);
}

bool coordinator_may_serve(struct sim *sim, uint32_t link, const struct agent_up *up)
{
    const struct coordinator *c = &sim->coordinator;
    struct link *l = &sim->links[link];
    if (up->type != AGENT_UP_HELLO) {
        return true;
    }
    l->sent_hello = true;
    if (may_serve(&c->term, up)) {
        return true;
    }
    if (c->supersedes && !mutant_goes_on(sim, MUTANT_SUPERSEDE_IGNORED)) {
        supersede_outranks(sim, link, &up->hello.seen);
        return true;
    }
    broken(sim, "TERM", "w%u is refused by start %llu, which is the newest: it has seen start %llu",
        l->agent, (ull)c->term.start, (ull)up->hello.seen.start);
    return false;
}

/* The oracle's copy of what the daemon keeps. */
static void check_accepts(struct sim *sim, uint32_t agent, const struct term *term)
{
    struct agent *a = &sim->agents[agent];
    bool other = term->start == a->accepted.start && term->nonce != a->accepted.nonce;
    if (a->accepted.start > term->start || other) {
        broken(sim, "TERM", "w%u has accepted start %llu, and serves start %llu%s", agent,
            (ull)a->accepted.start, (ull)term->start, other ? ", another one" : "");
    }
    a->accepted = *term;
}

bool agent_accepts_term(struct sim *sim, uint32_t agent, const struct term *term)
{
    struct agent *a = &sim->agents[agent];
    enum term_verdict verdict = term_judge(&a->seen, term);
    if (verdict != TERM_GOOD && verdict != TERM_FOREIGN &&
        !mutant_goes_on(sim, MUTANT_TERMS_UNJUDGED)) {
        trace(sim, "w%u refuses the coordinator of start %llu", agent, (ull)term->start);
        return false;
    }
    check_accepts(sim, agent, term);
    a->seen = *term;
    return true;
}
