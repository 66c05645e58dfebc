/* SPDX-License-Identifier: Apache-2.0
 * The shell of a coordinator: requests to the store and their answers, and
 * other actions. */
#include "world.h"

#include "common/pure/assert.h"

static void post(struct world *world, uint32_t m)
{
    const struct node *node = &world->nodes[world->messages[m].node];
    bool cut = world->now_us < node->cut_up_until_us;
    if (cut || world_chance(world, world->scenario.lost_of_1000)) {
        world->messages[m].used = false;
        return;
    }
    world_push(world,
        (struct event){
            .due_us = world->now_us + world_delay_us(world), .kind = EVENT_REQUEST, .message = m});
}

static uint32_t new_message(struct world *world, uint32_t n, uint64_t request, bool is_read)
{
    uint32_t m = world_take_message(world);
    struct message *message = &world->messages[m];
    message->is_read = is_read;
    message->node = n;
    message->incarnation = world->nodes[n].incarnation;
    message->request = request;
    message->checks = STORE_CHECKS_ALL;
    return m;
}

static void send_read(struct world *world, uint32_t n, const struct leadership_action *action)
{
    uint32_t m = new_message(world, n, action->read.request, true);
    uint32_t most = action->read.entries_max;
    world->messages[m].after = action->read.after;
    world->messages[m].entries_max = most < READ_ENTRIES ? most : READ_ENTRIES;
    post(world, m);
}

/* The contents of an append, from the engine's tickets. */
static void build(const struct node *node, const struct log_transaction *transaction,
    uint32_t format, struct payload *payload)
{
    payload->count = 0;
    if (transaction->term_entry) {
        payload->contents[payload->count++] = (struct content){
            .kind = CONTENT_TERM, .request = transaction->head.nonce.low, .format = format};
        return;
    }
    if (transaction->kind != LOG_APPEND) {
        return;
    }
    for (uint64_t t = transaction->first_ticket; t <= transaction->last_ticket; t++) {
        const struct ticket *ticket = &node->tickets[t % TICKETS_MAX];
        if (ticket->kind != LEADERSHIP_CONFIRM) {
            CADRE_ASSERT(payload->count < CADRE_COUNT_OF(payload->contents));
            payload->contents[payload->count++] = ticket->content;
        }
    }
    CADRE_ASSERT(payload->count == transaction->head.index + 1 - transaction->first_index);
}

/* The second half of an append goes beside the first one, and is not guarded by
 * the head. */
static void send_in_two(struct world *world, uint32_t n, uint32_t m)
{
    struct message *first = &world->messages[m];
    uint32_t half = first->payload.count / 2;
    uint32_t other = new_message(world, n, UINT64_MAX, false);
    struct message *second = &world->messages[other];
    second->transaction = first->transaction;
    second->payload.count = 0;
    second->checks = STORE_CHECKS_LEADER;
    for (uint32_t i = half; i < first->payload.count; i++) {
        second->payload.contents[second->payload.count++] = first->payload.contents[i];
    }
    first->payload.count = half;
    first->transaction.head.index -= second->payload.count;
    second->transaction.first_index += half;
    second->transaction.head.hash = store_hash_after(&first->transaction, &first->payload);
    post(world, other);
}

static void send_transaction(
    struct world *world, uint32_t n, const struct leadership_action *action)
{
    struct node *node = &world->nodes[n];
    const struct log_transaction *transaction = &action->transact.transaction;
    uint32_t m = new_message(world, n, action->transact.request, false);
    struct message *message = &world->messages[m];
    if (action->transact.attempt == 1) {
        node->kept_request = action->transact.request;
        uint32_t format = world->store.cluster.format;
        build(
            node, transaction, format < node->format_max ? format : node->format_max, &node->kept);
    }
    CADRE_ASSERT(node->kept_request == action->transact.request);
    message->transaction = *transaction;
    message->payload = node->kept;
    if (world->mutant == MUTANT_NO_GUARD && transaction->kind == LOG_APPEND) {
        message->checks = 0;
    }
    if (world->mutant == MUTANT_PIECES_LEFT_OUT && transaction->kind == LOG_PIECES) {
        message->transaction.kind = LOG_BEAT;
    }
    if (world->mutant == MUTANT_REVISION_ONLY) {
        message->checks = STORE_CHECKS_HEAD;
    }
    if (world->mutant == MUTANT_UNKNOWN_SENT_AS_NEW && action->transact.attempt > 1 &&
        transaction->kind == LOG_APPEND && world->store.head.term == transaction->head.term) {
        uint32_t entries = node->kept.count;
        message->transaction.guard_head_revision = world->store.head.mod_revision;
        message->transaction.head.hash = world->store.head.hash;
        message->transaction.first_index = world->store.head.index + 1;
        message->transaction.head.index = world->store.head.index + entries;
    }
    if (world->mutant == MUTANT_TWO_IN_FLIGHT && action->transact.attempt == 1 &&
        node->kept.count >= 2) {
        send_in_two(world, n, m);
    }
    post(world, m);
}

static void fetch_snapshot(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    uint64_t index = world->store.snapshot_index;
    bool held = false;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        const struct node *holder = &world->nodes[i];
        for (uint32_t k = 0; k < holder->snapshot_count; k++) {
            held = held || (holder->runs && holder->snapshots[k] == index);
        }
    }
    node->fetched = (struct leadership_position){0};
    if (held && index > 0 && !world->no_quorum) {
        node->fetched = (struct leadership_position){.index = index,
            .term = world->entries[index - 1].term,
            .hash = store_hash_at(&world->store, index)};
    }
    world_push(world, (struct event){.due_us = world->now_us + world_delay_us(world) * 5,
                          .kind = EVENT_INSTALLED,
                          .node = n,
                          .incarnation = node->incarnation});
}

void shell_installed(struct world *world, uint32_t n)
{
    struct node *node = &world->nodes[n];
    if (node->fetched.index > node->copy.index) {
        bool still = node->fetched.index <= world->store.head.index;
        if (!world->restored || still) {
            node->copy = node->fetched;
            node->durable = node->held = node->copy.index;
            world->installs++;
            check_copy(world, n, world->lineage);
        } else {
            node->fetched.index = 0;
        }
    }
    node_event(world, n,
        &(struct leadership_event){
            .type = LEADERSHIP_EVENT_SNAPSHOT_INSTALLED, .position = node->fetched});
}

static void apply(struct world *world, uint32_t n, const struct leadership_action *action)
{
    struct node *node = &world->nodes[n];
    uint64_t took_us = world->scenario.delay_us / 4 + 1;
    if (world->now_us < node->slow_until_us) {
        took_us = prng_uniform(&world->prng, world->scenario.lease_us) + 1;
    }
    node->fetched = action->apply.to;
    node->applying_lineage = node->answer_lineage;
    node->applying_count = 0;
    for (uint32_t i = 0; i < action->apply.count; i++) {
        bool skips = node->reading->entries[i].format > node->format_max; /* of a mutant */
        node->applying_count += skips ? 0 : 1;
    }
    world_push(world, (struct event){.due_us = world->now_us + took_us,
                          .kind = EVENT_APPLIED,
                          .node = n,
                          .incarnation = node->incarnation});
}

static void store_known(struct node *node, const struct leadership_action *action)
{
    if (!node->has_cluster) {
        node->copy.hash = action->known.hash;
    }
    node->has_cluster = true;
    node->cluster_id = action->known.cluster_id;
    node->etcd_id = action->known.etcd_id;
    node->term_seen = action->known.term;
}

static void end(struct world *world, uint32_t n, const char *text)
{
    world_trace(world, "c%u ends: %s", n, text);
    node_stop(world, n, false);
    world_push(world, (struct event){.due_us = world->now_us + world->scenario.delay_us * 4,
                          .kind = EVENT_START,
                          .node = n,
                          .incarnation = world->nodes[n].incarnation});
}

static void carry_out_one(struct world *world, uint32_t n, const struct leadership_action *action)
{
    struct node *node = &world->nodes[n];
    switch (action->type) {
    case LEADERSHIP_ACTION_READ:
        send_read(world, n, action);
        break;
    case LEADERSHIP_ACTION_TRANSACT:
        send_transaction(world, n, action);
        break;
    case LEADERSHIP_ACTION_APPLY:
        apply(world, n, action);
        break;
    case LEADERSHIP_ACTION_FETCH_SNAPSHOT:
        fetch_snapshot(world, n);
        break;
    case LEADERSHIP_ACTION_DISCARD:
        node->copy = (struct leadership_position){.hash = store_hash_at(&world->store, 0)};
        node->forked = false;
        node->durable = node->held = 0;
        break;
    case LEADERSHIP_ACTION_SNAPSHOT_STORED:
        if (action->stored > world->store.snapshot_index && !world->restored) {
            world_break(world, "TRIM", "c%u takes snapshot %llu as stored, the newest is %llu", n,
                (unsigned long long)action->stored,
                (unsigned long long)world->store.snapshot_index);
        }
        break;
    case LEADERSHIP_ACTION_STORE_KNOWN:
        store_known(node, action);
        break;
    case LEADERSHIP_ACTION_LEAD:
        world->leaderships++;
        if (world->mutant != MUTANT_LEADS_FROM_OWN_COPY) {
            node->copy = action->lead.logged.at;
            node->held++;
            check_copy(world, n, node->answer_lineage);
        }
        world_trace(world, "c%u leads in term %llu from entry %llu", n,
            (unsigned long long)action->lead.term,
            (unsigned long long)action->lead.logged.at.index);
        engine_begin(world, n, action->lead.logged.at.index);
        break;
    case LEADERSHIP_ACTION_LOGGED:
        engine_logged(world, n, &action->logged);
        break;
    case LEADERSHIP_ACTION_SUSPEND:
        node->suspended = true;
        world->suspensions++;
        world_trace(world, "c%u is suspended", n);
        break;
    case LEADERSHIP_ACTION_RESUME:
        node->suspended = false;
        engine_say(world, n);
        break;
    case LEADERSHIP_ACTION_STEP_DOWN:
        end(world, n, action->text);
        break;
    case LEADERSHIP_ACTION_REFUSE:
        node->refused = true;
        node->leads = false;
        world->refusals++;
        world_trace(world, "c%u is refused: %s", n, action->text);
        check_refused(world, n, action->text);
        break;
    }
}

void shell_carry_out(struct world *world, uint32_t n, struct leadership_actions *actions)
{
    uint32_t incarnation = world->nodes[n].incarnation;
    for (size_t i = 0; i < actions->count; i++) {
        if (world->nodes[n].incarnation == incarnation) {
            carry_out_one(world, n, &actions->items[i]);
        }
    }
}

/* A mutant: the entry in the middle is hidden, and the rest is numbered to fit.
 */
static void hide_entry(struct message *message)
{
    struct leadership_read *read = &message->read;
    if (read->entry_count < 3 || read->entries[read->entry_count - 1].index == read->head.index) {
        return;
    }
    read->entry_count--;
    for (uint32_t i = 1; i < read->entry_count; i++) {
        message->entries[i] = message->entries[i + 1];
        message->entries[i].index--;
    }
}

void shell_answer(struct world *world, struct message *message)
{
    uint32_t n = message->node;
    struct node *node = &world->nodes[n];
    if (message->is_read) {
        message->read.request = message->request;
        message->read.entries = message->entries;
        node->answer_lineage = message->lineage;
        if (world->mutant == MUTANT_GAP_APPLIED) {
            hide_entry(message);
        }
        node->reading = message;
        node_event(world, n,
            &(struct leadership_event){.type = LEADERSHIP_EVENT_READ, .read = message->read});
        node->reading = NULL;
        return;
    }
    struct leadership_answer answer = message->answer;
    answer.request = message->request;
    answer.hash = store_hash_after(&message->transaction, &message->payload);
    node->answer_lineage = message->lineage;
    if (world->mutant == MUTANT_TIME_FROM_ANSWER && answer.applied) {
        node->widened_until_us = world_local_us(world, node) + world->scenario.lease_us -
                                 world->scenario.lease_us / 50 - world->scenario.margin_us;
    }
    node_event(
        world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_ANSWERED, .answer = answer});
}
