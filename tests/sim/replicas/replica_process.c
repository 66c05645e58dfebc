/* SPDX-License-Identifier: Apache-2.0
 * The process of a coordinator: it starts as a follower with what its disk has, and ends. */
#include <stdlib.h>

#include "common/pure/assert.h"
#include "replicas.h"

typedef unsigned long long ull;

void replica_starts(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    /* One draw a statement: their order is then the same with each compiler. */
    const uint64_t high = prng_next(&sim->prng) | 1;
    const uint64_t low = prng_next(&sim->prng);
    const uint64_t cluster = prng_next(&sim->prng) | 1;
    struct leadership_options options = {.has_cluster = replica->has_cluster,
        .cluster_id = replica->cluster_id,
        .etcd_id = replica->etcd_id,
        .applied = replica->copy,
        .term_seen = replica->term_seen,
        .format_max = 1,
        .nonce = {.high = high, .low = low},
        .new_cluster_id = {.high = cluster, .low = 7},
        .seed = prng_next(&sim->prng),
        .lease_us = sim->scenario.log_lease_us,
        .drift_ppm = SCENARIO_PPM_MAX,
        .margin_us = sim->scenario.log_lease_us / 60,
        .lag_us = sim->scenario.log_lease_us / 6,
        .tickets_max = TICKETS_MAX};
    options.new_hash = store_cluster_hash(options.new_cluster_id);
    if (replica->has_cluster && mutant_goes_on(sim, MUTANT_OWN_COPY)) {
        options.applied = (struct leadership_position){.index = sim->replicas->store.head.index,
            .term = sim->replicas->store.head.term,
            .hash = sim->replicas->store.head.hash};
    }
    if (sim->replicas->accepted || mutant_goes_on(sim, MUTANT_RESTORED_ACCEPTED)) {
        options.accept_restored = true;
    }
    if (replica->memory == NULL) {
        replica->memory = malloc(leadership_bytes(TICKETS_MAX));
        CADRE_ASSERT(replica->memory != NULL);
    }
    replica->runs = true;
    replica->incarnation++;
    replica->leads = false;
    replica->kept_number = 0;
    replica->lacks = replica->leaves = false;
    replica->wake_at_us = UINT64_MAX;
    replica->core = leadership_init(replica->memory, &options);
    snapshots_open(sim, r);
    trace(sim, "c%u starts, its copy is at %llu", r, (ull)replica->copy.index);
    const struct leadership_event resign = {
        .type = LEADERSHIP_EVENT_RESIGN, .nonce = replica->resigned};
    struct leadership_event first =
        replica->resigns ? resign : (struct leadership_event){.type = LEADERSHIP_EVENT_TICK};
    replica->resigns = false;
    replica_event(sim, r, &first);
}

static void close_links(struct sim *sim, uint32_t r)
{
    for (uint32_t i = 0; i < sim->link_count; i++) {
        struct link *link = &sim->links[i];
        if (link->coordinator_open && link->replica == r) {
            link_cut(sim, i, SCENARIO_BLINK_US / 4);
            link->coordinator_open = false;
        }
    }
}

/* Planted: what it had recorded and not logged stays in its copy. */
static void keep_state(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->scenario.job_count; i++) {
        stored_copy(sim->jobs[i].durable, sim->jobs[i].stored);
    }
}

/* Whether its copy can be made again from the log: not one that accepted a restored store discards,
 * with entries that the log has no more. */
static bool copy_is_logged(const struct sim *sim, const struct replica *replica)
{
    const struct etcd *store = &sim->replicas->store;
    if (!sim->replicas->accepted) {
        return true;
    }
    if (replica->copy.index > store->head.index) {
        return false;
    }
    const struct log_hash hash = store_hash_at(store, replica->copy.index);
    return log_hash_equal(&hash, &replica->copy.hash);
}

void replica_stops(struct sim *sim, uint32_t r, bool tail, uint64_t back_us)
{
    struct replica *replica = replica_of(sim, r);
    bool entered = sim->replicas->entered == r;
    if (!replica->runs) {
        return;
    }
    if (!entered) {
        replica_enters(sim, r);
    }
    if (!tail && replica->leads && mutant_goes_on(sim, MUTANT_STATE_KEPT)) {
        keep_state(sim);
    }
    coordinator_drop_turn(sim);
    sim->coordinator.pending_update_open = false;
    sim->coordinator.incarnation = 0;
    replica_leaves(sim);
    replica_forgets(sim, replica);
    replica->runs = false;
    replica->leads = false;
    replica->incarnation++;
    replica->pause.on = false;
    replica->pauses_late = false;
    replica->sends_late = false;
    close_links(sim, r);
    if (tail && replica->copy.index > 0 && copy_is_logged(sim, replica)) {
        replica_rewinds(sim, r, draw(sim, 0, replica->copy.index));
    }
    trace(sim, "c%u ends, its copy is at %llu", r, (ull)replica->copy.index);
    schedule(sim, back_us, ON_REPLICA_START, r, replica->incarnation, 0);
    if (entered) {
        replica_enters(sim, r);
    }
}
