/* SPDX-License-Identifier: Apache-2.0
 * A leader: its guarded transactions one after another, until when it may send,
 * and its end. */
#include "coordinator/leadership/state.h"

static struct log_leader own_key(const struct leadership *leadership)
{
    return (struct log_leader){.term = leadership->term, .nonce = leadership->nonce};
}

static bool is_leader(const struct leadership *leadership)
{
    return leadership->state >= LEADERSHIP_CATCHING_UP && leadership->state <= LEADERSHIP_LEAVING;
}

void lead_begin(struct leadership *leadership, const struct log_transaction *transaction,
    const struct log_head *head)
{
    leadership->state = LEADERSHIP_CATCHING_UP;
    leadership->term = transaction->leader.term;
    leadership->nonce = transaction->leader.nonce;
    leadership->leader = own_key(leadership);
    leadership->has_store = true;
    leadership->head = *head;
    leadership->may_send_until_us = 0;
    leadership->queue_first = 1;
    CADRE_ASSERT(leadership->queue_count == 0 && leadership->urgent == 0);
}

/* ---- sending ---- */

static uint64_t beat_due_us(const struct leadership *leadership)
{
    return leadership->guarded.first_sent_us + leadership->options.lease_us / BEAT_PART;
}

static bool has_caught_up(const struct leadership *leadership)
{
    return !leadership->applying && leadership->applied.index == leadership->head.index;
}

/* The guard, and the head as it will be: one beat on. */
static struct log_transaction begin_guarded(
    const struct leadership *leadership, enum log_transaction_kind kind)
{
    struct log_transaction transaction = {.kind = kind,
        .guard_leader = own_key(leadership),
        .guard_head_revision = leadership->head.mod_revision,
        .head = leadership->head,
        .first_ticket = 1};
    transaction.head.beat++;
    transaction.head.mod_revision = 0;
    return transaction;
}

static void send_leave(struct leadership *leadership, struct leadership_actions *out)
{
    struct log_transaction transaction = begin_guarded(leadership, LOG_LEAVE);
    transaction.leader = own_key(leadership);
    transaction.leader.left = true;
    if (leadership->state == LEADERSHIP_LEADING) {
        leadership_append(out, LEADERSHIP_ACTION_SUSPEND);
    }
    leadership->state = LEADERSHIP_LEAVING;
    leadership->may_send_until_us = 0;
    request_transact(leadership, &transaction, out);
}

static void send_term(struct leadership *leadership, struct leadership_actions *out)
{
    struct log_transaction transaction = begin_guarded(leadership, LOG_APPEND);
    transaction.term_entry = true;
    transaction.first_index = ++transaction.head.index;
    request_transact(leadership, &transaction, out);
}

static void send_snapshot(struct leadership *leadership, struct leadership_actions *out)
{
    const struct leadership_snapshot *snapshot = &leadership->snapshot;
    struct log_transaction transaction =
        begin_guarded(leadership, leadership->snapshot_due ? LOG_SNAPSHOT : LOG_TRIM);
    transaction.snapshot_index = snapshot->index;
    transaction.snapshot_hash = snapshot->hash;
    if (transaction.kind == LOG_TRIM) {
        transaction.trim_from = leadership->head.first;
        transaction.trim_to = snapshot->trim_to;
        transaction.head.first = snapshot->trim_to + 1;
    }
    request_transact(leadership, &transaction, out);
}

static void send_tickets(struct leadership *leadership, struct leadership_actions *out)
{
    struct log_transaction transaction = begin_guarded(leadership, LOG_BEAT);
    queue_fill(leadership, &transaction);
    request_transact(leadership, &transaction, out);
}

/* Nothing is in flight. Snapshots and trims come before appends: they are rare,
 * and a full store needs them. */
static void send_next(struct leadership *leadership, struct leadership_actions *out)
{
    bool catches_up = leadership->state == LEADERSHIP_CATCHING_UP;
    CADRE_ASSERT(leadership->state != LEADERSHIP_LEAVING);
    if (leadership->leaving && leadership->queue_count == 0) {
        send_leave(leadership, out);
    } else if (catches_up && has_caught_up(leadership)) {
        send_term(leadership, out);
    } else if (leadership->snapshot_due || leadership->trim_due) {
        send_snapshot(leadership, out);
    } else if (queue_due_us(leadership) <= leadership->now_us) {
        send_tickets(leadership, out);
    } else if (beat_due_us(leadership) <= leadership->now_us) {
        struct log_transaction transaction = begin_guarded(leadership, LOG_BEAT);
        request_transact(leadership, &transaction, out);
    }
}

void lead_send(struct leadership *leadership, struct leadership_actions *out)
{
    if (!is_leader(leadership) || leadership->doubted) {
        return;
    }
    if (leadership->leaving && leadership->leave_until_us <= leadership->now_us) {
        leadership_step_down(leadership, "it leaves, and etcd has not answered in time", out);
    } else if (leadership->guarded.in_flight) {
        request_transact_again(leadership, out);
    } else {
        send_next(leadership, out);
    }
}

uint64_t lead_wake_us(const struct leadership *leadership)
{
    if (!is_leader(leadership) || leadership->doubted) {
        return NEVER;
    }
    uint64_t queue_us = queue_due_us(leadership);
    uint64_t wake_us = beat_due_us(leadership);
    if (leadership->guarded.in_flight) {
        wake_us = leadership->guarded.again_us;
    } else if (queue_us < wake_us) {
        wake_us = queue_us;
    }
    bool leads = leadership->state == LEADERSHIP_LEADING;
    if (leads && leadership->may_send_until_us < wake_us) {
        wake_us = leadership->may_send_until_us;
    }
    return leadership->leaving && leadership->leave_until_us < wake_us ? leadership->leave_until_us
                                                                       : wake_us;
}

/* ---- answers ---- */

/* Counted from the first sending, and so short that it is over before a
 * follower, by a clock within the drift, has waited for lease_us (HA4). */
static void extend_time_to_send(struct leadership *leadership)
{
    const struct leadership_options *options = &leadership->options;
    uint64_t drift_us = options->lease_us / 1000000 * 2 * options->drift_ppm +
                        options->lease_us % 1000000 * 2 * options->drift_ppm / 1000000;
    uint64_t until_us =
        leadership->guarded.first_sent_us + options->lease_us - drift_us - options->margin_us;
    bool may = !leadership->doubted && leadership->state != LEADERSHIP_CATCHING_UP;
    if (may && until_us > leadership->may_send_until_us) {
        leadership->may_send_until_us = until_us;
    }
}

static void begin_leading(struct leadership *leadership, struct leadership_actions *out)
{
    const struct log_head *head = &leadership->head;
    struct leadership_position at = {
        .index = head->index, .term = leadership->term, .hash = head->hash};
    leadership->state = LEADERSHIP_LEADING;
    leadership->applied = at;
    struct leadership_action *action = leadership_append(out, LEADERSHIP_ACTION_LEAD);
    action->lead.term = leadership->term;
    action->lead.logged =
        (struct leadership_logged){.first_index = head->index, .entries = 1, .at = at};
}

static void carry_on(struct leadership *leadership, struct leadership_actions *out)
{
    const struct log_transaction *transaction = &leadership->guarded.transaction;
    switch (transaction->kind) {
    case LOG_APPEND:
        if (transaction->term_entry) {
            begin_leading(leadership, out);
            break;
        }
        queue_logged(leadership, transaction, out);
        break;
    case LOG_BEAT:
        if (transaction->last_ticket >= transaction->first_ticket) {
            queue_logged(leadership, transaction, out);
        }
        break;
    case LOG_PIECES:
        leadership->piece_written = transaction->piece_end;
        break;
    case LOG_SNAPSHOT:
        leadership_append(out, LEADERSHIP_ACTION_SNAPSHOT_STORED)->stored =
            transaction->snapshot_index;
        leadership->snapshot_due = leadership->snapshot.index > transaction->snapshot_index;
        leadership->trim_due = leadership->snapshot.trim_to >= leadership->head.first;
        break;
    default:
        CADRE_ASSERT(transaction->kind == LOG_TRIM);
        leadership->trim_due = false;
        break;
    }
}

void lead_answered(struct leadership *leadership, const struct leadership_answer *answer,
    struct leadership_actions *out)
{
    struct log_head head;
    if (!request_take_answer(leadership, answer)) {
        return;
    }
    if (leadership->state == LEADERSHIP_LEAVING) {
        leadership_step_down(leadership, "it has left", out);
        return;
    }
    if (!request_was_applied(leadership, answer, &head)) {
        leadership_step_down(leadership,
            answer->found && answer->leader.term > leadership->term
                ? "another coordinator leads now"
                : "etcd does not hold what this leader wrote last",
            out);
        return;
    }
    leadership->head = head;
    carry_on(leadership, out);
    extend_time_to_send(leadership);
}

void lead_suspend_or_resume(struct leadership *leadership, struct leadership_actions *out)
{
    bool may_send = leadership->now_us < leadership->may_send_until_us;
    if (leadership->state == LEADERSHIP_LEADING && !may_send) {
        leadership->state = LEADERSHIP_SUSPENDED;
        leadership_append(out, LEADERSHIP_ACTION_SUSPEND);
    } else if (leadership->state == LEADERSHIP_SUSPENDED && may_send) {
        leadership->state = LEADERSHIP_LEADING;
        leadership_append(out, LEADERSHIP_ACTION_RESUME);
    }
}

/* ---- what comes from outside ---- */

void lead_doubt(
    struct leadership *leadership, uint64_t term, uint64_t index, struct leadership_actions *out)
{
    bool ahead =
        term > leadership->term || (term == leadership->term && index > leadership->head.index);
    bool leads =
        leadership->state == LEADERSHIP_LEADING || leadership->state == LEADERSHIP_SUSPENDED;
    if (!leads || !ahead || leadership->doubted) {
        return;
    }
    leadership->doubted = true;
    leadership->may_send_until_us = 0;
    request_read(leadership, false, out);
}

void lead_doubt_answered(struct leadership *leadership, const struct leadership_read *read,
    struct leadership_actions *out)
{
    struct log_leader own = own_key(leadership);
    CADRE_ASSERT(leadership->doubted);
    if (read->has_cluster && read->has_leader && !log_leader_equal(&read->leader, &own) &&
        read->leader.term > leadership->term) {
        leadership_step_down(leadership, "a worker follows a newer coordinator", out);
        return;
    }
    check_restored(leadership, out);
}

void lead_leave(struct leadership *leadership)
{
    if (!leadership->leaving) {
        leadership->leaving = true;
        leadership->leave_until_us = leadership->now_us + leadership->options.lease_us;
    }
}

void lead_snapshot(struct leadership *leadership, const struct leadership_snapshot *snapshot)
{
    bool leads =
        leadership->state == LEADERSHIP_LEADING || leadership->state == LEADERSHIP_SUSPENDED;
    bool newer = snapshot->index > leadership->snapshot.index;
    CADRE_ASSERT(snapshot->trim_to <= snapshot->index);
    if (!leads || !newer || snapshot->holders < 2 || snapshot->index > leadership->head.index) {
        return;
    }
    leadership->snapshot = *snapshot;
    leadership->snapshot_due = true;
}
