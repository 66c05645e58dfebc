/* SPDX-License-Identifier: Apache-2.0
 * Sends requests and receives answers over one connection, neither waiting for the other. Called by
 * client.c. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "worker/library/ps/client/client_internal.h"
#include "worker/library/ps/link/frame.h"

#define BATCH_MAX 16 /* requests of one sendmsg */

/* The next request to this server without an answer, from i on; count: none. */
static size_t next_open(const struct exchange *exchange, size_t i)
{
    const struct call *call = exchange->call;
    while (i < call->count && (call->requests[i].server != exchange->server ||
                                  call->requests[i].code != CADRE_PENDING)) {
        i++;
    }
    return i;
}

void client_exchange_begin(struct exchange *exchange)
{
    exchange->out = next_open(exchange, 0);
    exchange->out_done = 0;
    exchange->in = exchange->out;
    exchange->in_body = false;
    exchange->over = exchange->in == exchange->call->count;
}

void exchange_fail(struct exchange *exchange, const struct cadre_error *error)
{
    struct call *call = exchange->call;
    for (size_t i = next_open(exchange, 0); i < call->count; i = next_open(exchange, i)) {
        call_failed(call, i, error);
    }
    exchange->out = call->count;
    exchange->in = call->count;
    exchange->over = true;
}

/* ---- out ---- */

struct batch {
    uint8_t heads[BATCH_MAX][FRAME_BYTES + REQUEST_HEADER_BYTES];
    struct iovec pieces[3 * BATCH_MAX];
    uint64_t sizes[BATCH_MAX]; /* of requests, in bytes */
    size_t count;
    size_t piece_count;
};

/* `skip`: bytes of the request that were sent before. */
static void add_piece(struct batch *batch, const void *bytes, uint64_t count, uint64_t *skip)
{
    uint64_t skipped = *skip < count ? *skip : count;
    *skip -= skipped;
    if (count > skipped) {
        batch->pieces[batch->piece_count++] =
            (struct iovec){(char *)(uintptr_t)bytes + skipped, (size_t)(count - skipped)};
    }
}

static void add_request(
    struct batch *batch, const struct exchange *exchange, size_t i, uint64_t skip)
{
    const struct request *request = &exchange->call->requests[i];
    uint8_t *head = batch->heads[batch->count];
    struct frame frame;
    size_t part =
        request_write(request, exchange->call->done_watermark, &frame, head + FRAME_BYTES);
    bool gathers = request->kind == REQUEST_GATHER;
    frame.id = i;
    frame_write(&frame, head);
    add_piece(batch, head, FRAME_BYTES + part, &skip);
    add_piece(batch, gathers ? request->ids : request->push.ids, request_ids_bytes(request), &skip);
    add_piece(batch, request->values, request_values_bytes(request), &skip);
    batch->sizes[batch->count++] = FRAME_BYTES + frame.bytes;
}

static void fill_batch(struct batch *batch, const struct exchange *exchange)
{
    uint64_t skip = exchange->out_done;
    batch->count = 0;
    batch->piece_count = 0;
    for (size_t i = exchange->out; i < exchange->call->count && batch->count < BATCH_MAX;
         i = next_open(exchange, i + 1)) {
        add_request(batch, exchange, i, skip);
        skip = 0;
    }
}

static void client_exchange_advance(
    struct exchange *exchange, const struct batch *batch, uint64_t sent)
{
    for (size_t i = 0; i < batch->count; i++) {
        uint64_t left = batch->sizes[i] - exchange->out_done;
        if (sent < left) {
            exchange->out_done += sent;
            return;
        }
        sent -= left;
        exchange->out = next_open(exchange, exchange->out + 1);
        exchange->out_done = 0;
    }
}

enum exchange_step exchange_send(struct exchange *exchange)
{
    struct batch batch;
    while (exchange->out < exchange->call->count) {
        fill_batch(&batch, exchange);
        struct msghdr message = {.msg_iov = batch.pieces, .msg_iovlen = batch.piece_count};
        ssize_t sent = sendmsg(link_fd(exchange->link), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) {
            return EXCHANGE_WAITS;
        }
        if (sent < 0 && errno != EINTR) {
            return EXCHANGE_LOST;
        }
        client_exchange_advance(exchange, &batch, sent < 0 ? 0 : (uint64_t)sent);
    }
    return EXCHANGE_DONE;
}

/* ---- in ---- */

static bool is_good(const struct exchange *exchange)
{
    const struct frame *answer = &exchange->answer;
    uint64_t wanted = request_answer_bytes(&exchange->call->requests[exchange->in]);
    return answer->code == CADRE_OK && (wanted == UINT64_MAX || wanted == answer->bytes);
}

/* Chooses where the body of the answer is written. False: no memory. */
static bool choose_body(struct exchange *exchange)
{
    struct request *request = &exchange->call->requests[exchange->in];
    const struct frame *answer = &exchange->answer;
    uint64_t bytes = answer->bytes;
    exchange->in_got = 0;
    exchange->into_bytes = bytes;
    if (!is_good(exchange)) {
        uint64_t most = sizeof exchange->sentence - 1;
        exchange->into = (uint8_t *)exchange->sentence;
        exchange->into_bytes = bytes < most ? bytes : most;
    } else if (request_answer_bytes(request) == UINT64_MAX) {
        free(request->ret_text);
        request->ret_text = bytes < REQUEST_NOTE_MAX * 2 ? calloc(1, bytes + 1) : NULL;
        request->ret_text_bytes = bytes;
        exchange->into = (uint8_t *)request->ret_text;
        return request->ret_text != NULL;
    } else {
        exchange->into = request->into;
    }
    return true;
}

static void finish_answer(struct exchange *exchange)
{
    struct call *call = exchange->call;
    struct request *request = &call->requests[exchange->in];
    const struct frame *answer = &exchange->answer;
    struct cadre_error error = {0};
    request->ret_version = answer->args[ANSWER_VERSION];
    request->ret_steps = answer->args[ANSWER_NUMBER];
    if (is_good(exchange)) {
        bool pushed = request->kind == REQUEST_PUSH || request->kind == REQUEST_PUSH_PULL ||
                      request->kind == REQUEST_SETTLE;
        request->code = CADRE_OK;
        request->ret_trust = pushed ? request_double(answer->args[ANSWER_NUMBER]) : 0;
        request->ret_shard = (uint32_t)answer->args[ANSWER_NUMBER];
        request->updates =
            request->kind == REQUEST_SLOT ? answer->args[ANSWER_NUMBER] : request->updates;
    } else if (answer->code != CADRE_OK) {
        exchange->sentence[exchange->into_bytes] = '\0';
        (void)cadre_error_set(&error, (cadre_status)answer->code, "ps %" PRIu32 ": %s",
            exchange->server, exchange->sentence);
        call_failed(call, exchange->in, &error);
    } else {
        (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "ps %" PRIu32 " has %" PRIu64 " bytes of what was asked of shard %" PRIu32
            ", where %" PRIu64 " were expected",
            exchange->server, answer->bytes, request->shard, request_answer_bytes(request));
        call_failed(call, exchange->in, &error);
    }
    exchange->in = next_open(exchange, exchange->in + 1);
    exchange->in_body = false;
}

static enum exchange_step protocol_broken(struct exchange *exchange)
{
    struct cadre_error error = {0};
    (void)cadre_error_set(
        &error, CADRE_INTERNAL, "%s answers what was not asked", link_peer_name(exchange->link));
    exchange_fail(exchange, &error);
    client_drop_link(exchange);
    return EXCHANGE_DONE;
}

/* WAITS, LOST, or DONE: the header was received. */
static enum exchange_step receive_header(struct exchange *exchange, bool wait)
{
    struct link *link = exchange->link;
    int there = link_read_ahead(link, FRAME_BYTES, wait);
    if (there <= 0) {
        return there < 0 ? EXCHANGE_LOST : EXCHANGE_WAITS;
    }
    frame_read(link->ahead + link->begin, &exchange->answer);
    link->begin += FRAME_BYTES;
    exchange->in_body = true;
    return EXCHANGE_DONE;
}

static enum exchange_step receive_body(struct exchange *exchange, bool wait)
{
    uint8_t dropped[4096];
    while (exchange->in_got < exchange->answer.bytes) {
        bool kept = exchange->in_got < exchange->into_bytes;
        uint64_t end = kept ? exchange->into_bytes : exchange->answer.bytes;
        uint64_t more = end - exchange->in_got;
        uint8_t *into = kept ? exchange->into + exchange->in_got : dropped;
        size_t most = kept || more < sizeof dropped ? (size_t)more : sizeof dropped;
        ssize_t got = link_read(exchange->link, into, most, wait);
        if (got <= 0) {
            return got < 0 ? EXCHANGE_LOST : EXCHANGE_WAITS;
        }
        exchange->in_got += (uint64_t)got;
    }
    return EXCHANGE_DONE;
}

enum exchange_step exchange_receive(struct exchange *exchange, bool wait)
{
    while (exchange->in < exchange->call->count) {
        if (!exchange->in_body) {
            /* Answers of requests that were not sent yet are not waited for. */
            enum exchange_step step = receive_header(exchange, wait);
            if (step != EXCHANGE_DONE) {
                return step;
            }
            if (exchange->answer.kind != FRAME_ANSWER || exchange->answer.id != exchange->in ||
                !choose_body(exchange)) {
                return protocol_broken(exchange);
            }
        }
        enum exchange_step step = receive_body(exchange, wait);
        if (step != EXCHANGE_DONE) {
            return step;
        }
        finish_answer(exchange);
    }
    return EXCHANGE_DONE;
}
