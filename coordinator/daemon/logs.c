/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Logs: reads what tasks wrote, and follows. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "coordinator/daemon/daemon.h"
#include "coordinator/daemon/log_gap.h"

/* A follower reads on when less than this waits in its send queue. */
#define QUEUE_BYTES ((size_t)256 * 1024)

struct follower {
    struct follower *next;
    struct daemon *daemon;
    struct rpc_call *call;
    struct logs_request request;
    uint64_t *offsets; /* of each task; what was sent so far */
    uint32_t tasks;
    bool dirty; /* something may have been written since it last read to the end */
};

static uint64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

void logs_changed(struct daemon *daemon, struct job_id job)
{
    for (struct follower *follower = daemon->followers; follower != NULL;
         follower = follower->next) {
        follower->dirty = follower->dirty || follower->request.id.n == job.n;
    }
}

/* How much to read at the follower's offset, which leaves the gap if it is in it: whoever is behind
 * sees by the next offset how much is not kept. */
static size_t step_over(uint64_t *offset, const struct log_gap *gap)
{
    if (*offset >= gap->from && *offset < gap->to) {
        *offset = gap->to;
    }
    bool before = *offset < gap->from && gap->from - *offset < LIMIT_LOG_CHUNK_BYTES;
    return before && log_gap_bytes(gap) > 0 ? (size_t)(gap->from - *offset) : LIMIT_LOG_CHUNK_BYTES;
}

/* Sends what is there of one task; false when the queue is full or the call failed. */
static bool send_log(struct follower *follower, uint32_t slot)
{
    struct daemon *daemon = follower->daemon;
    CADRE_FREE_AT_EXIT char *path = path_of_log(daemon, follower->request.id, slot);
    CADRE_FREE_AT_EXIT uint8_t *bytes = malloc(LIMIT_LOG_CHUNK_BYTES);
    CADRE_CLOSE_AT_EXIT int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const struct log_gap gap = fd >= 0 ? log_gap_read(path) : (struct log_gap){0};
    ssize_t got = 0;
    uint64_t *offset = &follower->offsets[slot];
    while (fd >= 0 && bytes != NULL) {
        size_t want = step_over(offset, &gap);
        got = pread(fd, bytes, want, (off_t)*offset);
        if (got <= 0) {
            break;
        }
        if (rpc_call_queued_bytes(follower->call) > QUEUE_BYTES) {
            return false;
        }
        struct log_chunk chunk = {.job = follower->request.id,
            .slot = slot,
            .offset = *offset,
            .bytes = bytes,
            .size_bytes = (size_t)got};
        DAEMON_SEND(daemon, follower->call, log_chunk, &chunk);
        *offset += (uint64_t)got;
    }
    return true;
}

static bool wants(const struct follower *follower, uint32_t slot)
{
    return !follower->request.one_slot || follower->request.slot == slot;
}

static void pump(struct follower *follower)
{
    struct daemon *daemon = follower->daemon;
    struct job_info info;
    /* Asked before reading: what is written after the end of a job does not exist. */
    bool ended = !engine_job_basics(daemon->engine, follower->request.id, &info) ||
                 job_state_is_final(info.state);
    for (uint32_t slot = 0; slot < follower->tasks; slot++) {
        if (wants(follower, slot) && !send_log(follower, slot)) {
            return; /* on_drained goes on */
        }
    }
    follower->dirty = false;
    if (ended || !follower->request.follow) {
        for (uint32_t slot = 0; slot < follower->tasks; slot++) {
            struct log_chunk chunk = {.job = follower->request.id,
                .slot = slot,
                .offset = follower->offsets[slot],
                .end = true};
            if (wants(follower, slot)) {
                DAEMON_SEND(daemon, follower->call, log_chunk, &chunk);
            }
        }
        rpc_call_finish(follower->call, CADRE_OK, "");
        follower->tasks = 0; /* nothing more to read */
    }
}

static void start_at_tail(struct follower *follower)
{
    for (uint32_t slot = 0; slot < follower->tasks; slot++) {
        CADRE_FREE_AT_EXIT char *path = path_of_log(follower->daemon, follower->request.id, slot);
        uint64_t size = path != NULL ? size_of(path) : 0;
        uint64_t tail = follower->request.tail_bytes;
        follower->offsets[slot] = tail > 0 && size > tail ? size - tail : 0;
    }
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
    if (follower == NULL || offsets == NULL) {
        free(follower);
        free(offsets);
        rpc_call_finish(
            call, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another reader");
        return;
    }
    *follower = (struct follower){.next = daemon->followers,
        .daemon = daemon,
        .call = call,
        .request = request,
        .offsets = offsets,
        .tasks = tasks,
        .dirty = true};
    daemon->followers = follower;
    rpc_call_set_user(call, follower);
    start_at_tail(follower);
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
        free(gone->offsets);
        free(gone);
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
