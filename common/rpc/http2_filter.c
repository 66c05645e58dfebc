/* SPDX-License-Identifier: Apache-2.0
 * Parses HTTP/2 frames (RFC 9113, section 4.1) and the five bytes before each message of gRPC,
 * and counts what each caller has announced. Called by io_hooks.c. */
#include "common/rpc/http2_filter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/pure/assert.h"

#define FRAME_HEADER_BYTES   9
#define MESSAGE_HEADER_BYTES 5
#define SECRET_BYTES         11 /* and the reason, and the length */

#define FRAME_DATA     0
#define FRAME_HEADERS  1
#define FRAME_RESET    3
#define FLAG_END       0x01
#define FLAG_PADDED    0x08
#define STREAM_ID_MASK 0x7fffffffU

/* A client may have 512 calls; of those that it gave up, or that were ended while it sent, some
 * are kept here until the rest of their bytes has come. */
#define STREAMS_MAX    1024
#define FRAGMENT_BYTES 4096
#define ENDED_MAX      256

/* A message of a call that has begun and not ended. */
struct message {
    uint32_t stream;
    uint8_t header_bytes; /* of its five that came */
    uint8_t refusal_bytes;
    enum rpc_refusal refusal;
    uint32_t length, left;
    size_t announced_bytes, fragments;
};

struct frame {
    uint8_t header[FRAME_HEADER_BYTES];
    uint8_t header_bytes;
    uint32_t left; /* of the payload */
    uint32_t padding;
    uint32_t stream;
    uint8_t type, flags;
    bool pad_length_due;
};

struct rpc_http2_filter {
    struct rpc_caller *caller;
    bool foreign;
    uint8_t preface_bytes;
    struct frame in, out;
    struct message *messages;
    uint32_t message_count, message_room;
    uint32_t *ended; /* streams that the server ended first, in a ring; NULL until there is one */
    uint32_t ended_next;
};

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

#define PREFACE_BYTES (sizeof preface - 1)

/* ---- refusals ---- */

static uint8_t drawn[SECRET_BYTES];

static void random_next(void)
{
    ssize_t got = getrandom(drawn, sizeof drawn, 0);
    CADRE_ASSERT(got == (ssize_t)sizeof drawn);
}

/* The mark of a refusal. A client that guessed it would refuse its own message, and nothing
 * else. */
static const uint8_t *http2_filter_secret(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, random_next);
    return drawn;
}

static void write_refusal(const struct message *message, uint8_t out[RPC_REFUSAL_BYTES])
{
    memcpy(out, http2_filter_secret(), SECRET_BYTES);
    out[SECRET_BYTES] = (uint8_t)message->refusal;
    for (unsigned i = 0; i < 4; i++) {
        out[SECRET_BYTES + 1 + i] = (uint8_t)(message->length >> (24 - 8 * i));
    }
}

enum rpc_refusal rpc_refusal_read(const void *data, size_t length, uint64_t *ret_bytes)
{
    const uint8_t *bytes = data;
    if (length != RPC_REFUSAL_BYTES || memcmp(bytes, http2_filter_secret(), SECRET_BYTES) != 0) {
        return RPC_REFUSAL_NONE;
    }
    *ret_bytes = 0;
    for (unsigned i = 0; i < 4; i++) {
        *ret_bytes = *ret_bytes << 8 | bytes[SECRET_BYTES + 1 + i];
    }
    return (enum rpc_refusal)bytes[SECRET_BYTES];
}

/* ---- the messages that have begun ---- */

struct rpc_http2_filter *rpc_http2_filter_open(struct rpc_caller *caller)
{
    struct rpc_http2_filter *filter = calloc(1, sizeof *filter);
    if (filter != NULL) {
        filter->caller = caller;
    }
    return filter;
}

static struct message *http2_filter_find(struct rpc_http2_filter *filter, uint32_t stream)
{
    for (uint32_t i = 0; i < filter->message_count; i++) {
        if (filter->messages[i].stream == stream) {
            return &filter->messages[i];
        }
    }
    return NULL;
}

static struct message *http2_filter_begin(struct rpc_http2_filter *filter, uint32_t stream)
{
    if (filter->message_count == STREAMS_MAX) {
        return NULL;
    }
    if (filter->message_count == filter->message_room) {
        uint32_t room = filter->message_room == 0 ? 4 : 2 * filter->message_room;
        struct message *more = realloc(filter->messages, room * sizeof *more);
        if (more == NULL) {
            return NULL;
        }
        filter->messages = more;
        filter->message_room = room;
    }
    struct message *message = &filter->messages[filter->message_count++];
    *message = (struct message){.stream = stream};
    return message;
}

static void http2_filter_end(struct rpc_http2_filter *filter, struct message *message)
{
    if (message != NULL) {
        filter->caller->announced_bytes -= message->announced_bytes;
        filter->caller->fragments -= message->fragments;
        *message = filter->messages[--filter->message_count];
    }
}

void rpc_http2_filter_close(struct rpc_http2_filter *filter)
{
    if (filter == NULL) {
        return;
    }
    while (filter->message_count > 0) {
        http2_filter_end(filter, &filter->messages[0]);
    }
    free(filter->ended);
    free(filter->messages);
    free(filter);
}

bool rpc_http2_filter_is_active(const struct rpc_http2_filter *filter)
{
    return !filter->foreign;
}

static void remember_ended(struct rpc_http2_filter *filter, uint32_t stream)
{
    if (filter->ended == NULL) {
        filter->ended = calloc(ENDED_MAX, sizeof *filter->ended);
    }
    if (filter->ended != NULL) {
        filter->ended[filter->ended_next] = stream;
        filter->ended_next = (filter->ended_next + 1) % ENDED_MAX;
    }
}

static bool was_ended(const struct rpc_http2_filter *filter, uint32_t stream)
{
    for (uint32_t i = 0; i < ENDED_MAX && filter->ended != NULL; i++) {
        if (filter->ended[i] == stream) {
            return true;
        }
    }
    return false;
}

/* ---- one message ---- */

/* What a message may announce; a caller's only one always fits. */
static size_t caller_limit(const struct rpc_caller *caller)
{
    return caller->message_bytes_max > RPC_CALLER_BYTES_MAX ? caller->message_bytes_max
                                                            : RPC_CALLER_BYTES_MAX;
}

/* The first byte of a length that is not zero gives its order: there the message is refused,
 * when gRPC has read zeros only, or taken. The lowest byte is never refused. */
static enum rpc_refusal check_length(
    const struct rpc_caller *caller, uint32_t byte, unsigned shift, size_t *ret_announced)
{
    uint64_t least = (uint64_t)byte << shift;
    uint64_t most = ((uint64_t)(byte + 1) << shift) - 1;
    if (least > caller->message_bytes_max) {
        return RPC_REFUSAL_TOO_LONG;
    }
    if (most > caller->message_bytes_max) {
        most = caller->message_bytes_max;
    }
    if (caller->announced_bytes > 0 && most > caller_limit(caller) - caller->announced_bytes) {
        return RPC_REFUSAL_TOO_MANY;
    }
    *ret_announced = (size_t)most;
    return RPC_REFUSAL_NONE;
}

/* One byte of the five; changes it in a message that is refused. */
static void parse_message_header(
    struct rpc_http2_filter *filter, struct message *message, uint8_t *byte)
{
    struct rpc_caller *caller = filter->caller;
    unsigned at = message->header_bytes++;
    if (at == 0) { /* the compressed flag, which gRPC checks */
        return;
    }
    unsigned shift = 8 * (MESSAGE_HEADER_BYTES - 1 - at);
    bool first = message->length == 0 && *byte != 0;
    message->length |= (uint32_t)*byte << shift;
    if (first && shift > 0) {
        message->refusal = check_length(caller, *byte, shift, &message->announced_bytes);
        caller->announced_bytes += message->announced_bytes;
    }
    if (message->refusal != RPC_REFUSAL_NONE) {
        *byte = shift == 0 ? RPC_REFUSAL_BYTES : 0;
    }
    if (shift == 0 && message->announced_bytes > 0) {
        caller->announced_bytes -= message->announced_bytes;
        message->announced_bytes = message->length;
        caller->announced_bytes += message->announced_bytes;
    }
    message->left = message->length;
}

static uint32_t parse_content(struct message *message, uint8_t *bytes, uint32_t count)
{
    uint32_t take = count < message->left ? count : message->left;
    if (message->refusal != RPC_REFUSAL_NONE && message->refusal_bytes < RPC_REFUSAL_BYTES) {
        uint8_t refusal[RPC_REFUSAL_BYTES];
        uint32_t due = RPC_REFUSAL_BYTES - message->refusal_bytes;
        due = due < take ? due : take;
        write_refusal(message, refusal);
        memcpy(bytes, refusal + message->refusal_bytes, due);
        message->refusal_bytes = (uint8_t)(message->refusal_bytes + due);
    }
    message->left -= take;
    return take;
}

static bool parse_data(
    struct rpc_http2_filter *filter, uint32_t stream, uint8_t *bytes, uint32_t count)
{
    struct message *message = http2_filter_find(filter, stream);
    bool small = count < FRAGMENT_BYTES;
    if (count == 0 || (message == NULL && was_ended(filter, stream))) {
        return true;
    }
    while (count > 0) {
        uint32_t taken = 1;
        if (message == NULL && (message = http2_filter_begin(filter, stream)) == NULL) {
            return false;
        }
        if (message->header_bytes < MESSAGE_HEADER_BYTES) {
            parse_message_header(filter, message, bytes);
        } else {
            taken = parse_content(message, bytes, count);
        }
        bytes += taken;
        count -= taken;
        if (message->header_bytes == MESSAGE_HEADER_BYTES && message->left == 0) {
            http2_filter_end(filter, message);
            message = NULL;
        }
    }
    if (message != NULL && message->refusal == RPC_REFUSAL_NONE && small) {
        message->fragments++;
        filter->caller->fragments++;
    }
    return filter->caller->fragments <= RPC_CALLER_FRAGMENTS_MAX;
}

/* ---- frames ---- */

/* RFC 9113, section 4.1: adds to the frame's header; returns how many bytes it took. */
static size_t parse_frame_header(struct frame *frame, const uint8_t *bytes, size_t count)
{
    size_t due = FRAME_HEADER_BYTES - frame->header_bytes;
    size_t take = count < due ? count : due;
    memcpy(frame->header + frame->header_bytes, bytes, take);
    frame->header_bytes = (uint8_t)(frame->header_bytes + take);
    if (frame->header_bytes == FRAME_HEADER_BYTES) {
        const uint8_t *h = frame->header;
        frame->left = (uint32_t)h[0] << 16 | (uint32_t)h[1] << 8 | h[2];
        frame->type = h[3];
        frame->flags = h[4];
        frame->stream = ((uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8]) &
                        STREAM_ID_MASK;
        frame->pad_length_due =
            frame->type == FRAME_DATA && (frame->flags & FLAG_PADDED) != 0 && frame->left > 0;
        frame->padding = 0;
    }
    return take;
}

/* The payload of one frame, or a part of it. Section 6.1: a padded DATA frame begins with the
 * length of its padding, which ends it. */
static bool parse_payload(struct rpc_http2_filter *filter, uint8_t *bytes, size_t count)
{
    struct frame *frame = &filter->in;
    if (frame->type == FRAME_DATA) {
        if (frame->pad_length_due && count > 0) {
            frame->pad_length_due = false;
            frame->padding = bytes[0];
            frame->left--;
            bytes++;
            count--;
        }
        uint32_t content = frame->left > frame->padding ? frame->left - frame->padding : 0;
        uint32_t take = count < content ? (uint32_t)count : content;
        if (!parse_data(filter, frame->stream, bytes, take)) {
            return false;
        }
    }
    frame->left -= (uint32_t)count;
    return true;
}

/* The client sends no more of the stream: END_STREAM (sections 6.1, 6.2) or RST_STREAM (6.4). */
static bool ends_stream(const struct frame *frame)
{
    return frame->type == FRAME_RESET ||
           ((frame->type == FRAME_DATA || frame->type == FRAME_HEADERS) &&
               (frame->flags & FLAG_END) != 0);
}

static bool parse_frames(struct rpc_http2_filter *filter, uint8_t *bytes, size_t count)
{
    struct frame *frame = &filter->in;
    while (count > 0) {
        size_t taken = 0;
        if (frame->header_bytes < FRAME_HEADER_BYTES) {
            taken = parse_frame_header(frame, bytes, count);
        } else {
            taken = count < frame->left ? count : frame->left;
            if (!parse_payload(filter, bytes, taken)) {
                return false;
            }
        }
        bytes += taken;
        count -= taken;
        if (frame->header_bytes == FRAME_HEADER_BYTES && frame->left == 0) {
            if (ends_stream(frame)) {
                http2_filter_end(filter, http2_filter_find(filter, frame->stream));
            }
            frame->header_bytes = 0;
        }
    }
    return true;
}

bool rpc_http2_filter_received(struct rpc_http2_filter *filter, uint8_t *bytes, size_t count)
{
    while (!filter->foreign && filter->preface_bytes < PREFACE_BYTES && count > 0) {
        filter->foreign = bytes[0] != (uint8_t)preface[filter->preface_bytes];
        filter->preface_bytes++;
        bytes++;
        count--;
    }
    return filter->foreign || parse_frames(filter, bytes, count);
}

void rpc_http2_filter_sent(struct rpc_http2_filter *filter, const uint8_t *bytes, size_t count)
{
    struct frame *frame = &filter->out;
    while (count > 0 && !filter->foreign) {
        size_t taken = 0;
        if (frame->header_bytes < FRAME_HEADER_BYTES) {
            taken = parse_frame_header(frame, bytes, count);
        } else {
            taken = count < frame->left ? count : frame->left;
            frame->left -= (uint32_t)taken;
        }
        bytes += taken;
        count -= taken;
        if (frame->header_bytes == FRAME_HEADER_BYTES && frame->left == 0) {
            if (frame->type == FRAME_RESET) {
                http2_filter_end(filter, http2_filter_find(filter, frame->stream));
                remember_ended(filter, frame->stream);
            }
            frame->header_bytes = 0;
        }
    }
}
