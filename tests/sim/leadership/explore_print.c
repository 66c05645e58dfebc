/* SPDX-License-Identifier: Apache-2.0
 * Fingerprints of the small world: states that behave alike get the same one.
 * Revisions, beats and nonces are only ever compared for being equal, so they
 * count by the order in which they appear; times count relative to the clock of
 * their coordinator, those that have passed are equal. */
#include "explore_world.h"

#define NAMES_MAX 64

struct names {
    uint64_t values[NAMES_MAX];
    uint32_t count;
};

struct print {
    uint64_t digest;
    struct names revisions, beats, nonces;
};

static uint64_t name_of(struct names *names, uint64_t value)
{
    for (uint32_t i = 0; i < names->count; i++) {
        if (names->values[i] == value) {
            return i;
        }
    }
    CADRE_ASSERT(names->count < NAMES_MAX);
    names->values[names->count] = value;
    return names->count++;
}

static void add(struct print *print, uint64_t value)
{
    print->digest = prng_mix(print->digest ^ value);
}

static void add_nonce(struct print *print, struct log_nonce nonce)
{
    add(print, name_of(&print->nonces, prng_mix(nonce.high) ^ nonce.low));
}

static void add_leader(struct print *print, const struct log_leader *leader)
{
    add(print, leader->term);
    add(print, leader->left);
    add_nonce(print, leader->nonce);
    add(print, name_of(&print->revisions, leader->mod_revision));
}

static void add_head(struct print *print, const struct log_head *head)
{
    add(print, head->term);
    add(print, head->index);
    add_nonce(print, head->nonce);
    add(print, name_of(&print->beats, head->term << 32 | head->beat));
    add(print, name_of(&print->revisions, head->mod_revision));
}

static void add_transaction(struct print *print, const struct log_transaction *transaction)
{
    add(print, (uint64_t)transaction->kind);
    add(print, transaction->first_index);
    add(print, transaction->term_entry);
    add_leader(print, &transaction->guard_leader);
    add(print, name_of(&print->revisions, transaction->guard_head_revision));
    add_leader(print, &transaction->leader);
    add_head(print, &transaction->head);
}

static void add_time(struct print *print, uint64_t now_us, uint64_t time_us)
{
    add(print, time_us > now_us ? time_us - now_us : 0);
}

/* Times that have passed are all the same. */
static void add_times(struct print *print, const struct leadership *core, uint64_t now_us)
{
    const struct leadership_options *options = &core->options;
    uint64_t until_us = core->guarded.first_sent_us + options->lease_us - options->lease_us / 50 -
                        options->margin_us;
    bool follows = core->state == LEADERSHIP_FOLLOWER && core->has_store;
    add_time(print, now_us, follows ? core->take_over_us : 0);
    add_time(print, now_us, core->guarded.in_flight ? until_us : 0);
    add_time(print, now_us, core->may_send_until_us);
}

static void add_core(struct print *print, const struct leadership *core)
{
    add(print, (uint64_t)core->state);
    add(print, core->options.has_cluster);
    add(print, core->options.term_seen);
    add(print, core->has_store);
    if (core->has_store) {
        add_leader(print, &core->leader);
        add_head(print, &core->head);
        add(print, core->takes_over_now);
    }
    add(print, core->applied.index);
    add(print, core->applying);
    add(print, core->read.in_flight && core->read.with_entries);
    add(print, core->guarded.in_flight);
    add(print, core->guarded.in_flight && core->guarded.attempt > 1);
    if (core->guarded.in_flight) {
        add_transaction(print, &core->guarded.transaction);
    }
    add(print, core->term);
    add_nonce(print, core->nonce);
    add(print, core->may_send_until_us > 0);
    add(print, core->queue_count);
    add(print, core->urgent);
}

static void add_node(
    struct print *print, struct small_world *world, struct small_node *node, uint64_t now_us)
{
    struct leadership *core = small_core(node);
    add_core(print, core);
    add(print, node->copy.index);
    add(print, node->copy.term);
    for (uint32_t i = 0; i < 2; i++) {
        add(print, node->up[i].used);
        if (node->up[i].used) {
            add(print, node->up[i].has_entry ? (uint64_t)node->up[i].content.kind : 0);
            add_transaction(print, &node->up[i].transaction);
        }
    }
    /* What a dead process has sent before counts by its bytes only; what is kept
     * to be sent again is in the core. */
    bool answers = node->has_answer && core->guarded.in_flight &&
                   node->answer.request == core->guarded.request;
    add(print, answers);
    if (answers) {
        add(print, node->answer.applied);
        add(print, name_of(&print->revisions, node->answer.revision));
        add_leader(print, &node->answer.leader);
        add_head(print, &node->answer.head);
    }
    add(print, node->leads);
    add(print, node->submitted);
    add(print, node->logged);
    if (world->space->timed) {
        add_times(print, core, now_us);
        add_time(print, now_us, node->widened_until_us);
    }
}

uint64_t small_fingerprint(struct small_world *world)
{
    struct print print = {.digest = 1};
    add_leader(&print, &world->store.leader);
    add_head(&print, &world->store.head);
    for (uint64_t i = 1; i <= world->store.head.index; i++) {
        add(&print, world->entries[i - 1].term);
        add(&print, (uint64_t)world->entries[i - 1].content.kind);
    }
    for (uint32_t n = 0; n < world->space->nodes; n++) {
        add_node(&print, world, &world->nodes[n], small_local_us(world, n));
    }
    add(&print, world->submissions);
    add(&print, world->crashes);
    add(&print, world->answered);
    add(&print, world->request_index);
    return print.digest == 0 ? 1 : print.digest;
}
