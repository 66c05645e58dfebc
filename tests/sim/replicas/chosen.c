/* SPDX-License-Identifier: Apache-2.0
 * Which coordinator a daemon or a client turns to, and which daemon one serves. */
#include "replicas.h"

/* Whether it answers that it leads. */
static bool claims(const struct sim *sim, uint32_t r)
{
    const struct replica *replica = &sim->replicas->replicas[r];
    return replica->runs && !replica->pause.on && replica_may_send(sim, replica);
}

static uint32_t leader_for(struct sim *sim, uint32_t agent)
{
    uint32_t found = SIM_NONE;
    for (uint32_t r = 0; r < sim->replicas->count; r++) {
        const struct replica *replica = replica_of(sim, r);
        bool reached = agent == SIM_NONE || sim->now_us >= replica->workers[agent].blocked_us;
        bool better = found == SIM_NONE || replica->term > replica_of(sim, found)->term;
        if (reached && claims(sim, r) && (better || one_in(sim, 8))) {
            found = r;
        }
    }
    return found;
}

bool replicas_enter_leader(struct sim *sim)
{
    uint32_t r = leader_for(sim, SIM_NONE);
    if (r != SIM_NONE) {
        replica_enters(sim, r);
    }
    return r != SIM_NONE;
}

uint32_t replicas_choose(struct sim *sim, uint32_t agent)
{
    return leader_for(sim, agent);
}

/* HA11: it receives nothing on its link, and another coordinator answers that it leads, in a higher
 * term. */
void replicas_asked(struct sim *sim, uint32_t agent)
{
    struct agent *a = &sim->agents[agent];
    schedule(sim, sim->scenario.log_lease_us, ON_AGENT_ASKS, agent, a->incarnation, 0);
    if (a->link == SIM_NONE) {
        return;
    }
    const struct link *link = &sim->links[a->link];
    const struct replica *replica = replica_of(sim, link->replica);
    bool receives = !link->cut && !link->mute_down && !link->lost_down && link->coordinator_open &&
                    claims(sim, link->replica);
    uint32_t leader = receives ? SIM_NONE : leader_for(sim, agent);
    if (leader != SIM_NONE && leader != link->replica &&
        (!replica->leads || replica_of(sim, leader)->term > replica->term)) {
        trace(sim, "w%u turns to c%u", agent, leader);
        if (mutant_goes_on(sim, MUTANT_TERM_UNLOOKED)) {
            schedule(sim, 0, ON_AGENT_LINK_DOWN, a->link, 0, 0); /* the old one stays */
        } else {
            link_cut(sim, a->link, 1000);
        }
    }
}

/* HA12: the daemon has seen a higher term. */
bool replica_may_serve(struct sim *sim, uint32_t index, const struct agent_up *up)
{
    struct link *link = &sim->links[index];
    if (up->type != AGENT_UP_HELLO) {
        return true;
    }
    link->sent_hello = true;
    enum term_verdict verdict = term_judge(&up->hello.seen, &sim->coordinator.term);
    if (verdict == TERM_GOOD || verdict == TERM_FOREIGN ||
        mutant_goes_on(sim, MUTANT_TERM_UNLOOKED)) {
        return true;
    }
    trace(sim, "w%u has seen a newer term than that of c%u", link->agent, link->replica);
    link_cut(sim, index, 1000);
    link->coordinator_open = false;
    replica_event(sim, link->replica,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_HELLO_AHEAD,
            .hello = {.term = up->hello.seen.start,
                .index = verdict == TERM_DUPLICATE ? UINT64_MAX : 0}});
    return false;
}
