/* SPDX-License-Identifier: Apache-2.0
 * A coordinator's process: its core, its SQLite file, and the shell that
 * carries out actions. */
#include "world.h"

#include <string.h>

#include "common/pure/assert.h"

#define DIGEST_EACH 16 /* events */

static struct leadership_options options_of(struct world *world, struct node *node)
{
    const struct scenario *scenario = &world->scenario;
    struct leadership_options options = {.has_cluster = node->has_cluster,
        .cluster_id = node->cluster_id,
        .etcd_id = node->etcd_id,
        .applied = node->copy,
        .term_seen = node->term_seen,
        .format_max = node->format_max,
        .accept_restored = world->accepting,
        .nonce = {.high = prng_next(&world->prng) | 1, .low = prng_next(&world->prng)},
        .new_cluster_id = {.high = prng_next(&world->prng) | 1, .low = 7},
        .seed = prng_next(&world->prng),
        .lease_us = scenario->lease_us,
        .drift_ppm = 10000,
        .margin_us = scenario->margin_us,
        .lag_us = scenario->lag_us,
        .tickets_max = TICKETS_MAX};
    options.new_hash = store_cluster_hash(options.new_cluster_id);
    if (world->mutant == MUTANT_LEADS_FROM_OWN_COPY && node->has_cluster) {
        options.applied = (struct leadership_position){.index = world->store.head.index,
            .term = world->store.head.term,
            .hash = world->store.head.hash};
    }
    if (world->mutant == MUTANT_NEWER_FORMAT_SKIPPED) {
        options.format_max = 9;
    }
    return options;
}

static void schedule(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    uint64_t wake_us = leadership_wake_us(node->core);
    if (wake_us == UINT64_MAX) {
        return;
    }
    uint64_t real_us = world_real_us(world, node, wake_us);
    if (world_chance(world, world->scenario.late_of_1000)) {
        real_us += prng_uniform(&world->prng, world->scenario.lease_us);
    }
    if (real_us < node->wake_at_us) {
        node->wake_at_us = real_us;
        world_push(world, (struct event){.due_us = real_us,
                              .kind = EVENT_WAKE,
                              .node = n,
                              .incarnation = node->incarnation,
                              .index = ++node->wakes});
    }
}

static void begin_process(struct world *world, uint32_t n, bool waits)
{
    struct node *node = &world->nodes[n];
    struct leadership_options options = options_of(world, node);
    options.waits = waits;
    CADRE_ASSERT(!node->runs && !node->removed);
    CADRE_ASSERT(leadership_bytes(TICKETS_MAX) <= CORE_BYTES);
    node->exists = node->runs = true;
    node->refused = node->leads = node->suspended = node->resigns = false;
    node->incarnation++;
    node->kept_request = 0;
    node->wake_at_us = UINT64_MAX;
    node->core = leadership_init(node->memory, &options);
}

/* A third of them wait for their names, for up to three leases. */
void node_start(struct world *world, uint32_t n)
{
    bool waits = world_chance(world, 333);
    begin_process(world, n, waits);
    if (waits) {
        world_push(world,
            (struct event){
                .due_us = world->now_us + prng_uniform(&world->prng, 3 * world->scenario.lease_us),
                .kind = EVENT_STAND,
                .node = n,
                .incarnation = world->nodes[n].incarnation});
    }
    world_trace(
        world, "c%u starts, copy at %llu", n, (unsigned long long)world->nodes[n].copy.index);
    node_event(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
}

void node_resign(struct world *world, uint32_t n)
{
    struct leadership_view view;
    leadership_show(world->nodes[n].core, &view);
    begin_process(world, n, false);
    world_trace(world, "c%u resigns for the process that died", n);
    world->nodes[n].resigns = true;
    node_event(
        world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_RESIGN, .nonce = view.nonce});
}

static struct log_hash hash_of_copy(
    const struct world *world, const struct node *node, uint64_t index)
{
    if (node->forked && index > world->backup_index) {
        return world->old_entries[index - 1].hash;
    }
    return store_hash_at(&world->store, index);
}

static uint64_t term_of_copy(const struct world *world, const struct node *node, uint64_t index)
{
    const struct stored_entry *entries =
        node->forked && index > world->backup_index ? world->old_entries : world->entries;
    return index == 0 ? 0 : entries[index - 1].term;
}

void node_stop(struct world *world, uint32_t n, bool loses_tail)
{
    struct node *node = &world->nodes[n];
    if (!node->runs) {
        return;
    }
    node->runs = node->leads = false;
    node->incarnation++;
    if (loses_tail && node->has_cluster && node->copy.index > node->durable) {
        uint64_t kept =
            node->durable + prng_uniform(&world->prng, node->copy.index - node->durable + 1);
        node->copy = (struct leadership_position){.index = kept,
            .term = term_of_copy(world, node, kept),
            .hash = hash_of_copy(world, node, kept)};
        node->held = kept;
        node->forked = node->forked && kept > world->backup_index;
    }
    world_trace(world, "c%u stops, copy at %llu", n, (unsigned long long)node->copy.index);
}

bool node_may_send(const struct world *world, const struct node *node)
{
    uint64_t local_us = world_local_us(world, node);
    struct leadership_view view;
    if (!node->leads || !node->runs) {
        return false;
    }
    if (world->mutant == MUTANT_TIME_FROM_ANSWER && local_us < node->widened_until_us) {
        return true;
    }
    leadership_show(node->core, &view);
    if (world->mutant == MUTANT_TIME_NOT_CHECKED) {
        return view.state == LEADERSHIP_LEADING;
    }
    return local_us < leadership_may_send_until_us(node->core);
}

void node_event(struct world *world, uint32_t n, struct leadership_event *event)
{
    struct leadership_action items[LEADERSHIP_ACTIONS_PER_STEP_MAX];
    struct leadership_actions actions = {.items = items, .capacity = CADRE_COUNT_OF(items)};
    struct node *node = &world->nodes[n];
    event->now_us = world_local_us(world, node);
    engine_count(world, node);
    leadership_step(node->core, event, &actions);
    const char *fault = leadership_invariant(node->core);
    if (fault != NULL) {
        world_break(world, "STATE", "c%u: %s", n, fault);
    }
    if (world->events % DIGEST_EACH == 0) {
        world->digest = prng_mix(world->digest ^ leadership_digest(node->core));
    }
    uint32_t incarnation = node->incarnation;
    shell_carry_out(world, n, &actions);
    if (node->runs && node->incarnation == incarnation) {
        schedule(world, n);
    }
}
