/* SPDX-License-Identifier: Apache-2.0
 * The copy that a server keeps of another one's store: a server inside of it with one loop, whose
 * only client is that other server. It waits for none of this server's loops, so servers that keep
 * each other's copies never wait in a ring. Called by server.c and server_requests.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "worker/library/ps/server/server_internal.h"

cadre_status copy_open(struct server *server, struct cadre_error *error)
{
    struct server *copy = calloc(1, sizeof *copy);
    struct server_loop *loop = calloc(1, sizeof *loop);
    if (copy == NULL || loop == NULL) {
        free(copy);
        free(loop);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a copy's loop");
    }
    *loop = (struct server_loop){.server = copy, .epoll_fd = -1, .wake_fd = -1};
    copy->is_copy = true;
    copy->terms = server->terms;
    copy->loops = loop;
    copy->loop_count = 1;
    pthread_mutex_init(&copy->lock, NULL);
    pthread_mutex_init(&copy->notes, NULL);
    server->copy = copy;
    const struct store_options memory = {.fd = -1, .generation = server->terms.generation};
    CADRE_TRY(store_open(&memory, &copy->store, &copy->kept, error));
    copy->kept = false;
    return server_loop_start(loop, error);
}

void copy_close(struct server *copy)
{
    if (copy == NULL) {
        return;
    }
    atomic_store(&copy->stopping, true);
    pthread_mutex_lock(&copy->lock);
    if (copy->blocked != NULL) {
        link_shutdown(copy->blocked);
    }
    pthread_mutex_unlock(&copy->lock);
    server_loop_join(&copy->loops[0]);
    server_loop_end(&copy->loops[0]);
    store_close(copy->store);
    pthread_mutex_destroy(&copy->lock);
    pthread_mutex_destroy(&copy->notes);
    free(copy->loops);
    free(copy);
}

/* ---- which incarnation owns the copy ---- */

static bool is_of_server_before(const struct connection *connection)
{
    const struct link_terms *terms = &connection->loop->server->terms;
    uint32_t first = ps_job_first_slot(&terms->ps_job, ROLE_SERVER);
    uint32_t before = (terms->slot - first + terms->ps_job.servers - 1) % terms->ps_job.servers;
    return link_peer(connection->link)->slot == first + before;
}

void copy_admit_connection(struct connection *connection)
{
    struct server *copy = connection->loop->server;
    uint64_t incarnation = link_peer(connection->link)->incarnation;
    if (is_of_server_before(connection) && incarnation > copy->of_incarnation) {
        copy->of_incarnation = incarnation;
    }
}

bool copy_admits(const struct connection *connection)
{
    const struct server *copy = connection->loop->server;
    switch (connection->frame.kind) {
    case FRAME_BACKUP:
    case FRAME_LOAD:
    case FRAME_FETCH:
        return is_of_server_before(connection) &&
               link_peer(connection->link)->incarnation >= copy->of_incarnation;
    default:
        return copy->attached == connection;
    }
}

void copy_expect_newer(struct server *copy, const struct link *link)
{
    pthread_mutex_lock(&copy->lock);
    if (copy->blocked != NULL &&
        link_peer(copy->blocked)->incarnation < link_peer(link)->incarnation) {
        link_shutdown(copy->blocked);
    }
    pthread_mutex_unlock(&copy->lock);
}

/* ---- pushes that the other server forwards while it receives them: the same blocks in the same
 * order, so the copy is as far as the store. Only the end is answered, and a refusal, which the
 * other server finds instead: the copy then counts as lost ---- */

struct forwarded_push {
    struct forwarded_push *next;
    struct pushing pushing;
};

/* The pointer to the push of the frame; to NULL: it is not in progress. */
static struct forwarded_push **find_forwarded(const struct connection *connection)
{
    const uint64_t *args = connection->frame.args;
    struct forwarded_push **at = &connection->loop->server->forwarded_pushes;
    while (*at != NULL && ((*at)->pushing.push.closure != args[ARG_CLOSURE] ||
                              (*at)->pushing.push.ordinal != args[ARG_ORDINAL] ||
                              (*at)->pushing.push.shard != args[ARG_SHARD])) {
        at = &(*at)->next;
    }
    return at;
}

static void unlist_forwarded(struct forwarded_push **at)
{
    struct forwarded_push *push = *at;
    *at = push->next;
    free(push);
}

void copy_forwarded_abandon(struct server *copy)
{
    while (copy->forwarded_pushes != NULL) {
        store_push_abandon(copy->store, &copy->forwarded_pushes->pushing);
        unlist_forwarded(&copy->forwarded_pushes);
    }
}

static void refuse_forwarded(struct connection *connection, const char *why)
{
    struct cadre_error error = {0};
    (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
        "push %" PRIu64 " of closure %" PRIu64 " to shard %" PRIu64 " %s",
        connection->frame.args[ARG_ORDINAL], connection->frame.args[ARG_CLOSURE],
        connection->frame.args[ARG_SHARD], why);
    connection_refuse(connection, &error);
}

static void begin_forwarded(struct connection *connection, bool is_listed)
{
    struct server *copy = connection->loop->server;
    struct cadre_error error = {0};
    struct push push;
    push_header_read(
        connection->collected.bytes, (uint32_t)connection->frame.args[ARG_SHARD], &push);
    if (is_listed || push.sparse || push.closure != connection->frame.args[ARG_CLOSURE] ||
        push.ordinal != connection->frame.args[ARG_ORDINAL]) {
        refuse_forwarded(connection, "is begun twice, or is another one");
        return;
    }
    struct forwarded_push *forwarded = calloc(1, sizeof *forwarded);
    cadre_status status = forwarded == NULL ? cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
                                                  "no memory for a push")
                                            : store_push_begin(copy->store, connection->loop->index,
                                                  &push, &forwarded->pushing, &error);
    if (status != CADRE_OK) {
        free(forwarded);
        refuse_forwarded(connection, "cannot be begun in the copy");
        return;
    }
    forwarded->next = copy->forwarded_pushes;
    copy->forwarded_pushes = forwarded;
    connection->state = CONNECTION_HEADER;
}

/* A push that counts as applied here, and not there, has no rows to come: the copy is another one.
 */
static void apply_rows(struct connection *connection, struct pushing *pushing)
{
    struct store *store = connection->loop->server->store;
    const struct store_spec *spec = store_spec(store, pushing->push.shard);
    uint64_t rows = connection->frame.args[ARG_ROWS];
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(rows, request_row_bytes(spec), &bytes) ||
        bytes != connection->frame.bytes || pushing->applied ||
        rows > pushing->push.rows - pushing->rows_done) {
        refuse_forwarded(connection, "has other rows in the copy");
        return;
    }
    if (rows > 0) {
        store_push_block(store, pushing, connection->collected.bytes, rows);
    }
    connection->state = CONNECTION_HEADER;
}

static void end_forwarded(struct connection *connection, struct forwarded_push **at)
{
    struct store *store = connection->loop->server->store;
    struct pushing *pushing = &(*at)->pushing;
    if (pushing->applied || pushing->rows_done != pushing->push.rows) {
        refuse_forwarded(connection, "is not whole in the copy");
        return;
    }
    store_push_end(store, pushing);
    unlist_forwarded(at);
    connection_answer(connection, 0, 0, NULL, 0);
}

void copy_forwarded_run(struct connection *connection)
{
    struct forwarded_push **at = find_forwarded(connection);
    if (connection->frame.kind == FRAME_PUSH_BEGIN) {
        begin_forwarded(connection, *at != NULL);
    } else if (*at == NULL) {
        refuse_forwarded(connection, "was not begun in the copy");
    } else if (connection->frame.kind == FRAME_PUSH_ROWS) {
        apply_rows(connection, &(*at)->pushing);
    } else if (connection->frame.kind == FRAME_PUSH_END) {
        end_forwarded(connection, at);
    } else {
        store_push_abandon(connection->loop->server->store, &(*at)->pushing);
        unlist_forwarded(at);
        connection->state = CONNECTION_HEADER;
    }
}

/* ---- a whole store, in pieces ---- */

cadre_status copy_send_piece(void *user, const void *bytes, size_t count, struct cadre_error *error)
{
    const struct copy_writer *writer = user;
    const struct frame frame = {.kind = FRAME_PIECE, .bytes = count};
    const struct iovec piece = {(void *)(uintptr_t)bytes, count};
    return count == 0 ? CADRE_OK
                      : link_send_while(writer->link, &frame, &piece, 1, writer->wait, error);
}

cadre_status copy_receive_piece(void *user, void *bytes, size_t count, struct cadre_error *error)
{
    struct copy_reader *reader = user;
    for (size_t done = 0; done < count;) {
        struct frame frame;
        if (reader->left == 0) {
            CADRE_TRY(reader->wait != NULL
                          ? link_receive_while(reader->link, reader->wait, &frame, error)
                          : link_receive(reader->link, UINT64_MAX, &frame, error));
            reader->left = frame.bytes;
            if (frame.kind != FRAME_PIECE || frame.bytes == 0) {
                reader->ended = true;
                return cadre_error_set(error, CADRE_DATA_LOSS, "%s sent half a copy of its store",
                    link_peer_name(reader->link));
            }
        }
        size_t step = reader->left < count - done ? (size_t)reader->left : count - done;
        CADRE_TRY(link_receive_bytes_while(
            reader->link, (char *)bytes + done, step, reader->wait, error));
        reader->left -= step;
        done += step;
    }
    return CADRE_OK;
}

static cadre_status server_copy_load(struct connection *connection, struct cadre_error *error)
{
    struct server *copy = connection->loop->server;
    const struct store_options memory = {.fd = -1, .generation = copy->terms.generation};
    struct copy_reader reader = {.link = connection->link};
    struct frame end;
    bool kept;
    copy->kept = false;
    atomic_store(&copy->forgotten, 0);
    store_close(copy->store);
    copy->store = NULL;
    CADRE_TRY(store_open(&memory, &copy->store, &kept, error));
    CADRE_TRY(store_load(copy->store, copy_receive_piece, &reader, error));
    CADRE_TRY(link_receive(connection->link, UINT64_MAX, &end, error));
    if (end.kind != FRAME_PIECE || end.bytes != 0 || reader.left != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS, "a copy of a store that does not end");
    }
    copy->kept = true;
    copy->attached = connection;
    return CADRE_OK;
}

static cadre_status server_copy_give(struct connection *connection, struct cadre_error *error)
{
    struct server *copy = connection->loop->server;
    const struct frame end = {.kind = FRAME_PIECE};
    if (!copy->kept) {
        return cadre_error_set(error, CADRE_NOT_FOUND, "no copy of that store is kept here");
    }
    const struct frame begin = {.kind = FRAME_ANSWER, .id = connection->frame.id};
    CADRE_TRY(link_send(connection->link, &begin, NULL, 0, error));
    struct copy_writer writer = {.link = connection->link};
    CADRE_TRY(store_save(copy->store, copy_send_piece, &writer, error));
    CADRE_TRY(link_send(connection->link, &end, NULL, 0, error));
    copy->attached = connection; /* both stores are equal now */
    return CADRE_OK;
}

static void set_blocked(struct connection *connection, struct link *link)
{
    struct server *copy = connection->loop->server;
    pthread_mutex_lock(&copy->lock);
    copy->blocked = link;
    if (link != NULL && atomic_load(&copy->stopping)) {
        link_shutdown(link);
    }
    pthread_mutex_unlock(&copy->lock);
}

enum next_step copy_serve(struct connection *connection)
{
    struct cadre_error error = {0};
    bool loads = connection->frame.kind == FRAME_LOAD;
    /* When a newer incarnation takes or fills the copy, an older one may still run without having
     * received that it was replaced: its changes are ignored. */
    server_loop_end_others(connection);
    copy_forwarded_abandon(connection->loop->server);
    connection->loop->server->attached = NULL;
    set_blocked(connection, connection->link);
    cadre_status status =
        loads ? server_copy_load(connection, &error) : server_copy_give(connection, &error);
    set_blocked(connection, NULL);
    if (status == CADRE_OK && loads) {
        connection_answer(connection, 0, 0, NULL, 0);
    } else if (status == CADRE_OK) {
        connection->state = CONNECTION_HEADER;
    } else if (status == CADRE_NOT_FOUND) {
        connection_refuse(connection, &error);
    } else {
        return NEXT_CLOSE;
    }
    return NEXT_CONTINUE;
}
