/* SPDX-License-Identifier: Apache-2.0
 * What stands for coordinator/engine: a leader's tickets and what is sent for
 * them, a worker that always replies, and clients that repeat their requests at
 * any coordinator. */
#include "world.h"

#include "common/pure/assert.h"

#define WORKER_LEASES 3 /* of the leader's: after that a silent worker is given up */

void engine_begin(struct world *world, uint32_t n, uint64_t index)
{
    struct node *node = &world->nodes[n];
    node->leads = true;
    node->suspended = node->pauses_late = false;
    node->ticket_next = node->said_next = 1;
    node->snapshot_at = index;
    node->active_us = node->replied_us = 0;
    node->counted_us = world_local_us(world, node);
}

/* The clock of coordinator/core stands still while the leader is suspended. */
void engine_count(struct world *world, struct node *node)
{
    uint64_t local_us = world_local_us(world, node);
    uint64_t end_us = local_us;
    if (world->mutant != MUTANT_SUSPENDED_TIMERS_RUN) {
        uint64_t until_us = leadership_may_send_until_us(node->core);
        end_us = node->suspended ? node->counted_us : (until_us < local_us ? until_us : local_us);
    }
    if (node->leads && end_us > node->counted_us) {
        node->active_us += end_us - node->counted_us;
    }
    node->counted_us = local_us;
}

static struct leadership_view view_of(const struct node *node)
{
    struct leadership_view view;
    leadership_show(node->core, &view);
    return view;
}

static bool has_room(const struct node *node)
{
    return node->ticket_next - node->said_next < TICKETS_MAX &&
           leadership_tickets_free(node->core) > 0;
}

static void answer_client(
    struct world *world, uint32_t n, uint32_t c, uint64_t request, uint64_t index)
{
    struct client *client = &world->clients[c];
    check_sending(world, n, view_of(&world->nodes[n]).term, false);
    if (world->request_index[request] == 0 && !world->restored) {
        world_break(world, "SAID", "c%u answers request %llu, which is not in the log", n,
            (unsigned long long)request);
    }
    world->request_answered[request] = world->request_index[request] != 0;
    if (index > world->answered_index) {
        world->answered_index = index;
    }
    if (client->request == request) {
        client->request = 0;
        client->seen_index = index > client->seen_index ? index : client->seen_index;
        world_trace(
            world, "client %u has its answer to %llu by c%u", c, (unsigned long long)request, n);
    }
}

static void send_confirmed(struct world *world, uint32_t n, const struct ticket *ticket)
{
    check_sending(world, n, view_of(&world->nodes[n]).term, false);
    if (world->nodes[n].guarded_at <= ticket->decided_at) {
        world_break(
            world, "SAID", "c%u sends a RESET, and its guard has not held since it was decided", n);
    }
}

void engine_say(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    while (node->said_next < node->ticket_next) {
        const struct ticket *ticket = &node->tickets[node->said_next % TICKETS_MAX];
        if (!ticket->logged || !node_may_send(world, node)) {
            return;
        }
        if (ticket->kind == LEADERSHIP_CONFIRM) {
            send_confirmed(world, n, ticket);
        } else if (ticket->content.kind == CONTENT_JOB) {
            uint64_t request = ticket->content.request;
            answer_client(world, n, ticket->client, request, world->request_index[request]);
        }
        node->said_next++;
    }
}

void engine_logged(struct world *world, uint32_t n, const struct leadership_logged *logged)
{
    struct node *node = &world->nodes[n];
    for (uint64_t t = node->said_next; t <= logged->ticket; t++) {
        node->tickets[t % TICKETS_MAX].logged = true;
    }
    if (logged->entries > 0 && world->mutant != MUTANT_LEADS_FROM_OWN_COPY) {
        node->copy = logged->at;
        node->held += logged->entries;
        check_copy(world, n, node->answer_lineage);
    }
    engine_say(world, n);
}

static void offer(struct world *world, uint32_t n, const struct ticket *ticket)
{
    struct node *node = &world->nodes[n];
    uint64_t number = node->ticket_next++;
    node->tickets[number % TICKETS_MAX] = *ticket;
    node->tickets[number % TICKETS_MAX].decided_at = world->serial;
    node_event(world, n,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_OFFER,
            .ticket = {.ticket = number,
                .kind = ticket->kind,
                .bytes = ticket->content.bytes,
                .format = ticket->content.kind == CONTENT_FORMAT ? ticket->content.format : 0}});
}

static struct content content_of(
    struct world *world, const struct node *node, enum content_kind kind)
{
    uint32_t format = world->store.cluster.format;
    bool big = world->scenario.big_entries && world_chance(world, 150);
    return (struct content){.kind = kind,
        .request = prng_next(&world->prng),
        .format = format < node->format_max ? format : node->format_max,
        .bytes = big ? (uint32_t)prng_uniform(&world->prng, 3000000) + 1 : 200};
}

static void offer_some(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    struct ticket ticket = {.kind = LEADERSHIP_LAGGING};
    if (!has_room(node) || world->now_us + 4 * world->scenario.lease_us > world->scenario.end_us) {
        return;
    }
    if (world_chance(world, 120)) {
        ticket.kind = LEADERSHIP_CONFIRM;
        if (world->mutant == MUTANT_CONFIRM_NOT_AWAITED) {
            ticket.decided_at = world->serial;
            send_confirmed(world, n, &ticket);
        }
        offer(world, n, &ticket);
    } else if (world_chance(world, 250)) {
        ticket.content = content_of(world, node, CONTENT_LAGGING);
        offer(world, n, &ticket);
    } else if (world->scenario.versions && node->format_max > 1 && world_chance(world, 15)) {
        ticket.kind = LEADERSHIP_SYNC;
        ticket.content = content_of(world, node, CONTENT_FORMAT);
        ticket.content.format = 2;
        offer(world, n, &ticket);
    }
}

/* Frames that need no record: releases. The worker's replies carry the highest
 * it has seen. */
static void send_frames(struct world *world, uint32_t n, bool late)
{
    const struct node *node = &world->nodes[n];
    struct leadership_view view = view_of(node);
    check_sending(world, n, view.term, late);
    if (view.term > world->worker_term) {
        world->worker_term = view.term;
        world->worker_index = 0;
    }
    if (view.term == world->worker_term && view.head.index > world->worker_index) {
        world->worker_index = view.head.index;
    }
    world_push(world, (struct event){.due_us = world->now_us + world->scenario.delay_us,
                          .kind = EVENT_REPLY,
                          .node = n,
                          .incarnation = node->incarnation,
                          .term = world->worker_term,
                          .index = world->worker_index});
}

static void make_snapshot(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    uint64_t every = world->scenario.snapshot_entries;
    uint64_t index = node->copy.index;
    if (every == 0 || index < node->snapshot_at + every || node->snapshot_count == SNAPSHOTS_MAX) {
        return;
    }
    node->snapshot_at = index;
    node->snapshots[node->snapshot_count++] = index;
    node->durable = index;
    uint32_t other = (n + 1 + (uint32_t)prng_uniform(&world->prng, NODES_MAX - 1)) % NODES_MAX;
    world_push(world, (struct event){.due_us = world->now_us + world_delay_us(world) * 3,
                          .kind = EVENT_HELD,
                          .node = n,
                          .incarnation = node->incarnation,
                          .message = other,
                          .index = index});
}

void engine_loop(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    if (!node->leads) {
        return;
    }
    engine_count(world, node);
    if (!node->suspended &&
        node->active_us > node->replied_us + WORKER_LEASES * world->scenario.lease_us) {
        world_break(world, "GIVEN_UP", "c%u gives up a worker that replied to all it received", n);
    }
    if (node_may_send(world, node)) {
        if (node->pauses_late) {
            node->pauses_late = false;
            node->paused_until_us =
                world->now_us + prng_uniform(&world->prng, 3 * world->scenario.lease_us);
            world_push(world, (struct event){.due_us = node->paused_until_us,
                                  .kind = EVENT_LATE,
                                  .node = n,
                                  .incarnation = node->incarnation});
            return;
        }
        send_frames(world, n, false);
    }
    if (!node->suspended && node->leads) {
        offer_some(world, n);
    }
    if (node->leads) {
        make_snapshot(world, n);
    }
}

void engine_late(struct world *world, uint32_t n)
{
    if (world->nodes[n].leads) {
        send_frames(world, n, true);
    }
}

static void submit(struct world *world, uint32_t n, uint32_t c, uint64_t request)
{
    struct node *node = &world->nodes[n];
    uint64_t index = world->request_index[request];
    bool known = index != 0 && index <= node->copy.index;
    if (known && world->mutant != MUTANT_NO_REQUEST_ID) {
        answer_client(world, n, c, request, index);
        return;
    }
    for (uint64_t t = node->said_next; t < node->ticket_next; t++) {
        const struct ticket *ticket = &node->tickets[t % TICKETS_MAX];
        bool same = ticket->content.kind == CONTENT_JOB && ticket->content.request == request;
        if (same && world->mutant != MUTANT_NO_REQUEST_ID) {
            return; /* it is on its way: the answer follows */
        }
    }
    if (!has_room(node)) {
        return;
    }
    struct ticket ticket = {
        .kind = LEADERSHIP_SYNC, .client = c, .content = content_of(world, node, CONTENT_JOB)};
    ticket.content.request = request;
    if (world->mutant == MUTANT_ANSWERED_BEFORE_LOG) {
        answer_client(world, n, c, request, 0);
    }
    offer(world, n, &ticket);
}

/* A list of jobs: it shows at least what any answer before it showed. */
static void read_list(struct world *world, uint32_t n, uint32_t c)
{
    const struct node *node = &world->nodes[n];
    struct client *client = &world->clients[c];
    struct leadership_view view = view_of(node);
    if (node->said_next < node->ticket_next || view.head.index < client->seen_index) {
        return; /* it would wait */
    }
    check_sending(world, n, view.term, false);
    if (view.head.index < world->answered_index && world->scenario.clocks_in_bound &&
        !world->restored) {
        world_break(world, "BACK", "c%u shows entry %llu, an answer before showed %llu", n,
            (unsigned long long)view.head.index, (unsigned long long)world->answered_index);
    }
    client->seen_index = view.head.index;
}

void engine_client(struct world *world, uint32_t c)
{
    struct client *client = &world->clients[c];
    uint32_t n = (uint32_t)prng_uniform(&world->prng, NODES_MAX);
    bool quiet = world->now_us + 6 * world->scenario.lease_us > world->scenario.end_us;
    for (uint32_t i = 0; i < NODES_MAX && quiet; i++) {
        n = world->nodes[i].leads ? i : n; /* it asks all */
    }
    struct node *node = &world->nodes[n];
    if (client->request == 0 && !quiet && world->request_count + 1 < REQUESTS_MAX) {
        client->request = ++world->request_count;
    }
    bool reaches = node->runs && node->leads && !node->suspended &&
                   world->now_us >= node->paused_until_us && node_may_send(world, node);
    if (!reaches) {
        return;
    }
    if (client->request != 0) {
        submit(world, n, c, client->request);
    } else {
        read_list(world, n, c);
    }
}
