/* SPDX-License-Identifier: Apache-2.0
 * Requests to a server: each is checked against the shard before a byte of it is kept, then run.
 * Called by server_connection.c; pushes go on in server_push.c. */
#include <inttypes.h>
#include <string.h>

#include "worker/library/optimizer/rule_bytes.h"
#include "worker/library/ps/server/server_internal.h"

static void refuse_bytes(struct connection *connection, uint64_t wanted)
{
    struct cadre_error error = {0};
    (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
        "request %" PRIu32 " comes with %" PRIu64 " bytes, where it has %" PRIu64,
        connection->frame.kind, connection->frame.bytes, wanted);
    connection_refuse(connection, &error);
}

static uint32_t shard_of(const struct frame *frame)
{
    return (uint32_t)frame->args[ARG_SHARD];
}

static uint32_t slot_of(const struct frame *frame)
{
    return (uint32_t)(frame->args[ARG_SHARD] >> 32);
}

static bool is_push(uint32_t kind)
{
    return kind == REQUEST_PUSH || kind == REQUEST_PUSH_PULL || kind == REQUEST_NORMS;
}

static bool is_settled(uint32_t kind)
{
    return kind == REQUEST_STEP_NORMS || kind == REQUEST_SETTLE;
}

static bool has_shard(uint32_t kind)
{
    return kind == REQUEST_PULL || kind == REQUEST_GATHER || is_push(kind) ||
           kind == REQUEST_SLOT || kind == REQUEST_SET_SLOT || kind == REQUEST_BEGIN_STEP ||
           kind == REQUEST_TRAIN || kind == REQUEST_RULE || is_settled(kind);
}

/* Collects `part` bytes; no others follow. */
static void collect_all(struct connection *connection, uint64_t part)
{
    if (connection->frame.bytes != part) {
        refuse_bytes(connection, part);
        return;
    }
    connection->wanted = part;
    connection->state = CONNECTION_COLLECT;
}

static void collect_some(struct connection *connection, uint64_t part, uint64_t most)
{
    if (connection->frame.bytes < part || connection->frame.bytes - part > most) {
        refuse_bytes(connection, part);
        return;
    }
    connection->wanted = connection->frame.bytes;
    connection->state = CONNECTION_COLLECT;
}

static void begin_push(struct connection *connection)
{
    if (connection->frame.bytes < PUSH_HEADER_BYTES) {
        refuse_bytes(connection, PUSH_HEADER_BYTES);
        return;
    }
    connection->wanted = PUSH_HEADER_BYTES; /* then its ids, as many as the header has */
    connection->state = CONNECTION_COLLECT;
}

static bool rows_exist(
    struct connection *connection, const struct store_spec *spec, uint64_t first, uint64_t rows)
{
    if (first <= spec->rows && rows <= spec->rows - first) {
        return true;
    }
    struct cadre_error error = {0};
    (void)cadre_error_set(&error, CADRE_OUT_OF_RANGE,
        "%" PRIu64 " rows from row %" PRIu64 " on of shard %" PRIu32
        " of \"%s\", which has %" PRIu64 " rows",
        rows, first, spec->shard, spec->name, spec->rows);
    connection_refuse(connection, &error);
    return false;
}

static void begin_gather(struct connection *connection, const struct store_spec *spec)
{
    uint64_t rows = connection->frame.args[ARG_ROWS];
    if (rows > REQUEST_IDS_MAX) {
        struct cadre_error error = {0};
        (void)cadre_error_set(&error, CADRE_INVALID_ARGUMENT,
            "%" PRIu64 " ids of \"%s\" in one request; at most %" PRIu64 " can be asked for", rows,
            spec->name, REQUEST_IDS_MAX);
        connection_refuse(connection, &error);
        return;
    }
    collect_all(connection, rows * sizeof(int64_t));
}

static void begin_shard(struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    const struct store *store = connection->loop->server->store;
    struct cadre_error error = {0};
    if (shard_of(frame) >= store_count(store)) {
        (void)cadre_error_set(&error, CADRE_NOT_FOUND,
            "shard %" PRIu32 " does not exist on this server, which has %" PRIu32, shard_of(frame),
            store_count(store));
        connection_refuse(connection, &error);
        return;
    }
    const struct store_spec *spec = store_spec(store, shard_of(frame));
    uint64_t first = frame->args[ARG_FIRST];
    uint64_t rows = frame->args[ARG_ROWS];
    if (is_push(frame->kind)) {
        begin_push(connection);
    } else if (frame->kind == REQUEST_GATHER) {
        begin_gather(connection, spec);
    } else if (frame->kind == REQUEST_TRAIN) {
        collect_all(connection, RULE_BYTES);
    } else if (is_settled(frame->kind)) {
        collect_all(connection, 0);
    } else if (!rows_exist(connection, spec, first, rows)) {
        return;
    } else if (frame->kind != REQUEST_SET_SLOT) {
        collect_all(connection, 0);
    } else if (frame->bytes != rows * request_row_bytes(spec)) {
        refuse_bytes(connection, rows * request_row_bytes(spec));
    } else {
        connection->wanted = connection->loop->server->backup != NULL ? frame->bytes : 0;
        connection->state = CONNECTION_COLLECT;
    }
}

static void forget_done(struct server *server, uint64_t closure)
{
    uint64_t before = atomic_load_explicit(&server->forgotten, memory_order_relaxed);
    while (closure > before) {
        if (atomic_compare_exchange_weak(&server->forgotten, &before, closure)) {
            store_forget(server->store, closure);
            return;
        }
    }
}

/* The copy of another server has its own store and its own loop: moves the connection there. */
static void begin_copy(struct connection *connection)
{
    const struct server *server = connection->loop->server;
    bool is_copy = server->is_copy;
    if (connection->frame.bytes != 0) {
        refuse_bytes(connection, 0);
    } else if (is_copy && connection->frame.kind != FRAME_BACKUP) {
        connection->state = CONNECTION_COPY;
    } else if (!is_copy && server->copy != NULL && connection->frame.kind == FRAME_BACKUP) {
        copy_expect_newer(server->copy, connection->link);
        connection->state = CONNECTION_MOVE;
    } else {
        struct cadre_error error = {0};
        (void)cadre_error_set(
            &error, CADRE_FAILED_PRECONDITION, "this server keeps no other server's copy");
        connection_refuse(connection, &error);
    }
}

static void refuse_kind(struct connection *connection)
{
    struct cadre_error error = {0};
    (void)cadre_error_set(&error, CADRE_UNIMPLEMENTED,
        "request %" PRIu32 ", which a parameter server does not have", connection->frame.kind);
    connection_refuse(connection, &error);
}

static void begin_forwarded(struct connection *connection)
{
    if (!connection->loop->server->is_copy) {
        refuse_kind(connection);
    } else if (connection->frame.kind == FRAME_PUSH_ROWS) {
        collect_some(connection, 0, UINT64_MAX);
    } else {
        collect_all(connection, connection->frame.kind == FRAME_PUSH_BEGIN ? PUSH_HEADER_BYTES : 0);
    }
}

void request_begin(struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    struct cadre_error error = {0};
    if (connection->loop->server->is_copy && !copy_admits(connection)) {
        (void)cadre_error_set(&error, CADRE_FAILED_PRECONDITION,
            "%s is not the one whose copy is kept here, or not any more",
            link_peer_name(connection->link));
        connection_refuse(connection, &error);
        return;
    }
    forget_done(connection->loop->server, frame->args[ARG_DONE_WATERMARK]);
    if (has_shard(frame->kind)) {
        begin_shard(connection);
        return;
    }
    switch (frame->kind) {
    case FRAME_HELLO:
    case REQUEST_NOTE_NAMES:
        collect_all(connection, 0);
        return;
    case FRAME_BACKUP:
    case FRAME_LOAD:
    case FRAME_FETCH:
        begin_copy(connection);
        return;
    case FRAME_PUSH_BEGIN:
    case FRAME_PUSH_ROWS:
    case FRAME_PUSH_ABANDON:
    case FRAME_PUSH_END:
        begin_forwarded(connection);
        return;
    case REQUEST_CREATE:
        collect_all(connection, SPEC_HEADER_BYTES);
        return;
    case REQUEST_FIND_NOTE:
        collect_all(connection, NAME_HEADER_BYTES);
        return;
    case REQUEST_NOTE:
        collect_some(connection, NAME_HEADER_BYTES, REQUEST_NOTE_MAX);
        return;
    default:
        refuse_kind(connection);
    }
}

/* ---- requests that were collected ---- */

static void run_create(struct connection *connection)
{
    struct cadre_error error = {0};
    struct store_spec spec;
    uint32_t shard = 0;
    spec_header_read(connection->collected.bytes, &spec);
    struct store *store = connection->loop->server->store;
    struct backup *backup = connection->loop->server->backup;
    backup_begin(backup);
    cadre_status status = store_create(store, &spec, &shard, &error);
    if (status == CADRE_OK) {
        backup_replicate(backup, connection);
    }
    backup_end(backup);
    if (status != CADRE_OK) {
        connection_refuse(connection, &error);
    } else {
        connection_answer(connection, store_version(store, shard), shard, NULL, 0);
    }
}

static void run_train(struct connection *connection)
{
    struct cadre_error error = {0};
    struct optimizer_rule rule;
    uint32_t shard = shard_of(&connection->frame);
    struct server *server = connection->loop->server;
    rule_read(connection->collected.bytes, &rule);
    backup_begin(server->backup);
    cadre_status status = store_train(server->store, shard, &rule, &error);
    if (status == CADRE_OK) {
        backup_replicate(server->backup, connection);
    }
    backup_end(server->backup);
    if (status != CADRE_OK) {
        connection_refuse(connection, &error);
    } else {
        connection_answer(connection, store_version(server->store, shard), 0, NULL, 0);
    }
}

static void run_rule(struct connection *connection)
{
    const struct store *store = connection->loop->server->store;
    uint32_t shard = shard_of(&connection->frame);
    if (!growing_buffer_reserve(&connection->out, RULE_BYTES)) {
        struct cadre_error error = {0};
        (void)cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a rule");
        connection_refuse(connection, &error);
        return;
    }
    rule_write(store_rule(store, shard), connection->out.bytes);
    connection_answer(
        connection, store_version(store, shard), 0, connection->out.bytes, RULE_BYTES);
}

/* The step that the request waits for was not applied yet. */
static bool is_early(const struct connection *connection, uint64_t steps)
{
    return steps < connection->frame.args[ARG_MIN_STEPS];
}

static void run_pull(struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    const struct store *store = connection->loop->server->store;
    uint32_t shard = shard_of(frame);
    uint64_t rows = frame->args[ARG_ROWS];
    uint64_t steps = store_steps(store, shard);
    uint64_t version = store_version(store, shard);
    if (is_early(connection, steps)) {
        connection->state = CONNECTION_PARKED;
        return;
    }
    connection_answer(connection, version, steps,
        store_rows(store, shard, frame->args[ARG_FIRST], rows),
        rows * request_row_bytes(store_spec(store, shard)));
}

static bool ids_exist(
    struct connection *connection, const struct store_spec *spec, const int64_t *ids, uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++) {
        if (ids[i] < 0 || (uint64_t)ids[i] >= spec->rows) {
            struct cadre_error error = {0};
            (void)cadre_error_set(&error, CADRE_OUT_OF_RANGE,
                "row %" PRId64 " of shard %" PRIu32 " of \"%s\", which has %" PRIu64 " rows",
                ids[i], spec->shard, spec->name, spec->rows);
            connection_refuse(connection, &error);
            return false;
        }
    }
    return true;
}

static void run_gather(struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    const struct store *store = connection->loop->server->store;
    const struct store_spec *spec = store_spec(store, shard_of(frame));
    const int64_t *ids = (const int64_t *)(const void *)connection->collected.bytes;
    uint64_t rows = frame->args[ARG_ROWS];
    uint64_t version = store_version(store, shard_of(frame));
    uint64_t bytes = 0;
    struct cadre_error error = {0};
    if (is_early(connection, store_steps(store, shard_of(frame)))) {
        connection->state = CONNECTION_PARKED;
        return;
    }
    if (!ids_exist(connection, spec, ids, rows)) {
        return;
    }
    if (__builtin_mul_overflow(rows, request_row_bytes(spec), &bytes) ||
        !growing_buffer_reserve(&connection->out, bytes)) {
        (void)cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %" PRIu64 " gathered rows of \"%s\"; ask for fewer at a time", rows,
            spec->name);
        connection_refuse(connection, &error);
        return;
    }
    if (bytes > 0) {
        store_gather(store, shard_of(frame), ids, rows, connection->out.bytes);
    }
    connection_answer(connection, version, 0, connection->out.bytes, bytes);
}

/* False: it was refused. *ret_rows: where the requested rows are; of no rows, any address. */
static bool read_ahead_slot_rows(struct connection *connection, uint8_t **ret_rows)
{
    const struct frame *frame = &connection->frame;
    const struct store *store = connection->loop->server->store;
    const struct store_spec *spec = store_spec(store, shard_of(frame));
    uint8_t *slot = store_slot(store, shard_of(frame), slot_of(frame));
    *ret_rows = NULL;
    if (frame->args[ARG_ROWS] == 0) { /* only the count of updates, which each shard has */
        return true;
    }
    if (slot == NULL) {
        struct cadre_error error = {0};
        (void)cadre_error_set(&error, CADRE_NOT_FOUND,
            "the optimizer of \"%s\" has no slot %" PRIu32, spec->name, slot_of(frame));
        connection_refuse(connection, &error);
        return false;
    }
    *ret_rows = slot + frame->args[ARG_FIRST] * request_row_bytes(spec);
    return true;
}

static void run_slot(struct connection *connection)
{
    const struct frame *frame = &connection->frame;
    const struct store *store = connection->loop->server->store;
    uint8_t *rows = NULL;
    if (read_ahead_slot_rows(connection, &rows)) {
        uint32_t shard = shard_of(frame);
        connection_answer(connection, store_version(store, shard), store_updates(store, shard),
            rows, frame->args[ARG_ROWS] * request_row_bytes(store_spec(store, shard)));
    }
}

/* Straight into the slot: until all of it was received it is neither the old nor the new one. */
static void run_set_slot(struct connection *connection)
{
    struct server *server = connection->loop->server;
    uint8_t *rows = NULL;
    if (!read_ahead_slot_rows(connection, &rows)) {
        return;
    }
    if (server->backup != NULL) {
        backup_begin(server->backup);
        if (connection->got > 0) {
            memcpy(rows, connection->collected.bytes, connection->got);
        }
        store_set_updates(
            server->store, shard_of(&connection->frame), connection->frame.args[ARG_MIN_STEPS]);
        backup_replicate(server->backup, connection);
        backup_end(server->backup);
        connection_answer(connection, 0, 0, NULL, 0);
    } else {
        connection->pushes = false;
        connection->direct = rows;
        connection->skip = 0;
        connection->block_got = 0;
        connection->block_wanted = connection->left;
        connection->state = CONNECTION_VALUES;
    }
}

/* No closure runs, so a client that still sends a contribution is dead: its connection is cut off.
 * A contribution that has not begun counts as applied, because its closure is done. */
static void run_begin_step(struct connection *connection)
{
    struct server *server = connection->loop->server;
    uint32_t shard = shard_of(&connection->frame);
    backup_begin(server->backup);
    cadre_status status =
        store_begin_step(server->store, shard, connection->frame.args[ARG_MIN_STEPS]);
    if (status == CADRE_OK) {
        backup_replicate(server->backup, connection);
    }
    backup_end(server->backup);
    if (status == CADRE_PENDING) {
        push_disconnect_all(server, shard);
        connection->state = CONNECTION_PARKED;
        return;
    }
    server_wake_parked(server);
    connection_answer(connection, store_version(server->store, shard), 0, NULL, 0);
}

static void run_note(struct connection *connection)
{
    struct cadre_error error = {0};
    char name[STORE_NAME_BYTES];
    struct server *server = connection->loop->server;
    name_header_read(connection->collected.bytes, name);
    backup_begin(server->backup);
    pthread_mutex_lock(&server->notes);
    cadre_status status =
        store_note(server->store, name, connection->collected.bytes + NAME_HEADER_BYTES,
            connection->got - NAME_HEADER_BYTES, &error);
    pthread_mutex_unlock(&server->notes);
    if (status == CADRE_OK) {
        backup_replicate(server->backup, connection);
    }
    backup_end(server->backup);
    if (status != CADRE_OK) {
        connection_refuse(connection, &error);
    } else {
        connection_answer(connection, 0, 0, NULL, 0);
    }
}

static void run_noted(struct connection *connection)
{
    struct cadre_error error = {0};
    char name[STORE_NAME_BYTES];
    size_t count = 0;
    struct server *server = connection->loop->server;
    name_header_read(connection->collected.bytes, name);
    pthread_mutex_lock(&server->notes);
    const void *text = store_note_find(server->store, name, &count);
    bool found = text != NULL && growing_buffer_reserve(&connection->out, count);
    if (found && count > 0) {
        memcpy(connection->out.bytes, text, count);
    }
    pthread_mutex_unlock(&server->notes);
    if (!found) {
        (void)cadre_error_set(
            &error, CADRE_NOT_FOUND, "\"%s\" was not noted on this parameter server", name);
        connection_refuse(connection, &error);
        return;
    }
    connection_answer(connection, 0, 0, connection->out.bytes, count);
}

static void run_noted_names(struct connection *connection)
{
    struct server *server = connection->loop->server;
    size_t count = 0;
    const char *name = NULL;
    pthread_mutex_lock(&server->notes);
    for (uint32_t i = 0; (name = store_note_at(server->store, i)) != NULL; i++) {
        size_t length = strlen(name) + 1;
        if (!growing_buffer_reserve(&connection->out, count + length)) {
            break;
        }
        memcpy(connection->out.bytes + count, name, length);
        count += length;
    }
    pthread_mutex_unlock(&server->notes);
    connection_answer(connection, 0, 0, connection->out.bytes, count);
}

void request_run(struct connection *connection)
{
    const struct server *server = connection->loop->server;
    switch (connection->frame.kind) {
    case REQUEST_CREATE:
        run_create(connection);
        return;
    case REQUEST_TRAIN:
        run_train(connection);
        return;
    case REQUEST_PULL:
        run_pull(connection);
        return;
    case REQUEST_GATHER:
        run_gather(connection);
        return;
    case REQUEST_RULE:
        run_rule(connection);
        return;
    case REQUEST_PUSH:
    case REQUEST_PUSH_PULL:
    case REQUEST_NORMS:
        push_run(connection);
        return;
    case FRAME_PUSH_BEGIN:
    case FRAME_PUSH_ROWS:
    case FRAME_PUSH_ABANDON:
    case FRAME_PUSH_END:
        copy_forwarded_run(connection);
        return;
    case REQUEST_STEP_NORMS:
        step_norms_run(connection);
        return;
    case REQUEST_SETTLE:
        settle_run(connection);
        return;
    case REQUEST_SLOT:
        run_slot(connection);
        return;
    case REQUEST_SET_SLOT:
        run_set_slot(connection);
        return;
    case REQUEST_BEGIN_STEP:
        run_begin_step(connection);
        return;
    case REQUEST_NOTE:
        run_note(connection);
        return;
    case REQUEST_FIND_NOTE:
        run_noted(connection);
        return;
    case REQUEST_NOTE_NAMES:
        run_noted_names(connection);
        return;
    default: /* FRAME_HELLO */
        connection_answer(connection, store_nonce(server->store),
            (server->kept ? HELLO_KEPT : 0) | (backup_in_sync(server->backup) ? HELLO_BACKED : 0),
            NULL, 0);
    }
}
