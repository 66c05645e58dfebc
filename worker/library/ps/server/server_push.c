/* SPDX-License-Identifier: Apache-2.0
 * Pushes: each belongs to one connection at a time. When a client sends one again, because its
 * connection broke or its worker was lost, the new connection takes the push over. Called by
 * server_requests.c and server_connection.c. */
#include <inttypes.h>
#include <sys/socket.h>

#include "common/pure/assert.h"
#include "worker/library/ps/server/server_internal.h"

/* ---- pushes in progress ---- */

static bool is_same(const struct push_key *a, const struct push_key *b)
{
    return a->shard == b->shard && a->closure == b->closure && a->ordinal == b->ordinal;
}

/* False: another connection has the same push. That connection is shut down, and wakes the parked
 * ones when it has abandoned the push. Pushes without a closure are never the same. */
static bool list_push(struct connection *connection, const struct push *push)
{
    struct server *server = connection->loop->server;
    const struct push_key key = {
        .closure = push->closure, .ordinal = push->ordinal, .shard = push->shard};
    pthread_mutex_lock(&server->lock);
    struct connection *other = key.closure == 0 ? NULL : server->pushes;
    while (other != NULL && !is_same(&other->key, &key)) {
        other = other->next_push;
    }
    connection->key = key;
    if (other == NULL) {
        connection->next_push = server->pushes;
        server->pushes = connection;
        connection->listed = true;
    } else {
        link_shutdown(other->link);
    }
    pthread_mutex_unlock(&server->lock);
    return other == NULL;
}

static void unlist_push(struct connection *connection)
{
    struct server *server = connection->loop->server;
    pthread_mutex_lock(&server->lock);
    struct connection **at = &server->pushes;
    while (*at != connection) {
        CADRE_ASSERT(*at != NULL);
        at = &(*at)->next_push;
    }
    *at = connection->next_push;
    connection->listed = false;
    pthread_mutex_unlock(&server->lock);
    server_wake_parked(server);
}

/* During a change; the backup abandons it before another connection may begin it again. */
static void abandon_listed(struct connection *connection)
{
    struct server *server = connection->loop->server;
    store_push_abandon(server->store, &connection->pushing);
    backup_send_abandon(server->backup, connection);
    unlist_push(connection);
}

void push_abandon(struct connection *connection)
{
    struct backup *backup = connection->loop->server->backup;
    if (connection->listed) {
        backup_begin(backup);
        abandon_listed(connection);
        backup_end(backup);
    }
}

void push_disconnect_all(struct server *server, uint32_t shard)
{
    pthread_mutex_lock(&server->lock);
    for (struct connection *one = server->pushes; one != NULL; one = one->next_push) {
        if (one->key.shard == shard) {
            link_shutdown(one->link);
        }
    }
    pthread_mutex_unlock(&server->lock);
}

/* ---- from the header to the first value ---- */

static bool check_bytes(struct connection *connection, const struct push *push)
{
    const struct store_spec *spec = store_spec(connection->loop->server->store, push->shard);
    uint64_t row_bytes = request_row_bytes(spec) + (push->sparse ? sizeof(int64_t) : 0);
    uint64_t bytes = 0;
    struct cadre_error error = {0};
    if (__builtin_mul_overflow(push->rows, row_bytes, &bytes) ||
        connection->frame.bytes - PUSH_HEADER_BYTES != bytes ||
        (push->sparse && push->rows > REQUEST_IDS_MAX)) {
        (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a push of %" PRIu64 " rows to \"%s\" with %" PRIu64 " bytes; a row of it has %" PRIu64
            "%s",
            push->rows, spec->name, connection->frame.bytes - PUSH_HEADER_BYTES,
            request_row_bytes(spec), push->sparse ? ", and an id" : "");
        connection_refuse(connection, &error);
        return false;
    }
    /* Also of a push that was applied before, which the store does not check again. */
    if (!push->sparse &&
        (push->first_row > spec->rows || push->rows > spec->rows - push->first_row)) {
        (void)cadre_error_set(&error, CADRE_OUT_OF_RANGE,
            "a push of %" PRIu64 " rows from row %" PRIu64 " on to shard %" PRIu32
            " of \"%s\", which has %" PRIu64 " rows",
            push->rows, push->first_row, spec->shard, spec->name, spec->rows);
        connection_refuse(connection, &error);
        return false;
    }
    if (push->sparse && connection->frame.kind == REQUEST_PUSH_PULL) {
        (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "a sparse push to \"%s\" that pulls too; push it and gather the rows", spec->name);
        connection_refuse(connection, &error);
        return false;
    }
    return true;
}

/* The number of rows that are received and applied at a time. */
static uint64_t block_rows(const struct connection *connection)
{
    const struct store *store = connection->loop->server->store;
    uint64_t most = store_block_rows(store, connection->pushing.push.shard);
    bool forwards = connection->loop->server->backup != NULL;
    uint64_t bytes = forwards ? SERVER_FORWARD_BYTES : SERVER_BLOCK_BYTES;
    uint64_t fit = connection->row_bytes == 0 ? most : bytes / connection->row_bytes;
    uint64_t rows = forwards || fit < most ? fit : most;
    return rows == 0 ? 1 : rows;
}

static uint64_t next_rows(const struct connection *connection)
{
    uint64_t left = connection->pushing.push.rows - connection->pushing.rows_done;
    uint64_t most = block_rows(connection);
    return left < most ? left : most;
}

/* Waits for the next block, or ends the push when there is none. */
static void next_block(struct connection *connection)
{
    connection->block_got = 0;
    connection->block_wanted = (size_t)(next_rows(connection) * connection->row_bytes);
    connection->state = CONNECTION_VALUES;
}

static void begin_values(struct connection *connection)
{
    struct pushing *pushing = &connection->pushing;
    struct cadre_error error = {0};
    connection->pushes = true;
    connection->direct = NULL;
    if (pushing->applied) {
        connection->skip = connection->left;
        connection->block_got = 0;
        connection->block_wanted = 0;
        connection->state = CONNECTION_VALUES;
        return;
    }
    connection->skip = pushing->rows_done * connection->row_bytes;
    next_block(connection);
    if (!growing_buffer_reserve(&connection->block, connection->block_wanted)) {
        (void)cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for %zu bytes of values",
            connection->block_wanted);
        abandon_listed(connection);
        connection_refuse(connection, &error);
        return;
    }
    backup_send_rows(connection->loop->server->backup, connection, NULL, 0);
}

/* ---- values ---- */

/* All of its request was collected before it was begun. */
static bool was_collected(const struct connection *connection)
{
    return connection->got == connection->frame.bytes;
}

/* During a change: all rows of the push are applied here. */
static void server_push_finish(struct connection *connection)
{
    struct store *store = connection->loop->server->store;
    struct backup *backup = connection->loop->server->backup;
    const struct push *push = &connection->pushing.push;
    const void *rows = NULL;
    uint64_t bytes = 0;
    if (!connection->pushing.applied) {
        if (!was_collected(connection)) {
            backup_send_end(backup, connection);
        }
        store_push_end(store, &connection->pushing);
        backup_await(backup);
    }
    unlist_push(connection);
    uint64_t version = store_version(store, push->shard);
    if (connection->frame.kind == REQUEST_PUSH_PULL) {
        rows = store_rows(store, push->shard, push->first_row, push->rows);
        bytes = push->rows * connection->row_bytes;
    }
    connection_answer(connection, version, request_bits(connection->pushing.trust), rows, bytes);
}

void push_block(struct connection *connection)
{
    struct store *store = connection->loop->server->store;
    if (!connection->pushes) {
        store_set_updates(store, (uint32_t)connection->frame.args[ARG_SHARD],
            connection->frame.args[ARG_MIN_STEPS]);
        connection_answer(connection, 0, 0, NULL, 0);
        return;
    }
    struct backup *backup = connection->loop->server->backup;
    backup_begin(backup);
    uint64_t rows = connection->pushing.applied ? 0 : next_rows(connection);
    if (rows > 0) {
        backup_send_rows(backup, connection, connection->block.bytes, rows);
        store_push_block(store, &connection->pushing, connection->block.bytes, rows);
    }
    if (connection->pushing.applied ||
        connection->pushing.rows_done == connection->pushing.push.rows) {
        server_push_finish(connection);
    } else {
        next_block(connection);
    }
    backup_end(backup);
}

/* Its ids and values were collected: applies all at once. */
static void apply_sparse(struct connection *connection)
{
    struct pushing *pushing = &connection->pushing;
    struct cadre_error error = {0};
    const uint8_t *values =
        connection->collected.bytes + PUSH_HEADER_BYTES + pushing->push.rows * sizeof(int64_t);
    if (!pushing->applied &&
        store_push_rows(connection->loop->server->store, pushing, values, &error) != CADRE_OK) {
        abandon_listed(connection);
        connection_refuse(connection, &error);
        return;
    }
    if (!pushing->applied) {
        backup_send(connection->loop->server->backup, connection);
    }
    server_push_finish(connection);
}

/* A small push that is replicated, or one that LAMB applies: all of it was collected. */
static void apply_dense(struct connection *connection)
{
    struct store *store = connection->loop->server->store;
    struct pushing *pushing = &connection->pushing;
    const uint8_t *values = connection->collected.bytes + PUSH_HEADER_BYTES +
                            pushing->rows_done * connection->row_bytes;
    if (!pushing->applied) {
        backup_send(connection->loop->server->backup, connection);
    }
    if (!pushing->applied && pushing->push.rows > pushing->rows_done) {
        store_push_block(store, pushing, values, pushing->push.rows - pushing->rows_done);
    }
    server_push_finish(connection);
}

static void collect_values(struct connection *connection)
{
    connection->wanted = connection->frame.bytes;
    connection->state = CONNECTION_COLLECT;
}

static void server_push_begin(struct connection *connection, const struct push *push)
{
    struct server *server = connection->loop->server;
    struct cadre_error error = {0};
    connection->row_bytes = request_row_bytes(store_spec(server->store, push->shard));
    connection->forwarded = 0;
    if (!list_push(connection, push)) {
        connection->state = CONNECTION_PARKED;
        return;
    }
    cadre_status status = store_push_begin(
        server->store, connection->loop->index, push, &connection->pushing, &error);
    if (status == CADRE_OK && push->sparse) {
        apply_sparse(connection);
    } else if (status == CADRE_OK && was_collected(connection)) {
        apply_dense(connection);
    } else if (status == CADRE_OK && store_push_is_one(server->store, push)) {
        abandon_listed(connection); /* its shard had another optimizer, or none, when the push
                                     * began */
        collect_values(connection);
    } else if (status == CADRE_OK) {
        begin_values(connection);
    } else {
        unlist_push(connection);
        if (status == CADRE_PENDING) {
            connection->state = CONNECTION_PARKED;
        } else {
            connection_refuse(connection, &error);
        }
    }
}

/* Changes nothing, so the backup does not receive it. */
static void answer_norms(struct connection *connection, const struct push *push)
{
    struct store *store = connection->loop->server->store;
    struct cadre_error error = {0};
    struct optimizer_norms norms;
    const uint8_t *values = connection->collected.bytes + PUSH_HEADER_BYTES +
                            (push->sparse ? push->rows * sizeof(int64_t) : 0);
    cadre_status status =
        store_push_norms(store, connection->loop->index, push, values, &norms, &error);
    if (status == CADRE_OK && !growing_buffer_reserve(&connection->out, NORMS_BYTES)) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for norms");
    }
    if (status != CADRE_OK) {
        connection_refuse(connection, &error);
        return;
    }
    norms_write(&norms, connection->out.bytes);
    connection_answer(
        connection, store_version(store, push->shard), 0, connection->out.bytes, NORMS_BYTES);
}

void push_run(struct connection *connection)
{
    struct push push;
    push_header_read(
        connection->collected.bytes, (uint32_t)connection->frame.args[ARG_SHARD], &push);
    if (connection->got == PUSH_HEADER_BYTES && !check_bytes(connection, &push)) {
        return;
    }
    /* Several dense pushes progress in a loop at a time, block by block; a sparse one is a single
     * block, and so is one of LAMB. With a backup also a small one, which is one message then, and
     * one without a closure, of which no copy could tell how far it came. */
    struct backup *backup = connection->loop->server->backup;
    bool asks = connection->frame.kind == REQUEST_NORMS;
    bool is_one = push.sparse || asks ||
                  (backup != NULL &&
                      (push.closure == 0 || connection->frame.bytes <= SERVER_FORWARD_BYTES)) ||
                  store_push_is_one(connection->loop->server->store, &push);
    if (is_one && connection->got < connection->frame.bytes) {
        collect_values(connection);
        return;
    }
    if (push.sparse) {
        push.ids = (const int64_t *)(const void *)(connection->collected.bytes + PUSH_HEADER_BYTES);
    }
    if (asks) {
        answer_norms(connection, &push);
        return;
    }
    backup_begin(backup);
    server_push_begin(connection, &push);
    backup_end(backup);
}

/* ---- synchronous steps of shards of what LAMB updates ---- */

void step_norms_run(struct connection *connection)
{
    struct cadre_error error = {0};
    struct store *store = connection->loop->server->store;
    uint32_t shard = (uint32_t)connection->frame.args[ARG_SHARD];
    enum store_step_state state = STEP_INCOMPLETE;
    struct optimizer_norms norms;
    cadre_status status = store_step_norms(store, connection->loop->index, shard,
        connection->frame.args[ARG_MIN_STEPS], &state, &norms, &error);
    if (status == CADRE_OK && !growing_buffer_reserve(&connection->out, NORMS_BYTES)) {
        status = cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for norms");
    }
    if (status != CADRE_OK) {
        connection_refuse(connection, &error);
        return;
    }
    norms_write(&norms, connection->out.bytes);
    connection_answer(
        connection, store_version(store, shard), state, connection->out.bytes, NORMS_BYTES);
}

void settle_run(struct connection *connection)
{
    struct cadre_error error = {0};
    struct server *server = connection->loop->server;
    uint32_t shard = (uint32_t)connection->frame.args[ARG_SHARD];
    double trust = 0;
    backup_begin(server->backup);
    cadre_status status = store_step_settle(server->store, connection->loop->index, shard,
        connection->frame.args[ARG_MIN_STEPS], request_double(connection->frame.args[ARG_FIRST]),
        &trust, &error);
    if (status == CADRE_OK) {
        backup_replicate(server->backup, connection);
    }
    backup_end(server->backup);
    if (status == CADRE_PENDING) {
        connection->state = CONNECTION_PARKED;
    } else if (status != CADRE_OK) {
        connection_refuse(connection, &error);
    } else {
        server_wake_parked(server);
        connection_answer(
            connection, store_version(server->store, shard), request_bits(trust), NULL, 0);
    }
}
