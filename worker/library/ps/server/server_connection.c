/* SPDX-License-Identifier: Apache-2.0
 * A connection's bytes, in and out, without blocking; its state machine. Called by
 * server_loop.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "worker/library/ps/link/frame.h"
#include "worker/library/ps/server/server_internal.h"

#define BUFFER_FIRST_BYTES 1024

bool growing_buffer_reserve(struct growing_buffer *room, size_t size)
{
    if (size > room->size) {
        size_t more = room->size * 2 > size ? room->size * 2 : size;
        uint8_t *bytes =
            realloc(room->bytes, more < BUFFER_FIRST_BYTES ? BUFFER_FIRST_BYTES : more);
        if (bytes == NULL) {
            return false;
        }
        room->bytes = bytes;
        room->size = more < BUFFER_FIRST_BYTES ? BUFFER_FIRST_BYTES : more;
    }
    return true;
}

void connection_free(struct connection *connection)
{
    struct server *server = connection->loop->server;
    push_abandon(connection);
    if (server->attached == connection) { /* of a copy, in its only loop */
        copy_forwarded_abandon(server);
        server->attached = NULL;
    }
    link_free(connection->link);
    free(connection->collected.bytes);
    free(connection->block.bytes);
    free(connection->out.bytes);
    free(connection);
}

/* ---- answers ---- */

static void server_connection_answer(
    struct connection *connection, const struct frame *frame, const void *bytes)
{
    frame_write(frame, connection->header);
    connection->answer = bytes;
    connection->answer_bytes = frame->bytes;
    connection->sent = 0;
    connection->state = connection->left > 0 ? CONNECTION_DISCARD : CONNECTION_ANSWER;
}

void connection_answer(struct connection *connection, uint64_t version, uint64_t number,
    const void *bytes, uint64_t count)
{
    struct frame frame = {.kind = FRAME_ANSWER, .id = connection->frame.id, .bytes = count};
    frame.args[ANSWER_VERSION] = version;
    frame.args[ANSWER_NUMBER] = number;
    server_connection_answer(connection, &frame, bytes);
}

void connection_refuse(struct connection *connection, const struct cadre_error *error)
{
    struct frame frame = {
        .kind = FRAME_ANSWER, .id = connection->frame.id, .code = (uint32_t)error->code};
    size_t length = strlen(error->text);
    if (growing_buffer_reserve(&connection->out, length)) {
        memcpy(connection->out.bytes, error->text, length);
        frame.bytes = length;
    }
    server_connection_answer(connection, &frame, connection->out.bytes);
}

/* Rows are sent while other threads change them, which is allowed (store.h); the thread sanitizer
 * reports the system call that reads them. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreReadsBegin(const char *file, int line_number);
void AnnotateIgnoreReadsEnd(const char *file, int line_number);
#define UNWATCHED_BEGIN() AnnotateIgnoreReadsBegin(__FILE__, __LINE__)
#define UNWATCHED_END()   AnnotateIgnoreReadsEnd(__FILE__, __LINE__)
#else
#define UNWATCHED_BEGIN() ((void)0)
#define UNWATCHED_END()   ((void)0)
#endif

static enum next_step send_answer(struct connection *connection)
{
    uint64_t total = FRAME_BYTES + connection->answer_bytes;
    while (connection->sent < total) {
        struct iovec pieces[2];
        size_t count = 0;
        uint64_t of_answer = 0;
        if (connection->sent < FRAME_BYTES) {
            pieces[count++] = (struct iovec){
                connection->header + connection->sent, FRAME_BYTES - connection->sent};
        } else {
            of_answer = connection->sent - FRAME_BYTES;
        }
        if (connection->answer_bytes > of_answer) {
            pieces[count++] = (struct iovec){(uint8_t *)(uintptr_t)connection->answer + of_answer,
                connection->answer_bytes - of_answer};
        }
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};
        UNWATCHED_BEGIN();
        ssize_t sent = sendmsg(link_fd(connection->link), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        UNWATCHED_END();
        if (sent < 0 && errno == EAGAIN) {
            return NEXT_WRITE;
        }
        if (sent < 0 && errno != EINTR) {
            return NEXT_CLOSE;
        }
        connection->sent += sent < 0 ? 0 : (uint64_t)sent;
    }
    connection->state = CONNECTION_HEADER;
    return NEXT_CONTINUE;
}

/* ---- requests ---- */

static enum next_step no_bytes(ssize_t got)
{
    return got < 0 ? NEXT_CLOSE : NEXT_READ;
}

static enum next_step read_header(struct connection *connection)
{
    struct link *link = connection->link;
    int there = link_read_ahead(link, FRAME_BYTES, false);
    if (there <= 0) {
        return no_bytes(there);
    }
    frame_read(link->ahead + link->begin, &connection->frame);
    link->begin += FRAME_BYTES;
    connection->left = connection->frame.bytes;
    connection->got = 0;
    request_begin(connection);
    return NEXT_CONTINUE;
}

/* Memory grows with the bytes that arrived, not with those that were announced. */
static enum next_step server_connection_collect(struct connection *connection)
{
    struct growing_buffer *room = &connection->collected;
    while (connection->got < connection->wanted) {
        uint64_t more = connection->wanted - connection->got;
        size_t step = more < sizeof connection->loop->scratch ? (size_t)more
                                                              : sizeof connection->loop->scratch;
        if (!growing_buffer_reserve(room, connection->got + step)) {
            return NEXT_CLOSE;
        }
        ssize_t got = link_read(connection->link, room->bytes + connection->got, step, false);
        if (got <= 0) {
            return no_bytes(got);
        }
        connection->got += (size_t)got;
        connection->left -= (uint64_t)got;
    }
    request_run(connection);
    return NEXT_CONTINUE;
}

static enum next_step drop_bytes(struct connection *connection, uint64_t *left)
{
    uint8_t *scratch = connection->loop->scratch;
    size_t size = sizeof connection->loop->scratch;
    while (*left > 0) {
        size_t step = *left < size ? (size_t)*left : size;
        ssize_t got = link_read(connection->link, scratch, step, false);
        if (got <= 0) {
            return no_bytes(got);
        }
        *left -= (uint64_t)got;
    }
    return NEXT_CONTINUE;
}

static enum next_step take_values(struct connection *connection, size_t *turn)
{
    if (connection->skip > 0) {
        uint64_t before = connection->skip;
        enum next_step step = drop_bytes(connection, &connection->skip);
        connection->left -= before - connection->skip;
        if (step != NEXT_CONTINUE) {
            return step;
        }
    }
    while (connection->block_got < connection->block_wanted) {
        uint8_t *into = connection->direct != NULL ? connection->direct : connection->block.bytes;
        ssize_t got = link_read(connection->link, into + connection->block_got,
            connection->block_wanted - connection->block_got, false);
        if (got <= 0) {
            return no_bytes(got);
        }
        connection->block_got += (size_t)got;
        connection->left -= (uint64_t)got;
    }
    *turn += connection->block_wanted;
    push_block(connection);
    return NEXT_CONTINUE;
}

/* It waits for a push of another connection. After it is counted in `parked` each push wakes it. A
 * push before that woke nothing, so the condition is checked once more. */
static enum next_step wait_parked(struct connection *connection)
{
    struct server *server = connection->loop->server;
    atomic_fetch_add(&server->parked, 1);
    request_run(connection);
    if (connection->state == CONNECTION_PARKED) {
        return NEXT_PARK;
    }
    atomic_fetch_sub(&server->parked, 1);
    return NEXT_CONTINUE;
}

/* The answer to a hello shows no state. A push that was begun is ended. */
static bool may_answer(const struct connection *connection)
{
    return connection->frame.kind == FRAME_HELLO || connection->sent > 0 ||
           backup_may_answer(connection->loop->server->backup);
}

static enum next_step try_answer(struct connection *connection)
{
    struct server *server = connection->loop->server;
    if (may_answer(connection)) {
        return send_answer(connection);
    }
    atomic_fetch_add(&server->parked, 1);
    if (!may_answer(connection)) {
        connection->state = CONNECTION_UNCONFIRMED;
        return NEXT_PARK;
    }
    atomic_fetch_sub(&server->parked, 1);
    return NEXT_CONTINUE;
}

static enum next_step step_of(struct connection *connection, size_t *turn)
{
    enum next_step step = NEXT_CONTINUE;
    switch (connection->state) {
    case CONNECTION_HEADER:
        return read_header(connection);
    case CONNECTION_COLLECT:
        step = server_connection_collect(connection);
        break;
    case CONNECTION_PARKED: /* it waited: the condition is checked again */
        atomic_fetch_sub(&connection->loop->server->parked, 1);
        request_run(connection);
        break;
    case CONNECTION_VALUES:
        return take_values(connection, turn);
    case CONNECTION_DISCARD:
        step = drop_bytes(connection, &connection->left);
        if (step == NEXT_CONTINUE) {
            connection->state = CONNECTION_ANSWER;
        }
        return step;
    case CONNECTION_UNCONFIRMED: /* it waited: backup_may_answer is called again */
        atomic_fetch_sub(&connection->loop->server->parked, 1);
        connection->state = CONNECTION_ANSWER;
        return NEXT_CONTINUE;
    case CONNECTION_ANSWER:
        return try_answer(connection);
    case CONNECTION_MOVE:
        if (!connection->loop->server->is_copy) {
            return NEXT_MOVE;
        }
        copy_admit_connection(connection);
        connection_answer(connection, 0, 0, NULL, 0);
        return NEXT_CONTINUE;
    case CONNECTION_COPY:
        return copy_serve(connection);
    }
    return step == NEXT_CONTINUE && connection->state == CONNECTION_PARKED ? wait_parked(connection)
                                                                           : step;
}

enum next_step connection_advance(struct connection *connection)
{
    enum next_step step = connection->dead ? NEXT_CLOSE : NEXT_CONTINUE;
    size_t turn = 0;
    while (step == NEXT_CONTINUE) {
        step = step_of(connection, &turn);
        /* Bytes that were read ahead raise no event: they are used first. */
        if (step == NEXT_CONTINUE && turn >= SERVER_TURN_BYTES &&
            connection->state == CONNECTION_VALUES &&
            connection->link->begin == connection->link->end) {
            return NEXT_YIELD;
        }
    }
    return step;
}
