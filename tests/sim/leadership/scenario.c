/* SPDX-License-Identifier: Apache-2.0
 * The scenario of a seed: times, the kinds of faults that it has, and when they
 * strike. */
#include "world.h"

#define FAULTS_MAX 24

uint64_t scenario_between(struct world *world, uint64_t from, uint64_t to)
{
    return from + prng_uniform(&world->prng, to - from + 1);
}

static void draw_nodes(struct world *world)
{
    struct scenario *scenario = &world->scenario;
    int64_t bound = scenario->clocks_in_bound ? 10000 : 200000;
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        struct node *node = &world->nodes[n];
        *node = (struct node){.format_max = scenario->versions && n > 0 ? 2 : 1};
        node->offset_us = scenario_between(world, 1, UINT64_C(36000000000));
        node->rate_ppm = (int64_t)scenario_between(world, 0, 2 * (uint64_t)bound) - bound;
        node->watches = !world_chance(world, 250);
        if (n < scenario->nodes) {
            world_push(
                world, (struct event){.due_us = scenario_between(world, 0, scenario->lease_us / 2),
                           .kind = EVENT_START,
                           .node = n});
        }
    }
}

static void draw_faults(struct world *world)
{
    const struct scenario *scenario = &world->scenario;
    uint32_t kinds[FAULT_KINDS];
    uint32_t count = 0;
    for (uint32_t kind = 1; kind < FAULT_BACKUP; kind++) {
        if (world_chance(world, 400)) {
            kinds[count++] = kind;
        }
    }
    uint64_t faults = count == 0 ? 0 : scenario_between(world, 1, FAULTS_MAX);
    for (uint64_t i = 0; i < faults; i++) {
        uint64_t at_us = scenario_between(world, scenario->lease_us / 2, scenario->faults_end_us);
        world_push(world, (struct event){.due_us = at_us,
                              .kind = EVENT_FAULT,
                              .node = kinds[prng_uniform(&world->prng, count)]});
    }
    if (world_chance(world, 150)) {
        uint64_t middle_us =
            scenario_between(world, scenario->lease_us * 2, scenario->faults_end_us);
        uint64_t backup_us = scenario_between(world, scenario->lease_us, middle_us);
        world_push(
            world, (struct event){.due_us = backup_us, .kind = EVENT_FAULT, .node = FAULT_BACKUP});
        world_push(
            world, (struct event){.due_us = middle_us, .kind = EVENT_FAULT, .node = FAULT_RESTORE});
    }
}

void scenario_draw(struct world *world)
{
    struct scenario *scenario = &world->scenario;
    uint64_t lease_us = scenario_between(world, 300, 3000) * 1000;
    *scenario = (struct scenario){.lease_us = lease_us,
        .margin_us = lease_us / 60,
        .lag_us = scenario_between(world, lease_us / 20, lease_us / 3),
        .faults_end_us = lease_us * scenario_between(world, 3, 14),
        .delay_us = scenario_between(world, lease_us / 1000, lease_us / 40),
        .long_delay_of_1000 = world_chance(world, 300) ? 30 : 0,
        .lost_of_1000 = world_chance(world, 400) ? (uint32_t)scenario_between(world, 1, 120) : 0,
        .late_of_1000 = world_chance(world, 200) ? (uint32_t)scenario_between(world, 1, 50) : 0,
        .nodes = 3,
        .clients = (uint32_t)scenario_between(world, 1, CLIENTS_MAX),
        .snapshot_entries = world_chance(world, 500) ? (uint32_t)scenario_between(world, 4, 60) : 0,
        .loop_us = scenario_between(world, lease_us / 20, lease_us / 5),
        .clocks_in_bound = !world_chance(world, 200),
        .versions = world_chance(world, 150),
        .big_entries = world_chance(world, 200),
        .lies = world_chance(world, 300)};
    scenario->end_us = scenario->faults_end_us + 16 * lease_us;
    draw_nodes(world);
    draw_faults(world);
    for (uint32_t c = 0; c < scenario->clients; c++) {
        world_push(world,
            (struct event){
                .due_us = scenario_between(world, 1, lease_us), .kind = EVENT_CLIENT, .node = c});
    }
    world_push(world, (struct event){.due_us = scenario->loop_us, .kind = EVENT_LOOP});
    world_push(world, (struct event){.due_us = scenario->faults_end_us, .kind = EVENT_HEAL});
}
