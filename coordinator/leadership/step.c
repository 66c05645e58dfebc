/* SPDX-License-Identifier: Apache-2.0
 * The step: an event changes facts, then what is due is sent. And the views. */
#include "coordinator/leadership/state.h"

#include <string.h>

size_t leadership_bytes(uint32_t tickets_max)
{
    return sizeof(struct leadership) + tickets_max * sizeof(struct queued_ticket);
}

struct leadership *leadership_init(void *memory, const struct leadership_options *options)
{
    struct leadership *leadership = memory;
    CADRE_ASSERT(options->tickets_max > 0);
    CADRE_ASSERT(options->drift_ppm <= 400000);
    CADRE_ASSERT(options->lease_us >= 1000);
    CADRE_ASSERT(options->margin_us < options->lease_us / 5);
    CADRE_ASSERT(options->has_cluster || options->applied.index == 0);
    memset(leadership, 0, leadership_bytes(options->tickets_max));
    leadership->options = *options;
    if (options->term_seen < options->applied.term) {
        leadership->options.term_seen = options->applied.term;
    }
    leadership->prng = (struct prng){.state = prng_mix(options->seed)};
    leadership->state = LEADERSHIP_FOLLOWER;
    leadership->applied = options->applied;
    leadership->take_over_us = NEVER;
    leadership->queue_first = 1;
    return leadership;
}

static void step_read(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    struct read_slot *slot = &leadership->read;
    if (!slot->in_flight || slot->request != read->request) {
        return;
    }
    slot->in_flight = false;
    slot->due_us = leadership->now_us + leadership->options.lease_us / BEAT_PART;
    if (leadership->doubted) {
        lead_doubt_answered(leadership, read, out);
    } else if (leadership->state == LEADERSHIP_RESIGNING) {
        slot->due_us = NEVER;
        elect_resign(leadership, read, out);
    } else if (check_may_create(leadership, read)) {
        elect_create(leadership, read->etcd_id, out);
    } else {
        follow_read(leadership, read, out);
    }
}

static void step_answered(struct leadership *leadership, const struct leadership_answer *answer,
    struct leadership_actions *out)
{
    switch (leadership->state) {
    case LEADERSHIP_CANDIDATE:
        elect_answered(leadership, answer);
        break;
    case LEADERSHIP_RESIGNING:
        elect_resigned(leadership, answer, out);
        break;
    default:
        lead_answered(leadership, answer, out);
        break;
    }
}

static void step_leave(struct leadership *leadership, struct leadership_actions *out)
{
    bool leads =
        leadership->state >= LEADERSHIP_CATCHING_UP && leadership->state <= LEADERSHIP_LEAVING;
    if (!leads || leadership->doubted) {
        leadership_step_down(leadership, "it was ended, and does not lead", out);
    } else {
        lead_leave(leadership);
    }
}

static void step_no_room(struct leadership *leadership, const struct leadership_position *position)
{
    follow_no_room(leadership, position);
    if (leadership->state == LEADERSHIP_CATCHING_UP) {
        lead_leave(leadership);
    }
}

static void step_offer(struct leadership *leadership, const struct leadership_ticket *ticket)
{
    CADRE_ASSERT(
        leadership->state == LEADERSHIP_LEADING || leadership->state == LEADERSHIP_SUSPENDED);
    queue_offer(leadership, ticket);
}

static void step_resign(struct leadership *leadership, struct log_nonce nonce)
{
    CADRE_ASSERT(leadership->state == LEADERSHIP_FOLLOWER && leadership->requests == 0);
    leadership->state = LEADERSHIP_RESIGNING;
    leadership->resign_nonce = nonce;
}

static void handle(struct leadership *leadership, const struct leadership_event *event,
    struct leadership_actions *out)
{
    switch (event->type) {
    case LEADERSHIP_EVENT_TICK:
        break;
    case LEADERSHIP_EVENT_CHANGED:
        leadership->read.again = true;
        break;
    case LEADERSHIP_EVENT_READ:
        step_read(leadership, &event->read, out);
        break;
    case LEADERSHIP_EVENT_ANSWERED:
        step_answered(leadership, &event->answer, out);
        break;
    case LEADERSHIP_EVENT_UNANSWERED:
        request_unanswered(leadership, event->unanswered.request, event->unanswered.no_space);
        break;
    case LEADERSHIP_EVENT_APPLIED:
        follow_applied(leadership, &event->position);
        break;
    case LEADERSHIP_EVENT_NO_ROOM:
        step_no_room(leadership, &event->position);
        break;
    case LEADERSHIP_EVENT_SNAPSHOT_INSTALLED:
        follow_installed(leadership, &event->position);
        break;
    case LEADERSHIP_EVENT_OFFER:
        step_offer(leadership, &event->ticket);
        break;
    case LEADERSHIP_EVENT_SNAPSHOT_HELD:
        lead_snapshot(leadership, &event->snapshot);
        break;
    case LEADERSHIP_EVENT_HELLO_AHEAD:
        lead_doubt(leadership, event->hello.term, event->hello.index, out);
        break;
    case LEADERSHIP_EVENT_LEAVE:
        step_leave(leadership, out);
        break;
    case LEADERSHIP_EVENT_STAND:
        leadership->options.waits = false;
        break;
    case LEADERSHIP_EVENT_RESIGN:
        step_resign(leadership, event->nonce);
        break;
    }
}

void leadership_step(struct leadership *leadership, const struct leadership_event *event,
    struct leadership_actions *out)
{
    CADRE_ASSERT(event->now_us >= leadership->now_us);
    CADRE_ASSERT(out->capacity - out->count >= LEADERSHIP_ACTIONS_PER_STEP_MAX);
    leadership->now_us = event->now_us;
    if (leadership_has_ended(leadership)) {
        return;
    }
    handle(leadership, event, out);
    if (!leadership_has_ended(leadership)) {
        elect_send(leadership, out);
        lead_send(leadership, out);
    }
    if (!leadership_has_ended(leadership)) {
        follow_send(leadership, out);
        lead_suspend_or_resume(leadership, out);
    }
}

uint64_t leadership_wake_us(const struct leadership *leadership)
{
    if (leadership_has_ended(leadership)) {
        return NEVER;
    }
    uint64_t wake_us = follow_wake_us(leadership);
    uint64_t elect_us = elect_wake_us(leadership);
    uint64_t lead_us = lead_wake_us(leadership);
    wake_us = elect_us < wake_us ? elect_us : wake_us;
    return lead_us < wake_us ? lead_us : wake_us;
}

uint64_t leadership_may_send_until_us(const struct leadership *leadership)
{
    return leadership->may_send_until_us;
}

uint32_t leadership_tickets_free(const struct leadership *leadership)
{
    return leadership->options.tickets_max - leadership->queue_count;
}

void leadership_show(const struct leadership *leadership, struct leadership_view *ret_view)
{
    const struct guarded_slot *guarded = &leadership->guarded;
    *ret_view = (struct leadership_view){.state = leadership->state,
        .term = leadership->term,
        .nonce = leadership->nonce,
        .has_store = leadership->has_store,
        .leader = leadership->leader,
        .head = leadership->head,
        .applied = leadership->applied,
        .complete_us = leadership->has_store && leadership->applied.index == leadership->head.index
                           ? leadership->head_read_us
                           : 0,
        .no_space = guarded->no_space,
        .unanswered_us = guarded->in_flight ? guarded->first_sent_us : NEVER,
        .text = leadership_has_ended(leadership) ? leadership->text : ""};
}
