/* SPDX-License-Identifier: Apache-2.0
 * One connected worker: its thread sends closures and receives results. Started by the listener of
 * scheduler.c. */
#include "worker/library/runtime/closures/worker_connection.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/thread.h"
#include "common/pure/assert.h"
#include "worker/library/crash/crash.h"
#include "worker/library/runtime/closures/worker_connection_idle.h"
#include "worker/library/runtime/closures/per_worker.h"

/* --- frames to the worker --- */

static cadre_status send_bare(struct worker_connection *worker_connection, enum closure_frame kind,
    uint64_t word, struct cadre_error *error)
{
    const struct frame frame = {.kind = kind, .args = {word}};
    return link_send(worker_connection->link, &frame, NULL, 0, error);
}

static cadre_status send_make(struct worker_connection *worker_connection,
    const struct cadre_per_worker *per_worker, struct cadre_error *error)
{
    CADRE_ASSERT(per_worker->number > 0);
    const struct registration *made_of = per_worker->made_of;
    char name[LIMIT_NAME_BYTES];
    const struct frame frame = {.kind = CLOSURE_MAKE,
        .id = per_worker->number,
        .bytes = strlen(made_of->name),
        .args = {made_of->kind}};
    memcpy(name, made_of->name, sizeof name);
    const struct iovec piece = {.iov_base = name, .iov_len = frame.bytes};
    return link_send(worker_connection->link, &frame, &piece, 1, error);
}

/* The name and the arguments, which the caller frees; NULL: no memory. */
static uint8_t *write_start(const cadre_remote_value *value, size_t *ret_bytes)
{
    const char *name = value->function->name;
    size_t bytes = wire_padded(strlen(name));
    for (uint32_t i = 0; i < value->argument_count; i++) {
        bytes += wire_item_bytes(&value->arguments[i]);
    }
    uint8_t *start = calloc(1, bytes);
    if (start == NULL) {
        return NULL;
    }
    memcpy(start, name, strlen(name));
    uint8_t *at = start + wire_padded(strlen(name));
    for (uint32_t i = 0; i < value->argument_count; i++) {
        at = wire_item_write(&value->arguments[i], at);
    }
    CADRE_ASSERT(at == start + bytes);
    *ret_bytes = bytes;
    return start;
}

static cadre_status send_start(struct worker_connection *worker_connection,
    cadre_remote_value *value, struct cadre_error *error)
{
    size_t bytes = 0;
    uint8_t *start = write_start(value, &bytes);
    if (start == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory to send a closure of `%s`", value->function->name);
    }
    const struct frame frame = {.kind = CLOSURE_START,
        .id = value->number,
        .bytes = bytes,
        .args = {ps_job_done_watermark(), value->argument_count, strlen(value->function->name),
            value->step}};
    const struct iovec piece = {.iov_base = start, .iov_len = bytes};
    cadre_status status = link_send(worker_connection->link, &frame, &piece, 1, error);
    free(start);
    return status;
}

enum next { NEXT_WAIT, NEXT_MAKE, NEXT_CANCEL, NEXT_START, NEXT_END };

struct order {
    enum next next;
    const struct cadre_per_worker *make;
    cadre_remote_value *start;
    uint64_t cancel; /* up to this number */
};

static struct order worker_connection_choose(struct worker_connection *worker_connection)
{
    struct scheduler *scheduler = worker_connection->scheduler;
    CADRE_ASSERT(worker_connection->running_count <= CLOSURES_AHEAD);
    CADRE_ASSERT(worker_connection->sent_made <= scheduler->per_worker_count);
    uint32_t depth = worker_connection->took_us < CLOSURE_AHEAD_MAX_US ? CLOSURES_AHEAD : 1;
    worker_connection_idle_remove(worker_connection);
    if (scheduler->ending) {
        return (struct order){.next = NEXT_END};
    }
    if (worker_connection->sent_made < scheduler->per_worker_count) {
        return (struct order){
            .next = NEXT_MAKE, .make = scheduler->per_worker[worker_connection->sent_made++]};
    }
    if (scheduler->queue.cancelling && worker_connection->running_count > 0 &&
        worker_connection->sent_cancel != scheduler->batch + 1) {
        worker_connection->sent_cancel = scheduler->batch + 1;
        return (struct order){.next = NEXT_CANCEL, .cancel = scheduler->last_number};
    }
    struct closure *closure = worker_connection->running_count < depth
                                  ? closure_queue_get(&scheduler->queue, worker_connection->index)
                                  : NULL;
    if (closure != NULL) {
        worker_connection->running[worker_connection->running_count++] = remote_value_of(closure);
        if (scheduler->queue.queued + 1 == scheduler->queue.capacity) {
            scheduler_notify(scheduler); /* there is room */
        }
        return (struct order){.next = NEXT_START, .start = remote_value_of(closure)};
    }
    if (worker_connection->running_count == 0) {
        worker_connection_idle_add(worker_connection);
    }
    return (struct order){.next = NEXT_WAIT};
}

/* --- the thread --- */

/* Whether the directory has a later incarnation of the worker. */
static bool is_of_old(
    const struct worker_connection *worker_connection, struct directory_member *ret_member)
{
    directory_lookup(worker_connection->scheduler->ps_job->directory, ROLE_WORKER,
        worker_connection->index, ret_member);
    return ret_member->incarnation > link_peer(worker_connection->link)->incarnation;
}

/* Whether this incarnation of the worker is over, by the directory. */
static bool is_gone(const struct worker_connection *worker_connection)
{
    struct directory_member member;
    uint64_t incarnation = link_peer(worker_connection->link)->incarnation;
    return is_of_old(worker_connection, &member) ||
           (member.incarnation == incarnation && incarnation > 0 && !member.here);
}

void worker_connections_check(struct scheduler *scheduler)
{
    for (uint32_t i = 0; i < scheduler->workers; i++) {
        if (scheduler->connections[i] != NULL && is_gone(scheduler->connections[i])) {
            link_shutdown(scheduler->connections[i]->link);
        }
    }
}

/* Waits until the worker has sent something, or there is something to do. */
static cadre_status wait_for_news(
    struct worker_connection *worker_connection, struct cadre_error *error)
{
    struct pollfd fds[] = {{.fd = link_fd(worker_connection->link), .events = POLLIN},
        {.fd = worker_connection->wake, .events = POLLIN}};
    uint64_t wakes = 0;
    int ready = poll(fds, 2, CONNECTION_TICK_MS);
    if (ready < 0 && errno != EINTR) {
        return cadre_error_errno(
            error, errno, "wait for %s", link_peer_name(worker_connection->link));
    }
    if (ready == 0 && is_gone(worker_connection)) {
        return cadre_error_set(
            error, CADRE_UNAVAILABLE, "%s was lost", link_peer_name(worker_connection->link));
    }
    if (ready > 0 && fds[1].revents != 0) {
        ssize_t count = read(worker_connection->wake, &wakes, sizeof wakes);
        CADRE_ASSERT(count == (ssize_t)sizeof wakes);
    }
    return ready > 0 && fds[0].revents != 0 ? worker_connection_receive(worker_connection, error)
                                            : CADRE_OK;
}

/* A closure that cannot be sent for lack of memory fails; when the link breaks the worker is
 * lost. */
static cadre_status worker_connection_start(struct worker_connection *worker_connection,
    cadre_remote_value *value, struct cadre_error *error)
{
    cadre_status status = send_start(worker_connection, value, error);
    if (status == CADRE_RESOURCE_EXHAUSTED) {
        const struct frame frame = {.id = value->number};
        (void)worker_connection_end_closure(worker_connection, &frame, status, NULL, error);
        status = CADRE_OK;
    }
    return status;
}

static cadre_status worker_connection_send_orders(struct worker_connection *worker_connection,
    const struct order *order, struct cadre_error *error)
{
    switch (order->next) {
    case NEXT_MAKE:
        return send_make(worker_connection, order->make, error);
    case NEXT_CANCEL:
        return send_bare(worker_connection, CLOSURE_CANCEL, order->cancel, error);
    case NEXT_START:
        return worker_connection_start(worker_connection, order->start, error);
    case NEXT_END:
        (void)send_bare(worker_connection, CLOSURE_GOODBYE, 0, error);
        return cadre_error_set(error, CADRE_CANCELLED, "the strategy has ended");
    default:
        return wait_for_news(worker_connection, error);
    }
}

/* Its closures go back to the queue, and closures wait for it no longer. */
static void worker_connection_leave(struct worker_connection *worker_connection)
{
    struct scheduler *scheduler = worker_connection->scheduler;
    CADRE_ASSERT(scheduler->threads > 0);
    CADRE_ASSERT(worker_connection->ended_next == NULL);
    worker_connection_idle_remove(worker_connection);
    if (scheduler->connections[worker_connection->index] == worker_connection) {
        scheduler->connections[worker_connection->index] = NULL;
        scheduler->connected--;
    }
    for (uint32_t i = 0; i < worker_connection->running_count; i++) {
        scheduler_lost(scheduler, worker_connection->running[i]);
    }
    worker_connection->running_count = 0;
    worker_connection_wake_idle(scheduler); /* it may have been woken for a closure */
    worker_connection->ended_next = scheduler->ended;
    scheduler->ended = worker_connection;
    scheduler->threads--;
    scheduler_notify(scheduler);
}

static void *worker_connection_serve(void *user)
{
    struct worker_connection *worker_connection = user;
    crash_thread("closures", 0);
    struct scheduler *scheduler = worker_connection->scheduler;
    struct cadre_error error = {0};
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK) {
        pthread_mutex_lock(&scheduler->lock);
        struct order order = worker_connection_choose(worker_connection);
        pthread_mutex_unlock(&scheduler->lock);
        status = worker_connection_send_orders(worker_connection, &order, &error);
    }
    link_shutdown(worker_connection->link);
    pthread_mutex_lock(&scheduler->lock);
    worker_connection_leave(worker_connection);
    pthread_mutex_unlock(&scheduler->lock);
    return NULL;
}

/* --- connecting and leaving --- */

static void worker_connection_destroy(struct worker_connection *worker_connection)
{
    if (worker_connection->wake >= 0) {
        close(worker_connection->wake);
    }
    link_free(worker_connection->link);
    free(worker_connection);
}

void worker_connections_reap(struct scheduler *scheduler)
{
    while (scheduler->ended != NULL) {
        struct worker_connection *worker_connection = scheduler->ended;
        scheduler->ended = worker_connection->ended_next;
        pthread_mutex_unlock(&scheduler->lock);
        pthread_join(worker_connection->thread, NULL);
        worker_connection_destroy(worker_connection);
        pthread_mutex_lock(&scheduler->lock);
    }
}

/* The caller holds the lock: a worker that connects again replaces itself. False: it is refused. */
static bool worker_connection_enter(struct worker_connection *worker_connection)
{
    struct scheduler *scheduler = worker_connection->scheduler;
    CADRE_ASSERT(worker_connection->index < scheduler->workers);
    struct worker_connection *older = scheduler->connections[worker_connection->index];
    uint64_t incarnation = link_peer(worker_connection->link)->incarnation;
    struct directory_member member;
    if (scheduler->ending || is_of_old(worker_connection, &member) ||
        (older != NULL && link_peer(older->link)->incarnation > incarnation) ||
        thread_start(&worker_connection->thread, worker_connection_serve, worker_connection) != 0) {
        return false;
    }
    if (older != NULL) {
        worker_connection_idle_remove(older);
        link_shutdown(older->link);
    } else {
        scheduler->connected++;
    }
    scheduler->connections[worker_connection->index] = worker_connection;
    scheduler->threads++;
    scheduler_notify(scheduler);
    return true;
}

void worker_connection_admit(void *user, struct link *link)
{
    struct scheduler *scheduler = user;
    const struct ps_job *ps_job = &directory_self(scheduler->ps_job->directory)->ps_job;
    uint32_t slot = link_peer(link)->slot;
    struct worker_connection *worker_connection = calloc(1, sizeof *worker_connection);
    if (worker_connection == NULL || slot >= ps_job_task_count(ps_job) ||
        ps_job_role(ps_job, slot) != ROLE_WORKER) {
        free(worker_connection);
        link_free(link);
        return;
    }
    worker_connection->scheduler = scheduler;
    worker_connection->index = slot - ps_job_first_slot(ps_job, ROLE_WORKER);
    worker_connection->link = link;
    worker_connection->took_us = UINT64_MAX;
    worker_connection->wake = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_lock(&scheduler->lock);
    worker_connections_reap(scheduler);
    bool entered = worker_connection->wake >= 0 && worker_connection_enter(worker_connection);
    pthread_mutex_unlock(&scheduler->lock);
    if (!entered) {
        worker_connection_destroy(worker_connection);
    }
}
