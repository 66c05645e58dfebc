/* SPDX-License-Identifier: Apache-2.0
 * The small world: its coordinators' shells, and what they carry out. */
#include "explore_world.h"

#include <string.h>

#define REQUEST 1

void small_break(struct small_world *world, const char *invariant, const char *why)
{
    if (world->broken == NULL) {
        world->broken = invariant;
        world->why = why;
    }
}

uint64_t small_local_us(const struct small_world *world, uint32_t n)
{
    static const uint64_t percents[SMALL_NODES] = {99, 101, 100};
    bool slow = n == 0 && world->space->mutant == SMALL_SLOW_CLOCK;
    uint64_t percent = slow ? 80 : percents[n];
    return world->space->timed ? BASE_US + world->time_us / 100 * percent : BASE_US;
}

/* A read, a beat or another attempt may be sent at any time: their timers are
 * never due by themselves. So is, without clocks, everything. With clocks there
 * remain until when a leader may send, when it sent first, and when a follower
 * may take over. */
static void flatten_times(const struct small_world *world, struct leadership *core)
{
    bool reads_on = core->read.due_us == 0 && !core->read.in_flight;
    core->read.sent_us = BASE_US;
    core->read.due_us = reads_on ? 0 : FAR_US;
    core->guarded.sent_us = BASE_US;
    core->guarded.again_us = FAR_US;
    core->fetch_us = 0;
    if (!core->guarded.in_flight || !world->space->timed) {
        core->guarded.first_sent_us = FAR_US;
    }
    if (!world->space->timed) {
        core->now_us = BASE_US;
        core->take_over_us = FAR_US;
        core->may_send_until_us = core->may_send_until_us > 0 ? FAR_US : 0;
    }
}

static void carry_out(
    struct small_world *world, uint32_t n, const struct leadership_actions *actions);

void small_step(struct small_world *world, uint32_t n, struct leadership_event *event)
{
    struct leadership_action items[LEADERSHIP_ACTIONS_PER_STEP_MAX];
    struct leadership_actions actions = {.items = items, .capacity = CADRE_COUNT_OF(items)};
    struct leadership *core = small_core(&world->nodes[n]);
    event->now_us = small_local_us(world, n);
    core->prng.state = 0; /* the jitter is always the same */
    leadership_step(core, event, &actions);
    core->prng.state = 0;
    const char *fault = world->space->timed ? leadership_invariant(core) : NULL;
    if (fault != NULL) {
        small_break(world, "STATE", fault);
    }
    flatten_times(world, core);
    carry_out(world, n, &actions);
}

void small_start(struct small_world *world, uint32_t n)
{
    struct small_node *node = &world->nodes[n];
    struct leadership_options options = {.has_cluster = node->has_cluster,
        .cluster_id = world->store.cluster.id,
        .etcd_id = 1,
        .applied = node->copy,
        .term_seen = node->copy.term,
        .format_max = 1,
        .nonce = {.high = ++world->nonces, .low = 1},
        .new_cluster_id = {.high = 1, .low = 1},
        .lease_us = LEASE_US,
        .drift_ppm = 10000,
        .margin_us = 50,
        .lag_us = 1000,
        .tickets_max = SMALL_TICKETS};
    options.new_hash = store_cluster_hash(options.new_cluster_id);
    if (world->space->mutant == SMALL_LEADS_FROM_OWN_COPY && node->has_cluster) {
        options.applied = (struct leadership_position){.index = world->store.head.index,
            .term = world->store.head.term,
            .hash = world->store.head.hash};
    }
    memset(node->memory, 0, sizeof(node->memory));
    leadership_init(node->memory, &options);
    node->incarnation++;
    node->leads = node->submitted = node->logged = node->applying = false;
    node->has_answer = false;
    node->ticket = 0;
    node->widened_until_us = 0;
    small_step(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
}

void small_begin(struct small_world *world, const struct small_space *space)
{
    memset(world, 0, sizeof(*world));
    world->space = space;
    world->store = (struct etcd){
        .entries = world->entries, .entries_max = SMALL_ENTRIES, .etcd_id = 1, .revision = 1};
    /* The cluster is there: what CREATE does is for unit tests. */
    struct log_transaction create = {.kind = LOG_CREATE,
        .cluster = {.id = {.high = 1, .low = 1}, .etcd_id = 1, .format = 1},
        .leader = {.left = true},
        .head = {.first = 1}};
    create.head.hash = store_cluster_hash(create.cluster.id);
    store_write(&world->store, &create, &(struct payload){0});
    for (uint32_t n = 0; n < space->nodes; n++) {
        small_start(world, n);
    }
}

void small_check_copy(struct small_world *world, const struct small_node *node)
{
    struct log_hash hash = store_hash_at(&world->store, node->copy.index);
    if (node->copy.index > world->store.head.index || !log_hash_equal(&hash, &node->copy.hash)) {
        small_break(world, "ONE_LINE", "a copy is no prefix of the log");
    }
}

/* ---- actions of the core ---- */

static void send_transaction(
    struct small_world *world, uint32_t n, const struct leadership_action *action)
{
    struct small_node *node = &world->nodes[n];
    struct small_request *up = &node->up[0];
    const struct log_transaction *transaction = &action->transact.transaction;
    bool again = action->transact.attempt > 1;
    if (again && up->used && up->request == action->transact.request) {
        return; /* the same bytes are on their way */
    }
    if (!again) {
        up->has_entry = transaction->kind == LOG_APPEND;
        up->content = (struct content){.kind = transaction->term_entry ? CONTENT_TERM : CONTENT_JOB,
            .request = transaction->term_entry ? transaction->head.nonce.high : REQUEST,
            .format = 1};
    }
    up->used = up->current = true;
    up->request = action->transact.request;
    up->transaction = *transaction;
    if (again && world->space->mutant == SMALL_SENT_AS_NEW && transaction->kind == LOG_APPEND) {
        up->transaction.guard_head_revision = world->store.head.mod_revision;
        up->transaction.head.hash = world->store.head.hash;
        up->transaction.first_index = up->transaction.head.index = world->store.head.index + 1;
    }
    if (transaction->kind == LOG_TAKE_OVER && transaction->leader.term > world->space->terms) {
        world->pruned = true;
    }
}

void small_answer_client(struct small_world *world)
{
    if (world->request_index == 0) {
        small_break(world, "SAID", "the client has an answer, its request is not in the log");
    }
    world->answered = true;
}

static void carry_out(
    struct small_world *world, uint32_t n, const struct leadership_actions *actions)
{
    struct small_node *node = &world->nodes[n];
    for (size_t i = 0; i < actions->count; i++) {
        const struct leadership_action *action = &actions->items[i];
        switch (action->type) {
        case LEADERSHIP_ACTION_READ:
            node->read_request = action->read.request;
            node->read_after = action->read.after;
            node->read_entries = action->read.entries_max;
            break;
        case LEADERSHIP_ACTION_TRANSACT:
            send_transaction(world, n, action);
            break;
        case LEADERSHIP_ACTION_APPLY:
            node->applying = true;
            node->applying_to = action->apply.to;
            break;
        case LEADERSHIP_ACTION_STORE_KNOWN:
            node->has_cluster = true;
            if (node->copy.index == 0) {
                node->copy.hash = action->known.hash;
            }
            break;
        case LEADERSHIP_ACTION_LEAD:
            node->leads = true;
            if (world->space->mutant != SMALL_LEADS_FROM_OWN_COPY) {
                node->copy = action->lead.logged.at;
                small_check_copy(world, node);
            }
            break;
        case LEADERSHIP_ACTION_LOGGED:
            node->copy = action->logged.at;
            small_check_copy(world, node);
            if (node->submitted && !node->logged) {
                node->logged = true;
                small_answer_client(world);
            }
            break;
        case LEADERSHIP_ACTION_STEP_DOWN:
            node->up[1] = node->up[0].used ? node->up[0] : node->up[1];
            node->up[0].used = node->up[1].current = false;
            small_start(world, n);
            return;
        case LEADERSHIP_ACTION_REFUSE:
            small_break(world, "REFUSED", "a coordinator is refused, and etcd was not restored");
            break;
        default:
            break;
        }
    }
}
