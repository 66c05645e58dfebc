/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Logs: sends what tasks wrote, and follows; log_read.c reads it in threads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/logs/log_followers.h"
#include "coordinator/daemon/logs/log_read.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/base/methods.h"

/* A thread reads on for a follower when no more than this waits in its send queue. */
#define QUEUE_BYTES ((size_t)128 * 1024)

static void free_follower(struct log_follower *log_follower)
{
    free(log_follower->offsets);
    free(log_follower->has_more);
    free(log_follower->read);
    free(log_follower);
}

/* Whether no more bytes will come. */
static bool is_over(const struct log_follower *log_follower)
{
    struct daemon *daemon = log_follower->daemon;
    struct job_info info;
    bool ended = !engine_job_basics(daemon->engine, log_follower->request.id, &info) ||
                 job_state_is_final(info.state);
    for (uint32_t slot = 0; slot < log_follower->tasks && ended; slot++) {
        ended = !log_follower_wants(log_follower, slot) ||
                !logs_are_unwritten(daemon, log_follower->request.id, slot);
    }
    return ended || !log_follower->request.follow;
}

static void finish_follow(struct log_follower *log_follower)
{
    for (uint32_t slot = 0; slot < log_follower->tasks; slot++) {
        struct log_chunk chunk = {.job = log_follower->request.id,
            .slot = slot,
            .offset = log_follower->offsets[slot],
            .end = true};
        if (log_follower_wants(log_follower, slot)) {
            DAEMON_SEND(log_follower->daemon, log_follower->call, log_chunk, &chunk);
        }
    }
    rpc_call_finish(log_follower->call, CADRE_OK, "");
    log_follower->tasks = 0;
}

/* ---- a part, by a thread ---- */

static void in_thread(void *user)
{
    struct log_follower *log_follower = user;
    log_read(log_follower->read);
}

static void send_pieces(struct log_follower *log_follower)
{
    const struct log_read *read = log_follower->read;
    for (uint32_t i = 0; i < read->piece_count; i++) {
        const struct log_piece *piece = &read->pieces[i];
        struct log_chunk chunk = {.job = log_follower->request.id,
            .slot = piece->slot,
            .offset = piece->offset,
            .bytes = read->bytes + piece->at,
            .size_bytes = piece->size,
            .marks = piece->marks,
            .mark_count = piece->mark_count,
            .skipped_bytes = piece->skipped_bytes};
        DAEMON_SEND(log_follower->daemon, log_follower->call, log_chunk, &chunk);
    }
    for (uint32_t i = read->slots_done; i < read->slot_count; i++) {
        log_follower->has_more[read->slots[i]] = true;
    }
}

static void pump_logs(struct log_follower *log_follower);

static void after_part(void *user)
{
    struct log_follower *log_follower = user;
    if (log_follower->call == NULL) {
        free_follower(log_follower);
        return;
    }
    send_pieces(log_follower);
    struct cadre_error error = log_follower->read->error;
    free(log_follower->read);
    log_follower->read = NULL;
    if (error.code != CADRE_OK) {
        rpc_call_fail(log_follower->call, &error);
        log_follower->tasks = 0;
        return;
    }
    log_follower->dirty = true;
    pump_logs(log_follower);
}

/* The next slots in turn that have new bytes. */
static void choose_slots(struct log_follower *log_follower, struct log_read *read)
{
    for (uint32_t i = 0; i < log_follower->tasks && read->slot_count < LOG_READ_SLOTS; i++) {
        uint32_t slot = log_follower->next_slot;
        log_follower->next_slot = (slot + 1) % log_follower->tasks;
        if (log_follower->has_more[slot]) {
            log_follower->has_more[slot] = false;
            read->slots[read->slot_count++] = slot;
        }
    }
}

static bool has_more_to_read(const struct log_follower *log_follower)
{
    return memchr(log_follower->has_more, true,
               log_follower->tasks * sizeof *log_follower->has_more) != NULL;
}

/* Reads on, if there is something and room for it; ends the call when all is read. */
static void pump_logs(struct log_follower *log_follower)
{
    struct daemon *daemon = log_follower->daemon;
    if (log_follower->read != NULL || rpc_call_queued_bytes(log_follower->call) > QUEUE_BYTES) {
        return; /* after_part or on_drained goes on */
    }
    log_follower->dirty = false;
    if (!has_more_to_read(log_follower)) {
        if (is_over(log_follower)) {
            finish_follow(log_follower);
        }
        return;
    }
    struct log_read *read = malloc(sizeof *read);
    if (read == NULL) {
        rpc_call_finish(log_follower->call, CADRE_RESOURCE_EXHAUSTED,
            "the coordinator has no memory to read a log: read it again later");
        log_follower->tasks = 0;
        return;
    }
    read->daemon = daemon;
    read->job = log_follower->request.id;
    read->offsets = log_follower->offsets;
    read->request = &log_follower->request;
    read->slot_count = 0;
    read->slots_done = 0;
    read->piece_count = 0;
    read->mark_count = 0;
    read->size = 0;
    choose_slots(log_follower, read);
    log_follower->read = read;
    file_work_start(&log_follower->work, &daemon->file_pool, in_thread, after_part, log_follower);
}

static void start_reading(struct log_follower *log_follower)
{
    const struct logs_request *request = &log_follower->request;
    bool at_start = request->tail_bytes + request->tail_lines + request->since_us == 0;
    for (uint32_t slot = 0; slot < log_follower->tasks; slot++) {
        log_follower->offsets[slot] = at_start ? 0 : LOG_READ_BEGIN;
        log_follower->has_more[slot] = log_follower_wants(log_follower, slot);
    }
    log_follower->dirty = true;
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
    struct log_follower *log_follower = calloc(1, sizeof *log_follower);
    uint64_t *offsets = calloc(tasks + 1, sizeof *offsets);
    bool *has_more = calloc(tasks + 1, sizeof *has_more);
    if (log_follower == NULL || offsets == NULL || has_more == NULL) {
        free(log_follower);
        free(offsets);
        free(has_more);
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another reader");
        return;
    }
    *log_follower = (struct log_follower){.next = daemon->log_followers,
        .daemon = daemon,
        .call = call,
        .request = request,
        .offsets = offsets,
        .has_more = has_more,
        .tasks = tasks};
    daemon->log_followers = log_follower;
    rpc_call_set_user(call, log_follower);
    start_reading(log_follower);
}

static void logs_drained(struct rpc_call *call, void *user)
{
    (void)user;
    struct log_follower *log_follower = rpc_call_user(call);
    if (log_follower != NULL && log_follower->tasks > 0 && log_follower->dirty) {
        pump_logs(log_follower);
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
    struct log_follower **at = &daemon->log_followers;
    while (*at != NULL && (*at)->call != call) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        struct log_follower *gone = *at;
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
    for (struct log_follower *log_follower = daemon->log_followers; log_follower != NULL;
         log_follower = log_follower->next) {
        if (log_follower->dirty && log_follower->tasks > 0) {
            pump_logs(log_follower);
        }
    }
}
