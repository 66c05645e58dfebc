/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Logs: reads what tasks wrote, and follows. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/daemon.h"
#include "coordinator/daemon/followers.h"
#include "coordinator/daemon/log_read.h"
#include "coordinator/daemon/log_writes.h"
#include "coordinator/daemon/logs.h"
#include "coordinator/daemon/methods.h"

/* A thread reads on for a follower when no more than this waits in its send queue. */
#define QUEUE_BYTES ((size_t)128 * 1024)

static void free_follower(struct follower *follower)
{
    free(follower->offsets);
    free(follower->fresh);
    free(follower->read);
    free(follower);
}

/* Whether nothing more will come behind what was read. */
static bool is_over(const struct follower *follower)
{
    struct daemon *daemon = follower->daemon;
    struct job_info info;
    bool ended = !engine_job_basics(daemon->engine, follower->request.id, &info) ||
                 job_state_is_final(info.state);
    for (uint32_t slot = 0; slot < follower->tasks && ended; slot++) {
        ended = !follower_wants(follower, slot) ||
                !logs_are_unwritten(daemon, follower->request.id, slot);
    }
    return ended || !follower->request.follow;
}

static void finish(struct follower *follower)
{
    for (uint32_t slot = 0; slot < follower->tasks; slot++) {
        struct log_chunk chunk = {.job = follower->request.id,
            .slot = slot,
            .offset = follower->offsets[slot],
            .end = true};
        if (follower_wants(follower, slot)) {
            DAEMON_SEND(follower->daemon, follower->call, log_chunk, &chunk);
        }
    }
    rpc_call_finish(follower->call, CADRE_OK, "");
    follower->tasks = 0;
}

/* ---- a part, by a thread ---- */

static void in_thread(void *user)
{
    struct follower *follower = user;
    log_read(follower->read);
}

static void send_pieces(struct follower *follower)
{
    const struct log_read *read = follower->read;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const struct log_piece *piece = &read->pieces[i];
        struct log_chunk chunk = {.job = follower->request.id,
            .slot = piece->slot,
            .offset = piece->offset,
            .bytes = read->bytes + piece->at,
            .size_bytes = piece->size};
        DAEMON_SEND(follower->daemon, follower->call, log_chunk, &chunk);
    }
    for (uint32_t i = read->slots_done; i < read->slot_count; i++) {
        follower->fresh[read->slots[i]] = true;
    }
}

static void pump(struct follower *follower);

static void after_part(void *user)
{
    struct follower *follower = user;
    if (follower->call == NULL) {
        free_follower(follower);
        return;
    }
    send_pieces(follower);
    free(follower->read);
    follower->read = NULL;
    follower->dirty = true;
    pump(follower);
}

/* The next slots in turn of which something is fresh. */
static void choose_slots(struct follower *follower, struct log_read *read)
{
    for (uint32_t i = 0; i < follower->tasks && read->slot_count < LOG_READ_SLOTS; i++) {
        uint32_t slot = follower->next_slot;
        follower->next_slot = (slot + 1) % follower->tasks;
        if (follower->fresh[slot]) {
            follower->fresh[slot] = false;
            read->slots[read->slot_count++] = slot;
        }
    }
}

static bool has_fresh(const struct follower *follower)
{
    return memchr(follower->fresh, true, follower->tasks * sizeof *follower->fresh) != NULL;
}

/* Reads on, if there is something and room for it; ends the call when all is read. */
static void pump(struct follower *follower)
{
    struct daemon *daemon = follower->daemon;
    if (follower->read != NULL || rpc_call_queued_bytes(follower->call) > QUEUE_BYTES) {
        return; /* after_part or on_drained goes on */
    }
    follower->dirty = false;
    if (!has_fresh(follower)) {
        if (is_over(follower)) {
            finish(follower);
        }
        return;
    }
    struct log_read *read = malloc(sizeof *read);
    if (read == NULL) {
        rpc_call_finish(follower->call, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory to read a log: read it again later");
        follower->tasks = 0;
        return;
    }
    read->daemon = daemon;
    read->job = follower->request.id;
    read->offsets = follower->offsets;
    read->tail_bytes = follower->request.tail_bytes;
    read->slot_count = 0;
    read->slots_done = 0;
    read->piece_count = 0;
    read->size = 0;
    choose_slots(follower, read);
    follower->read = read;
    file_work_start(&follower->work, &daemon->works, in_thread, after_part, follower);
}

static void start_reading(struct follower *follower)
{
    for (uint32_t slot = 0; slot < follower->tasks; slot++) {
        follower->offsets[slot] = follower->request.tail_bytes > 0 ? LOG_READ_TAIL : 0;
        follower->fresh[slot] = follower_wants(follower, slot);
    }
    follower->dirty = true;
}

static cadre_status check_request(struct daemon *daemon, const struct logs_request *request,
    uint32_t *ret_tasks, struct cadre_error *error)
{
    const struct job_spec *spec = engine_job_spec(daemon->engine, request->id);
    if (spec == NULL) {
        return cadre_error_set(
            error, CADRE_NOT_FOUND, "there is no job %" PRIu64 ": see `cadre jobs`", request->id.n);
    }
    if (request->one_slot && request->slot >= spec->workers) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "job %" PRIu64 " has tasks 0 to %u, no task %u", request->id.n, spec->workers - 1,
            request->slot);
    }
    *ret_tasks = spec->workers;
    return CADRE_OK;
}

static void logs_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct logs_request request;
    uint32_t tasks = 0;
    wire_arena_reset(daemon->arena);
    if (wire_unpack_logs_request(data, length, daemon->arena, &request, &error) != CADRE_OK ||
        check_request(daemon, &request, &tasks, &error) != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    struct follower *follower = calloc(1, sizeof *follower);
    uint64_t *offsets = calloc(tasks + 1, sizeof *offsets);
    bool *fresh = calloc(tasks + 1, sizeof *fresh);
    if (follower == NULL || offsets == NULL || fresh == NULL) {
        free(follower);
        free(offsets);
        free(fresh);
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another reader");
        return;
    }
    *follower = (struct follower){.next = daemon->followers,
        .daemon = daemon,
        .call = call,
        .request = request,
        .offsets = offsets,
        .fresh = fresh,
        .tasks = tasks};
    daemon->followers = follower;
    rpc_call_set_user(call, follower);
    start_reading(follower);
}

static void logs_drained(struct rpc_call *call, void *user)
{
    (void)user;
    struct follower *follower = rpc_call_user(call);
    if (follower != NULL && follower->tasks > 0 && follower->dirty) {
        pump(follower);
    }
}

static void logs_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(
        call, CADRE_UNAVAILABLE, "the coordinator is shutting down: read the logs again later");
}

static void logs_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    struct daemon *daemon = user;
    struct follower **at = &daemon->followers;
    while (*at != NULL && (*at)->call != call) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        struct follower *gone = *at;
        *at = gone->next;
        gone->call = NULL;
        if (gone->read == NULL) {
            free_follower(gone);
        }
    }
}

const struct rpc_server_ops logs_ops = {.on_message = logs_message,
    .on_drained = logs_drained,
    .on_shutdown = logs_shutdown,
    .on_closed = logs_closed};

void logs_flush(struct daemon *daemon)
{
    for (struct follower *follower = daemon->followers; follower != NULL;
         follower = follower->next) {
        if (follower->dirty && follower->tasks > 0) {
            pump(follower);
        }
    }
}
