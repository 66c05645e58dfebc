/* SPDX-License-Identifier: Apache-2.0
 * A message is a broadcast in the mesh of two tasks, from the one that sends: both must be in it,
 * both compare what they call, and within a host it goes through shared memory. plain_messages.c
 * calls it.
 *
 *     with two tasks   the program's thread receives from one, the sender's thread sends to the
 *                      other, each in a mesh of its own
 *     with one task    first what the lower rank sends, then what the higher does
 *     with itself      a copy */
#include "worker/library/runtime/plain/plain_message.h"

#include <stdio.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/device/argument.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain_call.h"

/* One direction on its way. */
struct transfer {
    struct cadre_plain_group *group;
    const struct plain_exchange *exchange;
    const struct plain_message *message;
    bool sends;
    bool refused;           /* the call's arguments are: the partner gets an error instead */
    struct transfer *other; /* in the other thread; NULL: none */
    _Atomic bool aborted;   /* because the other one failed */
    struct cadre_error error;
};

/* --- arguments --- */

static cadre_status check_message(const struct cadre_plain_group *group,
    const struct plain_exchange *exchange, struct plain_message *message, struct cadre_error *error)
{
    bool sends = message == &exchange->sent;
    const void *memory = sends ? message->from : message->into;
    if (!message->due) {
        return CADRE_OK;
    }
    CADRE_TRY(plain_check_elements(
        exchange->function, message->count, exchange->dtype, 1, &message->bytes, error));
    if (message->bytes > 0) {
        CADRE_TRY(argument_require(memory, exchange->function, message->name, error));
    }
    if (message->partner >= group->size) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with %u for `%s`, and the %s 0 to %u; where there is "
            "none give CADRE_PLAIN_NO_TASK",
            exchange->function, message->partner, message->partner_name, plain_group_ranks(group),
            group->size - 1);
    }
    return CADRE_OK;
}

/* A message to this task itself needs both directions in one call. */
static cadre_status check_own(const struct cadre_plain_group *group,
    const struct plain_exchange *exchange, struct cadre_error *error)
{
    const struct plain_message *sent = &exchange->sent;
    const struct plain_message *received = &exchange->received;
    bool to_own = sent->due && sent->partner == group->rank;
    bool from_own = received->due && received->partner == group->rank;
    if (to_own != from_own) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with `%s` %u, which is this task: it would wait for itself; copy, or "
            "give the same task to send to and to receive from",
            exchange->function, to_own ? sent->partner_name : received->partner_name, group->rank);
    }
    if (to_own && sent->count != received->count) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called to send %zu elements to this task and to receive %zu of them",
            exchange->function, sent->count, received->count);
    }
    return CADRE_OK;
}

static cadre_status check_exchange(const struct cadre_plain_group *group,
    struct plain_exchange *exchange, struct cadre_error *error)
{
    struct plain_message *sent = &exchange->sent;
    struct plain_message *received = &exchange->received;
    CADRE_TRY(check_message(group, exchange, sent, error));
    CADRE_TRY(check_message(group, exchange, received, error));
    CADRE_TRY(check_own(group, exchange, error));
    if (sent->due && received->due && sent->bytes > 0 && received->bytes > 0 &&
        plain_overlap(sent->from, sent->bytes, received->into, received->bytes)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was called with memory that overlaps: it sends %zu bytes and receives %zu; keep "
            "them apart",
            exchange->function, sent->bytes, received->bytes);
    }
    return CADRE_OK;
}

/* --- one direction --- */

static struct plain_pair *pair_of(const struct transfer *transfer)
{
    return &transfer->group->pairs[transfer->message->partner];
}

/* A loop makes the same calls again, so the text of the last one is kept. */
static struct mesh_note transfer_note(const struct transfer *transfer)
{
    const struct plain_exchange *exchange = transfer->exchange;
    struct plain_note *note = &pair_of(transfer)->notes[transfer->sends];
    uint64_t key = collective_key(collective_key_text(0, "message"), transfer->message->count);
    key = collective_key(key, (uint64_t)exchange->dtype);
    if (note->key != key || note->function != exchange->function) {
        uint32_t partner = plain_group_number(transfer->group, transfer->message->partner);
        snprintf(note->text, sizeof note->text,
            "task %u calls %s(%s task %u) with %zu elements of type %s",
            transfer->group->plain->roster.rank, exchange->function,
            transfer->sends ? "to" : "from", partner, transfer->message->count,
            cadre_dtype_name(exchange->dtype));
        note->key = key;
        note->function = exchange->function;
    }
    return (struct mesh_note){.key = key, .text = note->text};
}

static cadre_status carry(
    const struct transfer *transfer, const struct mesh_note *note, struct cadre_error *error)
{
    const struct plain_message *message = transfer->message;
    struct mesh *mesh = pair_of(transfer)->mesh;
    uint32_t own = message->partner < transfer->group->rank;
    void *memory = transfer->sends ? (void *)(uintptr_t)message->from : message->into;
    const struct mesh_buffer buffer = {.data = memory, .bytes = message->bytes, .dtype = MESH_U8};
    return mesh->ops->broadcast(mesh, 0, transfer->sends ? own : 1 - own, &buffer, 1, note, error);
}

static bool is_final(cadre_status status)
{
    return status != CADRE_OK && status != CADRE_INVALID_ARGUMENT;
}

/* A failure ends the other direction too, which may wait for a task that never comes. */
static void transfer_run(void *user)
{
    struct transfer *transfer = user;
    struct transfer *other = transfer->other;
    const struct mesh_note note = transfer_note(transfer);
    cadre_status status = plain_pair_form(pair_of(transfer), other == NULL, &transfer->error);
    if (status == CADRE_OK) {
        status = transfer->refused ? plain_refuse(transfer->group->plain, pair_of(transfer)->mesh,
                                         transfer->exchange->function, &transfer->error)
                                   : carry(transfer, &note, &transfer->error);
    }
    status = plain_name_wait(note.text, status, &transfer->error);
    if (is_final(status) && other != NULL && !atomic_load(&transfer->aborted)) {
        struct mesh *mesh = pair_of(other)->mesh;
        atomic_store(&other->aborted, true);
        mesh->ops->abort(mesh, transfer->error.text);
    }
}

/* --- both --- */

/* With one task: in the order that both tasks derive. */
static cadre_status run_in_turn(
    struct transfer *sent, struct transfer *received, struct cadre_error *error)
{
    bool sends_first = sent->group->rank < sent->message->partner;
    struct transfer *first = sends_first ? sent : received;
    struct transfer *second = sends_first ? received : sent;
    transfer_run(first);
    if (first->error.code == CADRE_OK) {
        transfer_run(second);
    }
    *error = first->error.code != CADRE_OK ? first->error : second->error;
    return error->code;
}

static cadre_status run_at_once(
    struct transfer *sent, struct transfer *received, struct cadre_error *error)
{
    struct plain_sender *sender = &sent->group->plain->sender;
    sent->other = received;
    received->other = sent;
    CADRE_TRY(plain_sender_begin(sender, transfer_run, sent, error));
    transfer_run(received);
    plain_sender_wait(sender);
    bool of_sent = sent->error.code != CADRE_OK && !atomic_load(&sent->aborted);
    *error = of_sent || received->error.code == CADRE_OK ? sent->error : received->error;
    return error->code;
}

static void copy_own(const struct plain_exchange *exchange)
{
    if (exchange->sent.bytes > 0) {
        memcpy(exchange->received.into, exchange->sent.from, exchange->sent.bytes);
    }
}

/* Connects with the partners, and exchanges what is due. */
static cadre_status exchange_with(struct cadre_plain_group *group,
    const struct plain_exchange *exchange, bool refused, struct cadre_error *error)
{
    const struct plain_message *sent = &exchange->sent;
    const struct plain_message *received = &exchange->received;
    struct transfer sends = {.group = group, .exchange = exchange, .message = sent, .sends = true};
    struct transfer receives = {.group = group, .exchange = exchange, .message = received};
    uint32_t partners[2];
    uint32_t count = 0;
    sends.refused = receives.refused = refused;
    if (sent->due) {
        partners[count++] = sent->partner;
    }
    if (received->due && (count == 0 || partners[0] != received->partner)) {
        partners[count++] = received->partner;
    }
    if (count == 0) {
        return CADRE_OK;
    }
    CADRE_TRY(plain_pairs_post(group, partners, count, error));
    if (sent->due && received->due) {
        return count == 1 ? run_in_turn(&sends, &receives, error)
                          : run_at_once(&sends, &receives, error);
    }
    struct transfer *only = sent->due ? &sends : &receives;
    transfer_run(only);
    *error = only->error;
    return error->code;
}

static cadre_status run(struct cadre_plain_group *group, const struct plain_exchange *exchange,
    bool refused, struct cadre_error *error)
{
    return plain_end_collective(
        group->plain, exchange_with(group, exchange, refused, error), error);
}

/* The partners that exist are, or will be, in the call that this task cannot make. */
static void plain_exchange_refuse(
    struct cadre_plain_group *group, const struct plain_exchange *exchange)
{
    struct cadre_error ignored = {0};
    struct plain_exchange met = *exchange;
    met.sent.due =
        met.sent.due && met.sent.partner < group->size && met.sent.partner != group->rank;
    met.received.due = met.received.due && met.received.partner < group->size &&
                       met.received.partner != group->rank;
    if (met.sent.due && met.received.due && met.sent.partner == met.received.partner) {
        met.received.due = false; /* it is in one call */
    }
    (void)run(group, &met, true, &ignored);
}

cadre_status plain_exchange_make(cadre_status entered, struct cadre_plain_group *group,
    struct plain_exchange *exchange, struct cadre_error *error)
{
    if (entered != CADRE_OK) {
        return api_return(entered, error);
    }
    CADRE_ASSERT(exchange->function != NULL);
    exchange->sent.due = exchange->sent.due && exchange->sent.partner != CADRE_PLAIN_NO_TASK;
    exchange->received.due =
        exchange->received.due && exchange->received.partner != CADRE_PLAIN_NO_TASK;
    cadre_status status = check_exchange(group, exchange, error);
    if (status != CADRE_OK) {
        plain_exchange_refuse(group, exchange);
    } else if (exchange->sent.due && exchange->sent.partner == group->rank) {
        copy_own(exchange);
    } else {
        status = run(group, exchange, false, error);
    }
    plain_leave(group->plain);
    return api_return(status, error);
}
