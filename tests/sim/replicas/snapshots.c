/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshots.h"

#include "replicas.h"

typedef unsigned long long ull;

#define ATTEMPT_PART 5 /* of a lease: a reading without an answer ends after it */

/* What happens next; a number above it is in the bits behind. */
enum stage { STAGE_ANSWERED = 1, STAGE_UNANSWERED, STAGE_MADE, STAGE_FETCHED };

static struct folder *folder_of(struct sim *sim)
{
    return &sim->replicas->folder;
}

static struct snapshot_file *file_at(struct sim *sim, const struct snapshot_file *file)
{
    struct folder *folder = folder_of(sim);
    for (uint32_t i = 0; i < folder->count; i++) {
        if (folder->files[i].index == file->index && folder->files[i].made == file->made) {
            return &folder->files[i];
        }
    }
    return NULL;
}

struct snapshot_file folder_add(struct sim *sim, uint64_t index)
{
    struct folder *folder = folder_of(sim);
    struct snapshot_file file = {.index = index, .made = ++folder->made};
    folder->files =
        grown(folder->files, &folder->capacity, folder->count + 1, sizeof(*folder->files));
    folder->files[folder->count++] = file;
    return file;
}

void check_reachable(struct sim *sim)
{
    const struct etcd *store = &sim->replicas->store;
    const struct snapshot_file *named = &folder_of(sim)->named;
    if (store->head.first <= 1 || sim->replicas->restored) {
        return;
    }
    if (store->snapshot_index + 1 < store->head.first || named->index != store->snapshot_index ||
        file_at(sim, named) == NULL) {
        broken(sim, "TRIM",
            "the log begins with entry %llu, and the snapshot at entry %llu is not to be had",
            (ull)store->head.first, (ull)store->snapshot_index);
    }
}

static void stage(struct sim *sim, uint32_t r, uint64_t after_us, enum stage stage)
{
    schedule(sim, after_us, ON_REPLICA_SNAPSHOT, r, replica_of(sim, r)->incarnation, stage);
}

/* ---- which one the store names ---- */

static void unanswered(struct sim *sim, uint32_t r)
{
    stage(sim, r, sim->scenario.log_lease_us / ATTEMPT_PART, STAGE_UNANSWERED);
}

static void read_newest(struct sim *sim, uint32_t r)
{
    if (sim->now_us < replica_of(sim, r)->cut_up_us || one_in(sim, sim->scenario.log_loses_in)) {
        unanswered(sim, r);
    } else {
        schedule(
            sim, request_delay_us(sim), ON_LOG_SNAPSHOT, r, replica_of(sim, r)->incarnation, 0);
    }
}

static void reading_arrives(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    bool lost = sim->now_us < sim->replicas->no_quorum_us || sim->now_us < replica->cut_down_us ||
                one_in(sim, sim->scenario.log_loses_in);
    if (lost) {
        unanswered(sim, r);
        return;
    }
    replica->snapshots.found = folder_of(sim)->named;
    stage(sim, r, request_delay_us(sim), STAGE_ANSWERED);
}

/* ---- of a leader ---- */

static bool leads(const struct replica *replica)
{
    struct leadership_view view;
    leadership_show(replica->core, &view);
    return view.state == LEADERSHIP_LEADING && !replica->lacks;
}

static void make(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    replica->snapshots.making = replica->copy;
    stage(sim, r, draw(sim, 1, sim->scenario.snapshot_takes_us), STAGE_MADE);
}

static void made(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    struct its_snapshots *its = &replica->snapshots;
    uint64_t now_us = replica_boot_us(sim, replica);
    uint64_t index = its->making.index;
    if (one_in(sim, sim->scenario.snapshot_fails_in)) {
        snapshot_rules_failed(&its->rules, now_us);
        return;
    }
    /* Planted: it is on the leader's own disk alone. */
    its->held = mutant_goes_on(sim, MUTANT_SNAPSHOT_ALONE) ? (struct snapshot_file){.index = index}
                                                           : folder_add(sim, index);
    trace(sim, "c%u has made a snapshot at entry %llu", r, (ull)index);
    snapshot_rules_held(&its->rules, index);
    replica_event(sim, r,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_HELD,
            .snapshot = {.index = index,
                .hash = its->making.hash,
                .holders = 2,
                .trim_to = snapshot_rules_trim_to(&its->rules, index, now_us)}});
}

void snapshots_stored(struct sim *sim, uint32_t r, uint64_t index)
{
    struct replica *replica = replica_of(sim, r);
    struct folder *folder = folder_of(sim);
    uint64_t before =
        snapshot_rules_stored(&replica->snapshots.rules, index, replica_boot_us(sim, replica));
    for (uint32_t i = 0; i < folder->count; i++) {
        if (folder->files[i].index < before) {
            folder->files[i].index = 0;
        }
    }
    check_reachable(sim);
}

void snapshots_check(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    if (sim->scenario.snapshot_bytes > 0 && replica->runs && sim->broken == NULL &&
        snapshot_rules_look(
            &replica->snapshots.rules, leads(replica), replica_boot_us(sim, replica))) {
        read_newest(sim, r);
    }
}

/* ---- of a follower ---- */

static void installed(struct sim *sim, uint32_t r, struct leadership_position position)
{
    struct replica *replica = replica_of(sim, r);
    snapshot_rules_installed(
        &replica->snapshots.rules, position.index, replica_boot_us(sim, replica));
    replica_event(sim, r,
        &(struct leadership_event){
            .type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED, .position = position});
}

static void fetched(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    const struct snapshot_file *found = &replica->snapshots.found;
    if (file_at(sim, found) == NULL || sim->now_us < replica->full_us ||
        one_in(sim, sim->scenario.snapshot_fails_in)) {
        installed(sim, r, (struct leadership_position){.index = 0});
        return;
    }
    replica_rewinds(sim, r, found->index);
    check_copy(sim, r);
    trace(sim, "c%u has installed the snapshot at entry %llu", r, (ull)found->index);
    installed(sim, r, replica->copy);
}

/* Planted: it goes on behind the gap with what it has. */
static void skip(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    const struct etcd *store = &sim->replicas->store;
    uint64_t index = store->head.first - 1;
    replica->copy = (struct leadership_position){.index = index,
        .term = store->entries[index - 1].term,
        .hash = store_hash_at(store, index)};
    check_copy(sim, r);
}

static void found(struct sim *sim, uint32_t r, bool answered)
{
    struct its_snapshots *its = &replica_of(sim, r)->snapshots;
    if (snapshot_rules_found(&its->rules, answered ? its->found.index : 0)) {
        stage(sim, r, draw(sim, 1, sim->scenario.snapshot_takes_us), STAGE_FETCHED);
        return;
    }
    replica_event(sim, r, &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED});
}

void snapshots_fetch(struct sim *sim, uint32_t r)
{
    if (mutant_acts(sim, MUTANT_SNAPSHOT_SKIPPED)) {
        skip(sim, r);
        return;
    }
    snapshot_rules_find(&replica_of(sim, r)->snapshots.rules);
    read_newest(sim, r);
}

/* ---- both ---- */

void snapshots_open(struct sim *sim, uint32_t r)
{
    struct replica *replica = replica_of(sim, r);
    const struct scenario *s = &sim->scenario;
    const struct snapshot_options options = {.bytes = s->snapshot_bytes,
        .after_us = s->snapshot_after_us,
        .keep_us = s->snapshot_keep_us,
        .again_us = s->log_lease_us};
    snapshot_rules_begin(
        &replica->snapshots.rules, &options, replica->copy.index, replica_boot_us(sim, replica));
}

void snapshots_applied(struct sim *sim, uint32_t r, uint32_t entries)
{
    struct replica *replica = replica_of(sim, r);
    snapshot_rules_applied(&replica->snapshots.rules, replica->copy.index,
        (uint64_t)entries * ENTRY_BYTES, replica_boot_us(sim, replica));
}

static void looked(struct sim *sim, uint32_t r, bool answered)
{
    struct replica *replica = replica_of(sim, r);
    struct its_snapshots *its = &replica->snapshots;
    uint64_t now_us = replica_boot_us(sim, replica);
    if (!answered) {
        snapshot_rules_failed(&its->rules, now_us);
    } else if (snapshot_rules_looked(&its->rules, its->found.index, leads(replica), now_us)) {
        make(sim, r);
    }
}

void snapshots_happen(struct sim *sim, const struct happening *happening)
{
    uint32_t r = happening->a;
    const struct replica *replica = replica_of(sim, r);
    if (!replica->runs || replica->incarnation != happening->b) {
        return;
    }
    if (happening->type == ON_LOG_SNAPSHOT) {
        reading_arrives(sim, r);
    } else if (happening->n == STAGE_MADE) {
        made(sim, r);
    } else if (happening->n == STAGE_FETCHED) {
        fetched(sim, r);
    } else if (replica->snapshots.rules.step == SNAPSHOT_LOOKING) {
        looked(sim, r, happening->n == STAGE_ANSWERED);
    } else {
        found(sim, r, happening->n == STAGE_ANSWERED);
    }
}
