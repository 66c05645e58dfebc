/* SPDX-License-Identifier: Apache-2.0
 * A follower becomes a leader by one transaction, TAKE_OVER, once the head
 * stood still (HA2, HA3); and what is done once only: the cluster is created, a
 * dead leader is resigned. */
#include "coordinator/leadership/state.h"

void elect_create(struct leadership *leadership, uint64_t etcd_id, struct leadership_actions *out)
{
    const struct leadership_options *options = &leadership->options;
    struct log_transaction transaction = {.kind = LOG_CREATE,
        .cluster = {.id = options->new_cluster_id, .etcd_id = etcd_id, .format = 1},
        .leader = {.left = true},
        .head = {.hash = options->new_hash, .first = 1}};
    CADRE_ASSERT(!options->has_cluster);
    leadership->state = LEADERSHIP_CANDIDATE;
    request_transact(leadership, &transaction, out);
}

/* When TAKE_OVER may be sent. Who lacks a snapshot, or room, could not read the
 * log to its end. */
static uint64_t take_over_due_us(const struct leadership *leadership)
{
    bool may = leadership->state == LEADERSHIP_FOLLOWER && leadership->has_store &&
               !leadership->options.waits && !leadership->fetching &&
               !follow_lacks_snapshot(leadership) && !leadership->no_room;
    if (!may) {
        return NEVER;
    }
    return leadership->takes_over_now && !leadership->applying ? 0 : leadership->take_over_us;
}

static void send_take_over(struct leadership *leadership, struct leadership_actions *out)
{
    const struct log_head *head = &leadership->head;
    uint64_t above = leadership->term_above > head->term ? leadership->term_above : head->term;
    struct log_nonce nonce = leadership->options.nonce;
    nonce.low += leadership->takeovers++;
    struct log_transaction transaction = {.kind = LOG_TAKE_OVER,
        .guard_leader = leadership->leader,
        .guard_head_revision = head->mod_revision,
        .leader = {.term = above + 1, .nonce = nonce},
        .head = *head};
    transaction.head.term = transaction.leader.term;
    transaction.head.nonce = nonce;
    transaction.head.beat = 0;
    transaction.head.mod_revision = 0;
    leadership->state = LEADERSHIP_CANDIDATE;
    leadership->read.in_flight = false;
    request_transact(leadership, &transaction, out);
}

void elect_send(struct leadership *leadership, struct leadership_actions *out)
{
    if (leadership->state == LEADERSHIP_CANDIDATE || leadership->state == LEADERSHIP_RESIGNING) {
        request_transact_again(leadership, out);
    } else if (take_over_due_us(leadership) <= leadership->now_us) {
        send_take_over(leadership, out);
    }
}

uint64_t elect_wake_us(const struct leadership *leadership)
{
    bool waits =
        leadership->state == LEADERSHIP_CANDIDATE || leadership->state == LEADERSHIP_RESIGNING;
    if (waits) {
        return leadership->guarded.in_flight ? leadership->guarded.again_us : NEVER;
    }
    return take_over_due_us(leadership);
}

void elect_answered(struct leadership *leadership, const struct leadership_answer *answer)
{
    const struct log_transaction *transaction = &leadership->guarded.transaction;
    struct log_head head;
    if (!request_take_answer(leadership, answer)) {
        return;
    }
    leadership->state = LEADERSHIP_FOLLOWER;
    leadership->has_store = false; /* until it is read in full, and checked */
    leadership->read.due_us = 0;
    if (transaction->kind == LOG_CREATE) {
        return;
    }
    if (request_was_applied(leadership, answer, &head)) {
        leadership->options.term_seen = transaction->leader.term;
        lead_begin(leadership, transaction, &head);
        if (leadership->no_room) {
            lead_leave(leadership);
        }
    }
}

static const char has_left[] = "the process that led has left: another coordinator leads at once";

void elect_resign(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    bool leads = read->has_cluster && read->has_leader && read->has_head &&
                 log_nonce_equal(read->leader.nonce, leadership->resign_nonce);
    if (!leads || read->leader.left) {
        leadership_step_down(
            leadership, leads ? has_left : "the process that ran here before does not lead", out);
        return;
    }
    struct log_transaction transaction = {.kind = LOG_LEAVE,
        .guard_leader = read->leader,
        .guard_head_revision = read->head.mod_revision,
        .leader = read->leader,
        .head = read->head};
    transaction.leader.left = true;
    request_transact(leadership, &transaction, out);
}

/* Not applied: a transaction of the dead process came last, or this one was
 * applied before. */
void elect_resigned(struct leadership *leadership, const struct leadership_answer *answer,
    struct leadership_actions *out)
{
    if (!request_take_answer(leadership, answer)) {
        return;
    }
    if (answer->applied) {
        leadership_step_down(leadership, has_left, out);
        return;
    }
    request_read(leadership, false, out);
}
