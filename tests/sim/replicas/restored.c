/* SPDX-License-Identifier: Apache-2.0 */
#include "restored.h"

#include "replicas.h"

typedef unsigned long long ull;

#define RESEED_TERMS 1000  /* as coordinator/replication/reseed.h */
#define LOOK_US      20000 /* until it is looked again whether it may strike */
#define PEOPLE_US    20000000

enum stage { STAGE_STRIKES = 0, STAGE_RESEED };

void backup_look(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    if (one_in(sim, sim->scenario.backup_in) && !all->was_restored) {
        all->backup =
            (struct backup){.taken = true, .store = all->store, .named = all->folder.named};
    }
}

static uint32_t most_advanced(struct sim *sim)
{
    uint32_t found = 0;
    for (uint32_t r = 1; r < sim->replicas->count; r++) {
        if (replica_of(sim, r)->copy.index > replica_of(sim, found)->copy.index) {
            found = r;
        }
    }
    return found;
}

static uint64_t known_term(const struct replica *replica)
{
    return replica->copy.term > replica->term_seen ? replica->copy.term : replica->term_seen;
}

/* One that does not know more would lead in the older ledger: nothing can show it that it is one.
 * And what no copy has is lost with the store. */
static bool may_strike(struct sim *sim)
{
    const struct replicas *all = sim->replicas;
    const struct log_head *head = &all->backup.store.head;
    bool may = all->backup.taken &&
               replica_of(sim, most_advanced(sim))->copy.index == all->store.head.index;
    for (uint32_t r = 0; r < all->count && may; r++) {
        const struct replica *replica = &all->replicas[r];
        may = replica->has_cluster &&
              (replica->copy.index > head->index || known_term(replica) > head->term);
    }
    return may;
}

static void strike(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    struct stored_entry *entries = all->store.entries;
    uint32_t entries_max = all->store.entries_max;
    uint64_t people_us =
        draw(sim, 1000, one_in(sim, 3) ? PEOPLE_US : 2 * sim->scenario.log_lease_us);
    trace(sim, "the store is restored: from entry %llu back to %llu, revision %llu to %llu",
        (ull)all->store.head.index, (ull)all->backup.store.head.index, (ull)all->store.revision,
        (ull)all->backup.store.revision);
    all->store = all->backup.store;
    all->store.entries = entries;
    all->store.entries_max = entries_max;
    all->store.etcd_id += one_in(sim, 2) ? 1 : 0;
    all->folder.named = all->backup.named;
    all->restored = all->was_restored = true;
    for (uint32_t r = 0; r < all->count; r++) {
        struct replica *replica = replica_of(sim, r);
        if (replica->leads && replica->runs && !replica->pause.on && one_in(sim, 2)) {
            pause_replica(sim, r, draw(sim, 1000, people_us + sim->scenario.log_lease_us));
        }
    }
    coordinator_is_away(sim, people_us + 2 * sim->scenario.log_lease_us);
    schedule(sim, people_us, ON_RESTORE, 0, STAGE_RESEED, 0);
}

void restore_strikes(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    if (all->was_restored || sim->scenario.backup_in == 0 || sim->now_us >= sim->scenario.heal_us) {
        return;
    }
    if (may_strike(sim)) {
        strike(sim);
    } else {
        schedule(sim, LOOK_US, ON_RESTORE, 0, STAGE_STRIKES, 0);
    }
}

/* As --reseed where the copy is that has most, whose process is ended before. */
static void reseed(struct sim *sim)
{
    struct replicas *all = sim->replicas;
    struct etcd *store = &all->store;
    uint32_t r = most_advanced(sim);
    struct replica *replica = replica_of(sim, r);
    uint64_t known = known_term(replica);
    uint64_t term = (known > store->head.term ? known : store->head.term) + RESEED_TERMS;
    const struct log_nonce nonce = {.high = prng_next(&sim->prng) | 1, .low = term};
    uint64_t index = replica->copy.index;
    replica_stops(sim, r, false, draw(sim, 1000, sim->scenario.log_lease_us));
    trace(sim, "c%u writes a new log behind entry %llu, with term %llu", r, (ull)index, (ull)term);
    store->revision++;
    store->cluster.etcd_id = store->etcd_id;
    store->cluster.reseeded_term = term;
    store->leader = (struct log_leader){
        .term = term, .nonce = nonce, .left = true, .mod_revision = store->revision};
    store->head = (struct log_head){.term = term,
        .nonce = nonce,
        .index = index,
        .hash = replica->copy.hash,
        .first = index + 1,
        .mod_revision = store->revision};
    store->snapshot_index = index;
    store->piece_count = 0;
    all->folder.named = folder_add(sim, index);
    all->restored = false;
}

void restore_happens(struct sim *sim, const struct happening *happening)
{
    if (happening->b == STAGE_RESEED) {
        reseed(sim);
    } else {
        restore_strikes(sim);
    }
}
