/* SPDX-License-Identifier: Apache-2.0
 * One run: events in their order, until the end of the scenario or of an
 * invariant. */
#include "world.h"

#include <string.h>

static void held(struct world *world, const struct event *event)
{
    struct node *other = &world->nodes[event->message];
    uint32_t holders = 1;
    bool there = other->runs && !other->removed && other->copy.index >= event->index &&
                 other->snapshot_count < SNAPSHOTS_MAX && !other->forked;
    if (there) {
        other->snapshots[other->snapshot_count++] = event->index;
        holders++;
    }
    if (world->mutant == MUTANT_TRIMMED_AT_OWN_SNAPSHOT) {
        holders = 2;
    }
    uint64_t kept = prng_uniform(&world->prng, 8);
    node_event(world, event->node,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_SNAPSHOT_HELD,
            .snapshot = {.index = event->index,
                .hash = store_hash_at(&world->store, event->index),
                .holders = holders,
                .trim_to = event->index > kept ? event->index - kept : 0}});
}

static void applied(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    if (world->mutant != MUTANT_LEADS_FROM_OWN_COPY) {
        node->copy = node->fetched;
        node->held += node->applying_count;
        check_copy(world, n, node->applying_lineage);
    }
    if (world->broken == NULL) {
        node_event(world, n,
            &(struct leadership_event){
                .type = LEADERSHIP_EVENT_APPLIED, .position = node->fetched});
    }
}

static void reply(struct world *world, const struct event *event)
{
    struct node *node = &world->nodes[event->node];
    engine_count(world, node);
    node->replied_us = node->active_us;
    node_event(world, event->node,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_HELLO_AHEAD,
            .hello = {.term = event->term, .index = event->index}});
}

static void answer(struct world *world, const struct event *event)
{
    struct message *message = &world->messages[event->message];
    if (event->term != 0) {
        node_event(world, event->node,
            &(struct leadership_event){.type = LEADERSHIP_EVENT_UNANSWERED,
                .unanswered = {.request = message->request, .no_space = event->index != 0}});
    } else if (message->request != UINT64_MAX) {
        shell_answer(world, message);
    }
    message->used = false;
}

/* An event of a process: of another incarnation it is dropped, of a paused one
 * it waits. */
static bool reaches(struct world *world, struct event *event)
{
    const struct node *node = &world->nodes[event->node];
    if (event->incarnation != node->incarnation || !node->runs || node->refused) {
        if (event->kind == EVENT_ANSWER) {
            world->messages[event->message].used = false;
        }
        return false;
    }
    if (world->now_us < node->paused_until_us) {
        event->due_us = node->paused_until_us;
        world_push(world, *event);
        return false;
    }
    return true;
}

static void handle_node(struct world *world, struct event *event)
{
    if (!reaches(world, event)) {
        return;
    }
    uint32_t n = event->node;
    switch (event->kind) {
    case EVENT_WAKE:
        if (event->index == world->nodes[n].wakes) {
            world->nodes[n].wake_at_us = UINT64_MAX;
            node_event(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
        }
        break;
    case EVENT_STAND:
        node_event(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_STAND});
        break;
    case EVENT_ANSWER:
        answer(world, event);
        break;
    case EVENT_WATCH:
        node_event(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_CHANGED});
        break;
    case EVENT_APPLIED:
        applied(world, n);
        break;
    case EVENT_INSTALLED:
        shell_installed(world, n);
        break;
    case EVENT_RESUME:
        engine_loop(world, n);
        break;
    case EVENT_LATE:
        engine_late(world, n);
        break;
    case EVENT_REPLY:
        reply(world, event);
        break;
    default:
        held(world, event);
        break;
    }
}

static void handle(struct world *world, struct event *event)
{
    struct node *node = &world->nodes[event->node % NODES_MAX];
    switch (event->kind) {
    case EVENT_START:
        if (!node->runs && !node->removed && node->incarnation == event->incarnation) {
            node_start(world, event->node);
        }
        break;
    case EVENT_REQUEST:
        etcd_request(world, event->message);
        break;
    case EVENT_PUT:
        etcd_put(world, event->message);
        break;
    case EVENT_LOOP:
        for (uint32_t n = 0; n < NODES_MAX && world->broken == NULL; n++) {
            struct node *each = &world->nodes[n];
            if (each->runs && world->now_us >= each->paused_until_us) {
                engine_loop(world, n);
            }
        }
        event->due_us += world->scenario.loop_us;
        world_push(world, *event);
        break;
    case EVENT_CLIENT:
        engine_client(world, event->node);
        event->due_us += world->scenario.lease_us / 12 +
                         prng_uniform(&world->prng, world->scenario.lease_us / 3);
        world_push(world, *event);
        break;
    case EVENT_FAULT:
        if (!world->healed) {
            fault_strike(world, event->node);
        }
        break;
    case EVENT_HEAL:
        fault_heal(world);
        break;
    default:
        handle_node(world, event);
        break;
    }
}

static void begin(struct world *world, uint64_t seed)
{
    world->seed = seed;
    world->prng = (struct prng){.state = prng_mix(seed)};
    world->now_us = world->serial = world->events = world->digest = 0;
    world->store = (struct etcd){
        .entries = world->entries, .entries_max = ENTRIES_MAX, .etcd_id = 40, .revision = 1};
    memset(world->entries, 0, sizeof(world->entries));
    memset(world->clients, 0, sizeof(world->clients));
    for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
        world->messages[i].used = false;
    }
    world->queued = 0;
    world->no_quorum = world->no_space = world->healed = false;
    world->restored = world->accepting = world->has_backup = false;
    world->lineage = 0;
    world->backup_index = 0;
    world->request_count = 0;
    memset(world->request_index, 0, sizeof(world->request_index));
    memset(world->request_answered, 0, sizeof(world->request_answered));
    world->answered_index = world->term_sent = 0;
    world->worker_term = world->worker_index = 0;
    world->broken = NULL;
    scenario_draw(world);
}

void world_run(struct world *world, uint64_t seed)
{
    jmp_buf panic;
    struct event event;
    world->panic = &panic;
    begin(world, seed);
    if (setjmp(panic) == 0) {
        while (world->broken == NULL && !world->store.full && world_pop(world, &event)) {
            if (event.due_us > world->scenario.end_us) {
                check_end(world);
                break;
            }
            world->now_us = event.due_us;
            world->events++;
            handle(world, &event);
        }
    }
    world->panic = NULL;
}
