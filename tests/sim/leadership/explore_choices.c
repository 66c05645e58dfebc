/* SPDX-License-Identifier: Apache-2.0
 * What can happen next in the small world. */
#include "explore_world.h"

#include <stdio.h>

#define QUANTUM_US 600 /* time goes on by so much; 1 % of it is a whole number */

enum choice {
    CHOICE_READ = 0, /* it is sent, if none is on its way, served and answered */
    CHOICE_TAKE_OVER,
    CHOICE_RESEND,
    CHOICE_BEAT,
    CHOICE_TICK, /* with clocks */
    CHOICE_DELIVER,
    CHOICE_DELIVER_OLD, /* of a process that died */
    CHOICE_ANSWER,
    CHOICE_ANSWER_LOST,
    CHOICE_APPLIED,
    CHOICE_CRASH,
    CHOICE_CRASH_TAIL, /* and the SQLite file loses what it may */
    CHOICE_SUBMIT,
    CHOICE_COUNT
};

uint32_t small_choices(const struct small_space *space)
{
    return CHOICE_COUNT * space->nodes + 1;
}

static bool may_take_timer(const struct small_world *world, uint32_t n, enum choice choice)
{
    const struct small_node *node = &world->nodes[n];
    const struct leadership *core = small_const_core(node);
    bool leads = core->state >= LEADERSHIP_CATCHING_UP && core->state <= LEADERSHIP_SUSPENDED;
    switch (choice) {
    case CHOICE_TICK:
        return world->space->timed && leadership_wake_us(core) <= small_local_us(world, n);
    case CHOICE_TAKE_OVER:
        return !world->space->timed && core->state == LEADERSHIP_FOLLOWER && core->has_store;
    case CHOICE_RESEND:
        return core->guarded.in_flight && !node->up[0].used && !node->has_answer;
    default:
        return leads && !core->guarded.in_flight;
    }
}

static bool may_submit(const struct small_world *world, uint32_t n)
{
    const struct small_node *node = &world->nodes[n];
    return node->leads && !node->submitted && !world->answered &&
           world->submissions < world->space->submissions;
}

static bool may_read(const struct small_world *world, uint32_t n)
{
    const struct leadership *core = small_const_core(&world->nodes[n]);
    bool reads = core->state == LEADERSHIP_FOLLOWER || core->state == LEADERSHIP_CATCHING_UP;
    return reads;
}

bool small_may(const struct small_world *world, uint32_t choice)
{
    uint32_t n = choice / CHOICE_COUNT;
    const struct small_node *node = &world->nodes[n];
    bool crashes = world->crashes < world->space->crashes;
    if (n == world->space->nodes) {
        return world->space->timed;
    }
    switch ((enum choice)(choice % CHOICE_COUNT)) {
    case CHOICE_READ:
        return may_read(world, n);
    case CHOICE_DELIVER:
        return node->up[0].used;
    case CHOICE_DELIVER_OLD:
        return node->up[1].used;
    case CHOICE_ANSWER:
    case CHOICE_ANSWER_LOST:
        return node->has_answer;
    case CHOICE_APPLIED:
        return node->applying;
    case CHOICE_CRASH:
        return crashes;
    case CHOICE_CRASH_TAIL:
        return crashes && node->copy.index > 0;
    case CHOICE_SUBMIT:
        return may_submit(world, n);
    default:
        return may_take_timer(world, n, (enum choice)(choice % CHOICE_COUNT));
    }
}

static void take_timer(struct small_world *world, uint32_t n, enum choice choice)
{
    struct leadership *core = small_core(&world->nodes[n]);
    switch (choice) {
    case CHOICE_READ:
        core->read.due_us = 0;
        break;
    case CHOICE_TAKE_OVER:
        core->take_over_us = BASE_US;
        break;
    case CHOICE_RESEND:
        core->guarded.again_us = 0;
        break;
    case CHOICE_BEAT:
        core->guarded.first_sent_us = 0;
        break;
    default:
        break;
    }
    small_step(world, n, &(struct leadership_event){.type = LEADERSHIP_EVENT_TICK});
}

static void note_request(struct small_world *world, const struct small_request *up)
{
    if (!up->has_entry || up->content.kind != CONTENT_JOB) {
        return;
    }
    if (world->request_index != 0 && world->request_index != up->transaction.first_index) {
        small_break(world, "TWICE", "one request is in two entries");
    }
    world->request_index = up->transaction.first_index;
}

static void take_deliver(struct small_world *world, uint32_t n, uint32_t which)
{
    struct small_node *node = &world->nodes[n];
    struct small_request *up = &node->up[which];
    struct payload payload = {.count = up->has_entry ? 1 : 0, .contents = {up->content}};
    bool unguarded = world->space->mutant == SMALL_NO_GUARD && up->has_entry;
    struct leadership_answer answer;
    store_transact(
        &world->store, &up->transaction, &payload, unguarded ? 0 : STORE_CHECKS_ALL, &answer);
    if (world->store.broken != NULL) {
        small_break(world, world->store.broken, world->store.why);
    }
    if (answer.applied) {
        note_request(world, up);
    }
    world->pruned = world->pruned || world->store.full;
    up->used = false;
    if (up->current) {
        node->has_answer = true;
        node->answer = answer;
        node->answer.request = up->request;
        node->answer.hash = store_hash_after(&up->transaction, &payload);
    }
}

static void take_answer(struct small_world *world, uint32_t n)
{
    struct small_node *node = &world->nodes[n];
    node->has_answer = false;
    if (world->space->mutant == SMALL_TIME_FROM_ANSWER && node->answer.applied) {
        node->widened_until_us = small_local_us(world, n) + LEASE_US - LEASE_US / 50 - 50;
    }
    small_step(world, n,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_ANSWERED, .answer = node->answer});
}

/* Served and answered at once: a coordinator that acts on an older answer is
 * one that was paused behind it. */
static void take_read(struct small_world *world, uint32_t n)
{
    struct small_node *node = &world->nodes[n];
    struct leadership_event event = {.type = LEADERSHIP_EVENT_READ};
    struct log_entry entries[SMALL_READ];
    if (!small_core(node)->read.in_flight) {
        take_timer(world, n, CHOICE_READ);
    }
    uint32_t most = node->read_entries < SMALL_READ ? node->read_entries : SMALL_READ;
    store_read(&world->store, &node->read_after, most, entries, &event.read);
    event.read.request = node->read_request;
    small_step(world, n, &event);
}

static void take_applied(struct small_world *world, uint32_t n)
{
    struct small_node *node = &world->nodes[n];
    node->applying = false;
    if (world->space->mutant != SMALL_LEADS_FROM_OWN_COPY) {
        node->copy = node->applying_to;
        small_check_copy(world, node);
    }
    small_step(world, n,
        &(struct leadership_event){
            .type = LEADERSHIP_EVENT_APPLIED, .position = node->applying_to});
}

static void take_crash(struct small_world *world, uint32_t n, bool loses_tail)
{
    struct small_node *node = &world->nodes[n];
    world->crashes++;
    node->up[1] = node->up[0].used ? node->up[0] : node->up[1];
    node->up[1].current = node->up[0].used = false;
    if (loses_tail) {
        node->copy = (struct leadership_position){.hash = store_hash_at(&world->store, 0)};
    }
    small_start(world, n);
}

/* The client repeats its request at any leader, until it has its answer. */
static void take_submit(struct small_world *world, uint32_t n)
{
    struct small_node *node = &world->nodes[n];
    enum small_mutant mutant = world->space->mutant;
    world->submissions++;
    bool known = world->request_index != 0 && world->request_index <= node->copy.index;
    if (known && mutant != SMALL_NO_REQUEST_ID) {
        small_answer_client(world);
        return;
    }
    if (mutant == SMALL_ANSWERED_BEFORE_LOG) {
        small_answer_client(world);
    }
    node->submitted = true;
    small_step(world, n,
        &(struct leadership_event){.type = LEADERSHIP_EVENT_OFFER,
            .ticket = {.ticket = ++node->ticket, .kind = LEADERSHIP_SYNC, .bytes = 100}});
}

static void check_both(struct small_world *world)
{
    uint32_t may_send = 0;
    for (uint32_t n = 0; n < world->space->nodes && world->space->timed; n++) {
        struct small_node *node = &world->nodes[n];
        uint64_t until_us = leadership_may_send_until_us(small_core(node));
        until_us = node->widened_until_us > until_us ? node->widened_until_us : until_us;
        may_send += node->leads && small_local_us(world, n) < until_us ? 1 : 0;
    }
    if (may_send > 1) {
        small_break(world, "BOTH", "two coordinators may send at the same time");
    }
}

static void take_of_node(struct small_world *world, uint32_t n, enum choice choice)
{
    switch (choice) {
    case CHOICE_READ:
        take_read(world, n);
        break;
    case CHOICE_DELIVER:
        take_deliver(world, n, 0);
        break;
    case CHOICE_DELIVER_OLD:
        take_deliver(world, n, 1);
        break;
    case CHOICE_ANSWER:
        take_answer(world, n);
        break;
    case CHOICE_ANSWER_LOST:
        world->nodes[n].has_answer = false;
        break;
    case CHOICE_APPLIED:
        take_applied(world, n);
        break;
    case CHOICE_CRASH:
        take_crash(world, n, false);
        break;
    case CHOICE_CRASH_TAIL:
        take_crash(world, n, true);
        break;
    case CHOICE_SUBMIT:
        take_submit(world, n);
        break;
    default:
        take_timer(world, n, choice);
        break;
    }
}

void small_take(struct small_world *world, uint32_t choice)
{
    static const char *const names[CHOICE_COUNT] = {"read", "take over", "resend", "beat", "tick",
        "deliver", "deliver old", "answer", "answer lost", "applied", "crash", "crash, tail lost",
        "submit"};
    uint32_t n = choice / CHOICE_COUNT;
    world->store.entries = world->entries;
    if (n == world->space->nodes) {
        world->time_us += QUANTUM_US;
        snprintf(world->label, LABEL_BYTES, "time");
    } else {
        take_of_node(world, n, (enum choice)(choice % CHOICE_COUNT));
        snprintf(world->label, LABEL_BYTES, "%s c%u", names[choice % CHOICE_COUNT], n);
    }
    if (world->answered && world->request_index == 0) {
        small_break(world, "LOST", "an answered request is not in the log");
    }
    check_both(world);
}
