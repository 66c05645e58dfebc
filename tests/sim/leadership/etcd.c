/* SPDX-License-Identifier: Apache-2.0
 * Requests as they arrive at the store, and their answers on the way back. */
#include "world.h"

static void notify_watches(struct world *world)
{
    for (uint32_t n = 0; n < NODES_MAX; n++) {
        const struct node *node = &world->nodes[n];
        if (node->runs && node->watches && world->now_us >= node->cut_down_until_us) {
            world_push(
                world, (struct event){.due_us = world->now_us + world->scenario.delay_us / 2 + 1,
                           .kind = EVENT_WATCH,
                           .node = n,
                           .incarnation = node->incarnation});
        }
    }
}

static void send_answer(struct world *world, uint32_t m, bool is_answer, bool no_space)
{
    struct message *message = &world->messages[m];
    const struct node *node = &world->nodes[message->node];
    bool lost = world->now_us < node->cut_down_until_us ||
                world_chance(world, world->scenario.lost_of_1000);
    if (lost) {
        message->used = false;
        return;
    }
    /* `term` 1: there is no answer, `index` 1: because of NOSPACE. */
    world_push(world, (struct event){.due_us = world->now_us + world_delay_us(world),
                          .kind = EVENT_ANSWER,
                          .node = message->node,
                          .incarnation = message->incarnation,
                          .message = m,
                          .term = is_answer ? 0 : 1,
                          .index = no_space ? 1 : 0});
}

static void take_answer(struct world *world, uint32_t m)
{
    struct message *message = &world->messages[m];
    if (!message->is_read && message->answer.applied) {
        struct node *node = &world->nodes[message->node];
        if (node->incarnation == message->incarnation) {
            node->guarded_at = world->serial;
        }
        check_transaction(world, message);
        notify_watches(world);
    }
    message->lineage = world->lineage;
    send_answer(world, m, true, false);
}

void etcd_put(struct world *world, uint32_t m)
{
    struct message *message = &world->messages[m];
    store_write(&world->store, &message->transaction, &message->payload);
    message->answer =
        (struct leadership_answer){.applied = true, .revision = world->store.revision};
    take_answer(world, m);
}

/* No quorum: the request is lost, or waits and is handled when there is one. */
static void refuse_request(struct world *world, uint32_t m)
{
    uint64_t kind = prng_uniform(&world->prng, 3);
    if (kind == 0) {
        world->messages[m].used = false;
    } else if (kind == 1) {
        send_answer(world, m, false, false);
    } else {
        world_push(world, (struct event){.due_us = world->now_us + world->scenario.lease_us / 3 + 1,
                              .kind = EVENT_REQUEST,
                              .message = m});
    }
}

void etcd_request(struct world *world, uint32_t m)
{
    struct message *message = &world->messages[m];
    if (world->no_quorum) {
        refuse_request(world, m);
        return;
    }
    if (message->is_read) {
        store_read(
            &world->store, &message->after, message->entries_max, message->entries, &message->read);
        take_answer(world, m);
        return;
    }
    if (world->no_space) {
        send_answer(world, m, false, true);
        return;
    }
    bool holds = store_guard_holds(&world->store, &message->transaction, message->checks);
    if (world->mutant == MUTANT_LOOK_THEN_PUT && holds && message->transaction.kind == LOG_APPEND) {
        world_push(world,
            (struct event){
                .due_us = world->now_us + world_delay_us(world), .kind = EVENT_PUT, .message = m});
        return;
    }
    store_transact(
        &world->store, &message->transaction, &message->payload, message->checks, &message->answer);
    world_trace(world, "etcd: %s of c%u, kind %d, term %llu, to entry %llu",
        message->answer.applied ? "applies" : "refuses", message->node,
        (int)message->transaction.kind, (unsigned long long)message->transaction.head.term,
        (unsigned long long)message->transaction.head.index);
    take_answer(world, m);
}
