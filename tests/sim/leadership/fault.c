/* SPDX-License-Identifier: Apache-2.0
 * Faults as they strike, and their end. */
#include "world.h"

#include <string.h>

static void crash(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    bool leads = node->leads;
    uint64_t back_us = world->now_us + scenario_between(world, 1, 3 * world->scenario.lease_us);
    if (!node->runs || node->refused) {
        return;
    }
    node_stop(world, n, true);
    if (leads && world_chance(world, 400)) {
        node_resign(world, n);
        return;
    }
    world_push(world,
        (struct event){
            .due_us = back_us, .kind = EVENT_START, .node = n, .incarnation = node->incarnation});
}

static void cut(struct world *world, struct node *node)
{
    uint64_t until_us = world->now_us + scenario_between(world, 1, 4 * world->scenario.lease_us);
    uint64_t direction = prng_uniform(&world->prng, 3);
    node->cut_up_until_us = direction != 1 ? until_us : node->cut_up_until_us;
    node->cut_down_until_us = direction != 0 ? until_us : node->cut_down_until_us;
}

static void add_node(struct world *world)
{
    struct node *node = &world->nodes[NODES_MAX - 1];
    if (!node->exists) {
        node_start(world, NODES_MAX - 1);
    }
}

static void remove_node(struct world *world, uint32_t n)
{
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (world->nodes[i].removed) {
            return;
        }
    }
    world_trace(world, "c%u is removed", n);
    node_stop(world, n, false);
    world->nodes[n].removed = true;
    if (!world->nodes[NODES_MAX - 1].exists) {
        add_node(world);
    }
}

static void restore(struct world *world)
{
    if (!world->has_backup || world->restored) {
        return;
    }
    world_trace(world, "etcd is restored: from entry %llu back to %llu",
        (unsigned long long)world->store.head.index, (unsigned long long)world->backup.head.index);
    uint64_t lost_from = world->backup.head.index + 1;
    memcpy(world->old_entries, world->entries, sizeof(world->entries));
    memcpy(world->entries, world->backup_entries, sizeof(world->entries));
    world->store = world->backup;
    world->store.etcd_id += world->scenario.lies ? 1 : 0;
    world->backup_index = world->backup.head.index;
    world->restored = true;
    world->lineage = 1;
    for (uint64_t r = 1; r <= world->request_count; r++) {
        if (world->request_index[r] >= lost_from) {
            world->request_index[r] = 0;
            world->request_answered[r] = false;
        }
    }
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        world->nodes[n].forked = world->nodes[n].copy.index > world->backup_index;
    }
}

static void pause_node(struct world *world, uint32_t n, uint64_t until_us)
{
    struct node *node = &world->nodes[n];
    if (world->now_us < node->paused_until_us) {
        return;
    }
    if (world->mutant == MUTANT_CLOCK_STOPS_IN_SLEEP) {
        node->slept_us += until_us - world->now_us;
    }
    node->paused_until_us = until_us;
    world_push(world,
        (struct event){
            .due_us = until_us, .kind = EVENT_RESUME, .node = n, .incarnation = node->incarnation});
}

static void strike_node(struct world *world, uint32_t kind)
{
    uint32_t n = (uint32_t)prng_uniform(&world->prng, NODES_MAX);
    for (uint32_t i = 0; i < NODES_MAX && world_chance(world, 600); i++) {
        n = world->nodes[i].leads ? i : n; /* leaders are hit more often */
    }
    struct node *node = &world->nodes[n];
    uint64_t long_us = world->now_us + scenario_between(world, 1, 4 * world->scenario.lease_us);
    if (!node->exists || node->removed) {
        return;
    }
    world_trace(world, "fault %u strikes c%u", kind, n);
    switch (kind) {
    case FAULT_CRASH:
        crash(world, n);
        break;
    case FAULT_PAUSE:
        pause_node(world, n, long_us);
        break;
    case FAULT_LATE:
        node->pauses_late = true;
        break;
    case FAULT_CUT:
        cut(world, node);
        break;
    case FAULT_SLOW_COPY:
        node->slow_until_us = long_us;
        break;
    case FAULT_LEAVE:
        if (node->runs && !node->refused && !node->resigns &&
            world->now_us >= node->paused_until_us) {
            node_event(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_LEAVE});
        }
        break;
    default:
        remove_node(world, n);
        break;
    }
}

void fault_strike(struct world *world, uint32_t kind)
{
    switch (kind) {
    case FAULT_NO_QUORUM:
        world->no_quorum = !world->no_quorum;
        break;
    case FAULT_NO_SPACE:
        world->no_space = !world->no_space;
        break;
    case FAULT_ADD:
        add_node(world);
        break;
    case FAULT_BACKUP:
        if (world->store.has_cluster) {
            world->has_backup = true;
            world->backup = world->store;
            memcpy(world->backup_entries, world->entries, sizeof(world->entries));
        }
        break;
    case FAULT_RESTORE:
        restore(world);
        break;
    default:
        strike_node(world, kind);
        break;
    }
}

/* Faults end, and people have looked: versions are equal, a restored etcd is
 * accepted. */
void fault_heal(struct world *world)
{
    world_trace(world, "faults end");
    world->healed = true;
    world->no_quorum = world->no_space = false;
    world->scenario.lost_of_1000 = world->scenario.long_delay_of_1000 = 0;
    world->scenario.late_of_1000 = 0;
    world->accepting = world->restored;
    if (world->restored) {
        world->worker_term = world->worker_index = 0;
    }
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        struct node *node = &world->nodes[n];
        node->cut_up_until_us = node->cut_down_until_us = node->slow_until_us = 0;
        node->pauses_late = false;
        if (!node->exists || node->removed) {
            continue;
        }
        bool upgraded = world->scenario.versions && node->format_max < 2;
        if (upgraded || node->refused || world->restored) {
            node_stop(world, n, false);
        }
        node->format_max = world->scenario.versions ? 2 : 1;
        if (!node->runs) {
            node->paused_until_us = 0;
            node_start(world, n);
        }
    }
}
