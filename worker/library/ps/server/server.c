/* SPDX-License-Identifier: Apache-2.0
 * Starts and stops a parameter server: key, memory, loops, listener. Called by the runtime's
 * ps_job/ps_task.c. */
#include "worker/library/ps/server/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/library/ps/server/server_internal.h"

static uint32_t thread_count(uint32_t wanted)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t count = wanted > 0 ? wanted : processors < 1 ? 1 : (uint32_t)processors;
    return count > SERVER_THREADS_MAX ? SERVER_THREADS_MAX : count;
}

static void admit_link(void *user, struct link *link)
{
    struct server *server = user;
    uint32_t next = atomic_fetch_add(&server->next_loop, 1);
    server_loop_add(&server->loops[next % server->loop_count], link);
}

static cadre_status learn_terms(
    struct server *server, struct directory *directory, struct cadre_error *error)
{
    const struct directory_self *self = directory_self(directory);
    server->terms.slot = self->slot;
    server->terms.incarnation = self->incarnation;
    server->terms.ps_job = self->ps_job;
    CADRE_TRY(link_program_digest(server->terms.program, error));
    return directory_await_key(
        directory, UINT64_MAX, &server->terms.generation, server->terms.key, error);
}

static cadre_status start_loops(struct server *server, uint32_t wanted, struct cadre_error *error)
{
    uint32_t count = thread_count(wanted);
    server->loops = calloc(count, sizeof *server->loops);
    if (server->loops == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a server's loops");
    }
    for (uint32_t i = 0; i < count; i++) {
        server->loops[i] =
            (struct server_loop){.server = server, .index = i, .epoll_fd = -1, .wake_fd = -1};
        server->loop_count = i + 1;
        CADRE_TRY(server_loop_start(&server->loops[i], error));
    }
    return CADRE_OK;
}

cadre_status server_open_store(struct server *server, struct cadre_error *error)
{
    store_close(server->store);
    server->store = NULL;
    return store_open(&server->memory, &server->store, &server->kept, error);
}

/* The server starts without its memory, and the coordinator has recorded whose copy may be taken.
 * When that copy is lost too the store begins empty, and clients notice it by its nonce. */
static cadre_status restore_from_copy(struct server *server, const struct server_options *options,
    struct link **ret_link, struct cadre_error *error)
{
    *ret_link = NULL;
    if (server->kept || !server->memory.expects_copy) {
        return CADRE_OK;
    }
    cadre_status status = backup_fetch(server, options->index, ret_link, error);
    if (status != CADRE_NOT_FOUND && status != CADRE_DATA_LOSS) {
        return status;
    }
    server->memory.expects_copy = false;
    return server_open_store(server, error);
}

static cadre_status bring_up_backup(
    struct server *server, const struct server_options *options, struct cadre_error *error)
{
    struct link *link;
    CADRE_TRY(copy_open(server, error));
    CADRE_TRY(restore_from_copy(server, options, &link, error));
    return backup_open(server, options, link, &server->backup, error);
}

static cadre_status bring_up(
    struct server *server, const struct server_options *options, struct cadre_error *error)
{
    struct directory_member self = {0};
    CADRE_TRY(learn_terms(server, options->directory, error));
    bool backed = server->terms.ps_job.backups && server->terms.ps_job.servers > 1;
    if (backed) {
        CADRE_TRY(directory_await(options->directory, ROLE_SERVER, options->index,
            server->terms.incarnation, UINT64_MAX, &self, error));
    }
    server->memory = (struct store_options){
        .fd = options->memory_fd,
        .generation = server->terms.generation,
        .expects_copy = backed && self.backed.by != 0,
        .limit_bytes = options->limit_bytes,
    };
    CADRE_TRY(server_open_store(server, error));
    if (backed) {
        CADRE_TRY(bring_up_backup(server, options, error));
    }
    CADRE_TRY(start_loops(server, options->threads, error));
    const struct link_admission admission = {.admit = admit_link, .user = server};
    return link_listener_start(server->listener, &server->terms, &admission, error);
}

cadre_status server_start(
    const struct server_options *options, struct server **ret_server, struct cadre_error *error)
{
    *ret_server = NULL;
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        link_listener_close(options->listener);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a server");
    }
    server->directory = options->directory;
    server->listener = options->listener;
    pthread_mutex_init(&server->lock, NULL);
    pthread_mutex_init(&server->notes, NULL);
    cadre_status status = bring_up(server, options, error);
    if (status != CADRE_OK) {
        server_stop(server);
        return cadre_error_wrap(error, status, "start ps %" PRIu32, options->index);
    }
    *ret_server = server;
    return CADRE_OK;
}

/* All threads end before the objects that they wake. A connection that is left then wakes no
 * thread. */
static void end_loops(struct server *server)
{
    uint32_t count = server->loop_count;
    for (uint32_t i = 0; i < count; i++) {
        server_loop_join(&server->loops[i]);
    }
    server->loop_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        server_loop_end(&server->loops[i]);
    }
}

/* Serves no connection any more; called once. The backup's threads wake loops, and loops that make
 * a change hold the backup's lock and link: the threads end first, their objects are freed last. */
static void end_serving(struct server *server)
{
    server->orderly = directory_ended(server->directory, NULL) == CADRE_CANCELLED;
    atomic_store(&server->stopping, true);
    link_listener_close(server->listener);
    server->listener = NULL;
    backup_join(server->backup);
    end_loops(server);
    backup_close(server->backup);
    server->backup = NULL;
    copy_close(server->copy);
    server->copy = NULL;
}

cadre_status server_wait(struct server *server, struct cadre_error *error)
{
    uint64_t seen = 0;
    cadre_status status = CADRE_OK;
    while ((status = directory_ended(server->directory, error)) == CADRE_OK) {
        seen = directory_await_change(server->directory, seen, UINT64_MAX);
    }
    end_serving(server);
    return status == CADRE_CANCELLED ? CADRE_OK : status;
}

void server_stop(struct server *server)
{
    if (server == NULL) {
        return;
    }
    end_serving(server);
    free(server->loops);
    CADRE_ASSERT(server->pushes == NULL);
    store_close(server->store);
    pthread_mutex_destroy(&server->lock);
    pthread_mutex_destroy(&server->notes);
    free(server);
}
