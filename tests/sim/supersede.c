/* SPDX-License-Identifier: Apache-2.0
 * A copy of the ledger that becomes the one in use: the ledger is copied, the coordinator is
 * started again and welcomes workers; then it is stopped for good and the copy is started with
 * --supersede, as by an operator who moves the state directory without stopping the old machine.
 * The old one is started again afterwards, and serves no worker. Records that only the old ledger
 * has are not covered: the copy is started before anything but the start was recorded. */
#include "sim.h"

#define POLL_US 500
#define FOR_US  2000000

typedef unsigned long long ull;

void supersede_begins(struct sim *sim)
{
    struct owner *owner = &sim->owner;
    if (owner->waits || sim->second.waits || sim->second.runs) {
        return;
    }
    trace(sim, "the ledger is copied for another machine");
    uint64_t copied = sim->disk.term_start;
    for (uint64_t starts = draw(sim, 1, 2); starts > 0; starts--) {
        coordinator_crash(sim, false);
        sim->disk.term_start = starts > 1 ? sim->coordinator.term.start : sim->disk.term_start;
    }
    *owner = (struct owner){.waits = true,
        .copied_start = copied,
        .written = sim->disk.written,
        .poll_until_us = sim->now_us + FOR_US};
    schedule(sim, POLL_US, ON_SUPERSEDE, 0, 0, 0);
}

static bool is_accepted(const struct sim *sim)
{
    bool accepted = false;
    for (uint32_t i = 0; i < sim->scenario.agents && !accepted; i++) {
        accepted = sim->agents[i].accepted.nonce == sim->coordinator.term.nonce;
    }
    return accepted;
}

/* The old one ends with what it had not recorded; workers that received its number keep it. */
static void start_copy(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    const struct term old = term_of_start(sim, c->term.start + 1, UINT64_MAX - c->incarnation);
    coordinator_drop_turn(sim);
    c->pending_update_open = false;
    sim->disk.term_start = sim->owner.copied_start;
    sim->owner.newest_start = c->term.start;
    coordinator_crash(sim, false);
    c->supersedes = true;
    trace(sim, "the copy is started with --supersede: start %llu", (ull)c->term.start);
    second_waits(sim, &old);
}

void supersede_goes_on(struct sim *sim)
{
    struct owner *owner = &sim->owner;
    if (sim->disk.written != owner->written || sim->now_us >= owner->poll_until_us) {
        owner->waits = false; /* the copy lacks more than starts */
    } else if (is_accepted(sim) && one_in(sim, 3)) {
        owner->waits = false;
        start_copy(sim);
    } else {
        schedule(sim, POLL_US, ON_SUPERSEDE, 0, 0, 0);
    }
}

/* As coordinator/engine: the next turn stores it before it sends anything. */
static void begin_term(struct sim *sim, uint64_t above)
{
    struct term *term = &sim->coordinator.term;
    term->start = (above > term->start ? above : term->start) + 1;
    sim->coordinator.term_unstored = !mutant_goes_on(sim, MUTANT_SUPERSEDE_UNSTORED);
}

void supersede_outranks(struct sim *sim, uint32_t link, const struct term *seen)
{
    begin_term(sim, seen->start);
    trace(sim, "start %llu is superseded: this is start %llu now", (ull)seen->start,
        (ull)sim->coordinator.term.start);
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct link *l = &sim->links[i];
        if (i != link && l->sent_hello && !l->second &&
            !mutant_goes_on(sim, MUTANT_SUPERSEDE_UNSENT)) {
            link_cut(sim, i, 1000); /* they open others, and get the new number */
        }
    }
}

void supersede_is_over(struct sim *sim)
{
    struct coordinator *c = &sim->coordinator;
    c->supersedes = c->supersedes && c->term.start <= sim->owner.newest_start;
}

void check_known(struct sim *sim, const struct link *link)
{
    bool welcomed = link->sent_start != 0; /* else it gets nothing before that */
    if (link->coordinator_open && !link->cut && welcomed &&
        link->sent_start != sim->coordinator.term.start) {
        broken(sim, "TERM", "w%u gets a message of start %llu, and was welcomed by start %llu",
            link->agent, (ull)sim->coordinator.term.start, (ull)link->sent_start);
    }
}
