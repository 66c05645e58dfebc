/* SPDX-License-Identifier: Apache-2.0
 * Requests to the store: one read and one transaction in flight. A transaction
 * without an answer is sent again as it is, until an answer shows whether it
 * was applied (HA7b). */
#include "coordinator/leadership/state.h"

static uint64_t part_of_lease(const struct leadership *leadership, uint64_t part)
{
    return leadership->options.lease_us / part;
}

static void send_attempt(struct leadership *leadership, struct leadership_actions *out)
{
    struct guarded_slot *guarded = &leadership->guarded;
    guarded->attempt++;
    guarded->sent_us = leadership->now_us;
    guarded->again_us = leadership->now_us + part_of_lease(leadership, DEADLINE_PART);
    struct leadership_action *action = leadership_append(out, LEADERSHIP_ACTION_TRANSACT);
    action->transact.request = guarded->request;
    action->transact.attempt = guarded->attempt;
    action->transact.transaction = guarded->transaction;
}

void request_transact(struct leadership *leadership, const struct log_transaction *transaction,
    struct leadership_actions *out)
{
    struct guarded_slot *guarded = &leadership->guarded;
    CADRE_ASSERT(!guarded->in_flight);
    guarded->in_flight = true;
    guarded->no_space = false;
    guarded->request = ++leadership->requests;
    guarded->attempt = 0;
    guarded->first_sent_us = leadership->now_us;
    guarded->transaction = *transaction;
    send_attempt(leadership, out);
}

void request_transact_again(struct leadership *leadership, struct leadership_actions *out)
{
    if (leadership->guarded.in_flight && leadership->guarded.again_us <= leadership->now_us) {
        send_attempt(leadership, out);
    }
}

void request_read(struct leadership *leadership, bool with_entries, struct leadership_actions *out)
{
    struct read_slot *read = &leadership->read;
    read->in_flight = true;
    read->again = false;
    read->with_entries = with_entries;
    read->request = ++leadership->requests;
    read->sent_us = leadership->now_us;
    read->due_us = leadership->now_us + part_of_lease(leadership, DEADLINE_PART);
    struct leadership_action *action = leadership_append(out, LEADERSHIP_ACTION_READ);
    action->read.request = read->request;
    action->read.after = leadership->applied;
    action->read.entries_max = with_entries ? LOG_READ_ENTRIES_MAX : 0;
}

/* When an attempt that was sent at `sent_us` is repeated: not at once, because
 * a member that is stopped refuses each connection within microseconds. */
static uint64_t repeat_us(const struct leadership *leadership, uint64_t sent_us, uint64_t part)
{
    uint64_t due_us = sent_us + part_of_lease(leadership, part);
    return due_us > leadership->now_us ? due_us : leadership->now_us;
}

void request_unanswered(struct leadership *leadership, uint64_t request, bool no_space)
{
    struct guarded_slot *guarded = &leadership->guarded;
    struct read_slot *read = &leadership->read;
    if (guarded->in_flight && guarded->request == request) {
        guarded->no_space = no_space;
        guarded->again_us =
            repeat_us(leadership, guarded->sent_us, no_space ? BEAT_PART : PAUSE_PART);
    }
    if (read->in_flight && read->request == request) {
        read->due_us = repeat_us(leadership, read->sent_us, PAUSE_PART);
    }
}

bool request_take_answer(struct leadership *leadership, const struct leadership_answer *answer)
{
    struct guarded_slot *guarded = &leadership->guarded;
    if (!guarded->in_flight || guarded->request != answer->request) {
        return false;
    }
    guarded->in_flight = false;
    guarded->no_space = false;
    return true;
}

bool request_was_applied(const struct leadership *leadership,
    const struct leadership_answer *answer, struct log_head *ret_head)
{
    const struct log_transaction *transaction = &leadership->guarded.transaction;
    struct log_head written = transaction->head;
    if (transaction->kind == LOG_APPEND) {
        written.hash = answer->hash;
    }
    if (answer->applied) {
        written.mod_revision = answer->revision;
        *ret_head = written;
        return true;
    }
    *ret_head = answer->head;
    const struct log_leader *leader =
        transaction->kind == LOG_TAKE_OVER ? &transaction->leader : &transaction->guard_leader;
    return answer->found && log_head_equal(&answer->head, &written) &&
           log_leader_equal(&answer->leader, leader);
}
