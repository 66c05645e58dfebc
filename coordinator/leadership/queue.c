/* SPDX-License-Identifier: Apache-2.0
 * The tickets that wait for the log, and which of them the next transaction
 * carries: always the oldest ones in order, so that an append carries the
 * lagging ones before a sync one (HA7a). */
#include "coordinator/leadership/state.h"

static struct queued_ticket *ticket_at(struct leadership *leadership, uint64_t ticket)
{
    return &leadership->queue[ticket % leadership->options.tickets_max];
}

static const struct queued_ticket *queued_at(const struct leadership *leadership, uint64_t ticket)
{
    return &leadership->queue[ticket % leadership->options.tickets_max];
}

static bool is_sent(const struct leadership *leadership, uint64_t ticket)
{
    const struct guarded_slot *guarded = &leadership->guarded;
    enum log_transaction_kind kind = guarded->transaction.kind;
    bool carries = kind == LOG_APPEND || kind == LOG_PIECES;
    return guarded->in_flight && carries && ticket >= guarded->transaction.first_ticket &&
           ticket <= guarded->transaction.last_ticket;
}

/* Whether it is the newest one, offered again with more bytes. */
static bool replaces(const struct leadership *leadership, const struct leadership_ticket *ticket)
{
    uint64_t newest = leadership->queue_first + leadership->queue_count - 1;
    if (leadership->queue_count == 0 || ticket->ticket != newest) {
        return false;
    }
    const struct queued_ticket *queued = queued_at(leadership, newest);
    bool touched = newest == leadership->queue_first && leadership->piece_written > 0;
    CADRE_ASSERT(queued->kind == LEADERSHIP_LAGGING && ticket->kind == LEADERSHIP_LAGGING);
    CADRE_ASSERT(!is_sent(leadership, newest) && !touched);
    return true;
}

void queue_offer(struct leadership *leadership, const struct leadership_ticket *ticket)
{
    bool has_entry = ticket->kind != LEADERSHIP_CONFIRM;
    CADRE_ASSERT(ticket->kind >= LEADERSHIP_SYNC && ticket->kind <= LEADERSHIP_CONFIRM);
    CADRE_ASSERT(has_entry == (ticket->bytes > 0));
    CADRE_ASSERT(ticket->bytes <= LOG_ENTRY_BYTES_MAX);
    CADRE_ASSERT(has_entry || ticket->format == 0);
    if (replaces(leadership, ticket)) {
        ticket_at(leadership, ticket->ticket)->bytes = ticket->bytes;
        return;
    }
    CADRE_ASSERT(ticket->ticket == leadership->queue_first + leadership->queue_count);
    CADRE_ASSERT(leadership->queue_count < leadership->options.tickets_max);
    *ticket_at(leadership, ticket->ticket) = (struct queued_ticket){.kind = ticket->kind,
        .bytes = ticket->bytes,
        .format = ticket->format,
        .offered_us = leadership->now_us};
    leadership->queue_count++;
    leadership->urgent += ticket->kind != LEADERSHIP_LAGGING ? 1 : 0;
}

uint64_t queue_due_us(const struct leadership *leadership)
{
    if (leadership->queue_count == 0) {
        return NEVER;
    }
    if (leadership->urgent > 0 || leadership->leaving) {
        return 0;
    }
    return queued_at(leadership, leadership->queue_first)->offered_us + leadership->options.lag_us;
}

static uint32_t pieces_of(const struct queued_ticket *queued)
{
    return (queued->bytes + LOG_PIECE_BYTES - 1) / LOG_PIECE_BYTES;
}

/* Bytes that the entry takes of an append: of one in pieces only what names
 * them. */
static uint64_t append_bytes(const struct queued_ticket *queued)
{
    return LOG_ENTRY_EXTRA_BYTES + (pieces_of(queued) > 1 ? 0 : queued->bytes);
}

static void fill_pieces(const struct leadership *leadership, struct log_transaction *transaction)
{
    const struct queued_ticket *queued = queued_at(leadership, leadership->queue_first);
    uint32_t count = pieces_of(queued);
    uint32_t end = leadership->piece_written + LOG_PIECES_PER_WRITE;
    transaction->kind = LOG_PIECES;
    transaction->first_ticket = transaction->last_ticket = leadership->queue_first;
    transaction->first_index = leadership->head.index + 1;
    transaction->piece = leadership->piece_written;
    transaction->piece_end = end < count ? end : count;
    transaction->piece_count = count;
}

void queue_fill(const struct leadership *leadership, struct log_transaction *transaction)
{
    uint64_t end = leadership->queue_first + leadership->queue_count;
    uint64_t ticket = leadership->queue_first;
    uint64_t bytes = 0;
    uint32_t entries = 0;
    CADRE_ASSERT(leadership->queue_count > 0);
    for (; ticket < end; ticket++) {
        const struct queued_ticket *queued = queued_at(leadership, ticket);
        if (queued->kind == LEADERSHIP_CONFIRM) {
            continue;
        }
        bool in_pieces = pieces_of(queued) > 1;
        if (in_pieces && ticket == leadership->queue_first &&
            leadership->piece_written < pieces_of(queued)) {
            fill_pieces(leadership, transaction);
            return;
        }
        if ((in_pieces && ticket > leadership->queue_first) || entries == LOG_APPEND_ENTRIES_MAX ||
            bytes + append_bytes(queued) > LOG_APPEND_BYTES_MAX) {
            break;
        }
        entries++;
        bytes += append_bytes(queued);
        if (queued->format > transaction->cluster.format) {
            transaction->cluster.format = queued->format;
        }
    }
    CADRE_ASSERT(ticket > leadership->queue_first);
    transaction->kind = entries > 0 ? LOG_APPEND : LOG_BEAT;
    transaction->first_ticket = leadership->queue_first;
    transaction->last_ticket = ticket - 1;
    transaction->first_index = leadership->head.index + 1;
    transaction->head.index += entries;
}

void queue_logged(struct leadership *leadership, const struct log_transaction *transaction,
    struct leadership_actions *out)
{
    CADRE_ASSERT(transaction->first_ticket == leadership->queue_first);
    for (uint64_t ticket = leadership->queue_first; ticket <= transaction->last_ticket; ticket++) {
        bool urgent = queued_at(leadership, ticket)->kind != LEADERSHIP_LAGGING;
        CADRE_ASSERT(leadership->queue_count > 0);
        leadership->queue_count--;
        leadership->urgent -= urgent ? 1 : 0;
    }
    leadership->queue_first = transaction->last_ticket + 1;
    leadership->piece_written = 0;
    struct leadership_logged *logged = &leadership_append(out, LEADERSHIP_ACTION_LOGGED)->logged;
    logged->ticket = transaction->last_ticket;
    logged->first_index = transaction->first_index;
    logged->entries = (uint32_t)(leadership->head.index + 1 - transaction->first_index);
    logged->at = (struct leadership_position){
        .index = leadership->head.index, .term = leadership->term, .hash = leadership->head.hash};
}
