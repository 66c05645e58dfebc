/* SPDX-License-Identifier: Apache-2.0
 * Jobs.Watch: the whole job at once and again when it changed, at most every WATCH_EVERY_MS; its
 * end always, and then the stream ends. Positions are read every WATCH_EVERY_MS, while there are
 * watchers and arrivals, so that a step costs nothing. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/methods.h"
#include "coordinator/daemon/jobs.h"

#define WATCH_EVERY_MS 100

struct watcher {
    struct watcher *next;
    struct rpc_call *call;
    struct job_id job;
    bool changed;
    uint64_t sent_us;
    uint64_t position; /* that was sent last */
};

static void watch_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    struct job_request request;
    wire_arena_reset(daemon->arena);
    cadre_status status = wire_unpack_job_request(data, length, daemon->arena, &request, &error);
    if (status == CADRE_OK && engine_job_spec(daemon->engine, request.id) == NULL) {
        status = cadre_error_set(&error, CADRE_NOT_FOUND, "there is no job %llu: see `cadre jobs`",
            (unsigned long long)request.id.n);
    }
    struct watcher *watcher = status == CADRE_OK ? calloc(1, sizeof *watcher) : NULL;
    if (status == CADRE_OK && watcher == NULL) {
        status = cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "the coordinator has no memory for another watcher");
    }
    if (status != CADRE_OK) {
        rpc_call_fail(call, &error);
        return;
    }
    *watcher = (struct watcher){
        .next = daemon->watchers, .call = call, .job = request.id, .changed = true};
    daemon->watchers = watcher;
    rpc_call_set_user(call, watcher);
}

static void watch_shutdown(struct rpc_call *call, void *user)
{
    (void)user;
    rpc_call_finish(call, CADRE_UNAVAILABLE,
        "the coordinator is shutting down: the job may go on, watch it again");
}

static void watch_closed(struct rpc_call *call, bool cancelled, void *user)
{
    (void)cancelled;
    struct daemon *daemon = user;
    struct watcher **at = &daemon->watchers;
    while (*at != NULL && (*at)->call != call) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        struct watcher *gone = *at;
        *at = gone->next;
        free(gone);
    }
}

const struct rpc_server_ops watch_ops = {
    .on_message = watch_message, .on_shutdown = watch_shutdown, .on_closed = watch_closed};

void watch_job_changed(struct daemon *daemon, struct job_id job)
{
    for (struct watcher *watcher = daemon->watchers; watcher != NULL; watcher = watcher->next) {
        watcher->changed = watcher->changed || watcher->job.n == job.n;
    }
}

void watch_all_changed(struct daemon *daemon)
{
    struct engine_job_brief info;
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        if (!job_state_is_final(info.state)) {
            watch_job_changed(daemon, info.id);
        }
    }
}

void watch_steps_committed(struct daemon *daemon)
{
    daemon->steps_pending = true;
}

/* True when the update has to wait for the next interval. */
static bool send_update(struct daemon *daemon, struct watcher *watcher, uint64_t now_us)
{
    struct job_info info;
    if (!engine_job_basics(daemon->engine, watcher->job, &info)) {
        rpc_call_finish(watcher->call, CADRE_NOT_FOUND, "the job was forgotten: see --keep-jobs");
        return false;
    }
    bool final = job_state_is_final(info.state);
    bool early = now_us - watcher->sent_us < WATCH_EVERY_MS * CADRE_US_PER_MS;
    if (!final && (early || rpc_call_queued_bytes(watcher->call) > 0)) {
        return true;
    }
    watcher->changed = false;
    watcher->sent_us = now_us;
    (void)engine_job_info(daemon->engine, watcher->job, &info);
    watcher->position = info.position;
    DAEMON_SEND(daemon, watcher->call, job_info, &info);
    if (final) {
        rpc_call_finish(watcher->call, CADRE_OK, "");
    }
    return false;
}

static void on_watch_timer(uv_timer_t *timer)
{
    watch_flush(timer->data);
}

static void check_committed_steps(struct daemon *daemon)
{
    daemon->steps_pending = false;
    for (struct watcher *watcher = daemon->watchers; watcher != NULL; watcher = watcher->next) {
        uint64_t position = watcher->position;
        (void)engine_job_position(daemon->engine, watcher->job, &position);
        watcher->changed = watcher->changed || position != watcher->position;
    }
}

void watch_flush(struct daemon *daemon)
{
    uint64_t now_us = clock_monotonic_us();
    bool waits = uv_is_active((uv_handle_t *)&daemon->watch_timer);
    bool deferred = false;
    if (daemon->watchers == NULL) {
        return;
    }
    if (daemon->steps_pending && !waits) {
        check_committed_steps(daemon);
        deferred = true;
    }
    for (struct watcher *watcher = daemon->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->changed && send_update(daemon, watcher, now_us)) {
            deferred = true;
        }
    }
    if (deferred && !waits) {
        uv_timer_start(&daemon->watch_timer, on_watch_timer, WATCH_EVERY_MS, 0);
    }
}
