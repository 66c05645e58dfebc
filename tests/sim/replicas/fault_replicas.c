/* SPDX-License-Identifier: Apache-2.0
 * Faults of the coordinators and of their store. */
#include "replicas.h"

/* One that leads, mostly. */
static uint32_t victim(struct sim *sim, uint32_t which)
{
    uint32_t chosen = which % sim->replicas->count;
    bool any = one_in(sim, 4);
    for (uint32_t r = 0; r < sim->replicas->count && !any; r++) {
        chosen = replica_of(sim, r)->leads ? r : chosen;
    }
    return chosen;
}

static void end(struct sim *sim, uint32_t r, bool tail)
{
    struct replica *replica = replica_of(sim, r);
    uint64_t lease_us = sim->scenario.log_lease_us;
    if (!replica->runs) {
        return;
    }
    trace(sim, "c%u is killed", r);
    replica->resigns = one_in(sim, 3) && replica->leads;
    if (replica->resigns) {
        struct leadership_view view;
        leadership_show(replica->core, &view);
        replica->resigned = view.nonce;
    }
    replica_stops(sim, r, tail, draw(sim, 1000, one_in(sim, 2) ? lease_us / 4 : 3 * lease_us));
}

static uint64_t some_time(struct sim *sim)
{
    return draw(sim, 1000, (one_in(sim, 2) ? 1 : 4) * sim->scenario.log_lease_us);
}

/* Some of these take longer than a lease of workers. */
static uint64_t store_is_away(struct sim *sim)
{
    uint64_t length_us = one_in(sim, 3) ? draw(sim, 1000, SCENARIO_CUT_MOST_US) : some_time(sim);
    coordinator_is_away(sim, length_us);
    return sim->now_us + length_us;
}

static void cut_from_store(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    uint64_t until_us = sim->now_us + some_time(sim);
    uint64_t ways = draw(sim, 1, 3);
    trace(sim, "c%u is cut off from the store until %llu", r, (unsigned long long)until_us);
    replica->cut_up_us = ways != 2 ? until_us : replica->cut_up_us;
    replica->cut_down_us = ways != 1 ? until_us : replica->cut_down_us;
}

/* Each daemon that it cuts off notices in its own time. */
static void cut_from_workers(struct sim *sim, uint32_t r)
{
    uint64_t until_us = sim->now_us + draw(sim, 10000, SCENARIO_CUT_LEAST_US);
    uint32_t stride = one_in(sim, 2) ? 1 : 2;
    trace(sim, "c%u is cut off from workers until %llu", r, (unsigned long long)until_us);
    for (uint32_t agent = 0; agent < sim->scenario.agents; agent += stride) {
        struct agent *a = &sim->agents[agent];
        replica_of(sim, r)->workers[agent].blocked_us = until_us;
        if (a->alive && a->link != SIM_NONE && sim->links[a->link].replica == r) {
            agent_touch(sim, agent);
            enum mute ways = (enum mute)draw(sim, MUTE_UP, MUTE_BOTH);
            link_mute(sim, a->link, ways, until_us, one_in(sim, 2));
        }
    }
}

static void pause_one(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    if (replica->runs && !replica->pause.on) {
        pause_replica(sim, r, some_time(sim));
    }
}

static void hand_over(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    if (replica->runs && !replica->pause.on) {
        trace(sim, "c%u is to leave", r);
        replica_event(sim, r, &(struct leadership_event){.type = LEADERSHIP_EVENT_LEAVE});
    }
}

bool replicas_fault(struct sim *sim, enum fault_kind kind, uint32_t which)
{
    uint32_t r = victim(sim, which);
    struct replicas *all = sim->replicas;
    switch (kind) {
    case FAULT_COORDINATOR:
    case FAULT_KILL_LEADER:
    case FAULT_DISK:
        end(sim, r, false);
        return true;
    case FAULT_TAIL:
        end(sim, r, !all->restored); /* a copy is all that is left of the newest entries */
        return true;
    case FAULT_PAUSE:
        if (one_in(sim, 2)) {
            return false; /* a worker */
        }
        pause_one(sim, r);
        return true;
    case FAULT_LATE:
        replica_of(sim, r)->pauses_late = replica_of(sim, r)->leads;
        return true;
    case FAULT_FULL:
        all->no_space_us = store_is_away(sim);
        return true;
    case FAULT_NO_QUORUM:
        all->no_quorum_us = store_is_away(sim);
        trace(sim, "the store has no quorum until %llu", (unsigned long long)all->no_quorum_us);
        return true;
    case FAULT_CUT_STORE:
        cut_from_store(sim, r);
        return true;
    case FAULT_CUT_LEADER:
        cut_from_workers(sim, r);
        return true;
    case FAULT_SLOW_COPY:
        replica_of(sim, which % all->count)->slow_us = sim->now_us + 4 * sim->scenario.log_lease_us;
        return true;
    case FAULT_FULL_COPY:
        replica_of(sim, r)->full_us = sim->now_us + some_time(sim);
        trace(sim, "the disk of c%u is full until %llu", r,
            (unsigned long long)replica_of(sim, r)->full_us);
        return true;
    case FAULT_HAND_OVER:
        hand_over(sim, r);
        return true;
    case FAULT_RESTORE:
        restore_strikes(sim);
        return true;
    case FAULT_SECOND:
    case FAULT_SUPERSEDE:
        return true; /* of one coordinator alone */
    default:
        return false;
    }
}
