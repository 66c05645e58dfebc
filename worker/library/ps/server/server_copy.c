/* SPDX-License-Identifier: Apache-2.0
 * The copy that a server keeps of another one's store: a server inside of it with one loop, whose
 * only client is that other server. It waits for none of this server's loops, so servers that keep
 * each other's copies never wait in a ring. Called by server.c and server_requests.c. */
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
