/* SPDX-License-Identifier: Apache-2.0
 * cadre-coordinator: parses options, opens the state directory, runs the one loop and its turns,
 * and ends in order. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/rpc/daemon_main.h"
#include "common/service/notifier.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/base/daemon.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/file_store.h"
#include "coordinator/daemon/jobs.h"
#include "coordinator/daemon/keepalive.h"
#include "coordinator/daemon/lead.h"
#include "coordinator/daemon/maintenance.h"
#include "coordinator/daemon/state.h"
#include "coordinator/daemon/base/links.h"
#include "coordinator/daemon/base/pending_calls.h"
#include "coordinator/daemon/logs/logs.h"
#include "coordinator/daemon/objects/objects.h"
#include "coordinator/daemon/pages/pages.h"
#include "coordinator/daemon/series/series_jobs.h"
#include "coordinator/daemon/server.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/contents/worker_permissions.h"
#include "coordinator/daemon/shared/contents_mark.h"
#include "coordinator/daemon/shared/shared_ledger.h"

#define REFERENCES_PAUSE_FACTOR 10

/* Beside the leases: to take over, and for the hellos of workers. */
#define LEADER_CHANGE_US (2 * CADRE_US_PER_S)

/* Between turns, because a sink may not query the engine. With many jobs that save, some checkpoint
 * is dropped in each turn, and a refresh looks at all: the next one is at least ten times its
 * duration away. */
static void drop_unreferenced(struct daemon *daemon)
{
    struct cadre_error error = {0};
    uint64_t began_us = clock_monotonic_us();
    if (!daemon->references_dropped || began_us < daemon->references_next_us) {
        return;
    }
    daemon->references_dropped = false;
    cadre_status status = content_references_refresh(daemon, &error);
    uint64_t now_us = clock_monotonic_us();
    daemon->references_next_us = now_us + REFERENCES_PAUSE_FACTOR * (now_us - began_us);
    if (status != CADRE_OK && !content_references_are_loading(
                                  daemon->content_references)) { /* else it is counted again */
        log_event(
            LOG_LEVEL_WARNING, "files", "unused contents stay", LOG_STR("reason", error.text));
    }
    if (status != CADRE_OK) {
        return;
    }
    file_store_collect_garbage(daemon);
}

/* Clients that watch a job receive the reason for which it waits. */
static void notify_watchers_of_disk(struct daemon *daemon)
{
    if (!disk_flush(daemon)) {
        return;
    }
    if (daemon->disk.held && shared_ledger_may_send(daemon)) {
        pending_answer_held(daemon); /* else they wait for what is decided in etcd */
    }
    watch_all_changed(daemon);
}

static void on_tick(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    engine_tick(daemon->engine, clock_monotonic_us());
}

/* All that was ready is handled: persist, then send (protocol, section 4), then update watchers,
 * logs and health. */
static void on_turn_end(void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    if (daemon->failed != CADRE_OK || daemon->engine == NULL) {
        return;
    }
    shared_ledger_turn(daemon);
    if (engine_flush(daemon->engine, clock_monotonic_us(), &error) != CADRE_OK) {
        daemon_fail(daemon, &error);
        return;
    }
    quota_expire_jobs(daemon);
    notify_watchers_of_disk(daemon);
    if (shared_ledger_may_send(daemon)) {
        drop_unreferenced(daemon);
        watch_flush(daemon);
        logs_flush(daemon);
    }
    uint64_t wake_us = engine_wake_us(daemon->engine);
    if (daemon->references_dropped && daemon->references_next_us < wake_us) {
        wake_us = daemon->references_next_us;
    }
    if (wake_us == CADRE_TIME_NEVER) {
        uv_timer_stop(&daemon->tick);
        return;
    }
    uint64_t now_us = clock_monotonic_us();
    uv_timer_start(
        &daemon->tick, on_tick, wake_us > now_us ? (wake_us - now_us + 999) / 1000 : 0, 0);
}

static void on_server_gone(void *user)
{
    struct daemon *daemon = user;
    daemon->server = NULL;
    rpc_loop_stop(daemon->loop);
}

static void end_calls(struct daemon *daemon)
{
    rpc_server_shutdown(daemon->server, daemon->options.drain_us, on_server_gone, daemon);
}

/* With --ha another coordinator leads first, and then the calls end, which are repeated there. */
static void on_signal(void *user, int number)
{
    struct daemon *daemon = user;
    if (number == SIGHUP) {
        rpc_tls_reload(daemon->tls);
        return;
    }
    if (daemon->draining) {
        return;
    }
    daemon->draining = true;
    log_event(LOG_LEVEL_INFO, "daemon", "shutting down", LOG_I64("signal", number));
    notifier_stopping(&daemon->notifier, "ending open calls");
    if (!shared_ledger_leave(daemon)) {
        end_calls(daemon);
    }
}

static cadre_status start_handles(struct daemon *daemon, struct cadre_error *error)
{
    uv_loop_t *loop = rpc_loop_uv(daemon->loop);
    uv_timer_init(loop, &daemon->tick);
    uv_timer_init(loop, &daemon->watch_timer);
    uv_timer_init(loop, &daemon->trace_timer);
    daemon->tick.data = daemon;
    daemon->watch_timer.data = daemon;
    daemon->trace_timer.data = daemon;
    rpc_loop_on_turn_end(daemon->loop, on_turn_end, daemon);
    return signals_open(&daemon->signals, loop, on_signal, daemon, error);
}

/* Of two times that contradict each other the longer one counts. */
static void check_times(const struct coordinator_options *options)
{
    if (options->ha.address != NULL &&
        options->lease_us < 2 * options->ha.lease_us + LEADER_CHANGE_US) {
        log_event(LOG_LEVEL_WARNING, "main",
            "--lease is short beside --ha-lease: while another coordinator begins to lead, workers "
            "are lost; raise it to twice --ha-lease and 2 s more",
            LOG_U64("lease_ms", options->lease_us / CADRE_US_PER_MS),
            LOG_U64("ha_lease_ms", options->ha.lease_us / CADRE_US_PER_MS));
    }
    if (options->rewind_us < options->lease_us) {
        log_event(LOG_LEVEL_WARNING, "main",
            "--rewind-patience is shorter than --lease, and counts as the lease: raise it",
            LOG_U64("rewind_ms", options->rewind_us / CADRE_US_PER_MS),
            LOG_U64("lease_ms", options->lease_us / CADRE_US_PER_MS));
    }
}

/* For `systemctl status`. */
static void write_status(void *user, char *ret_text, size_t size)
{
    struct daemon *daemon = user;
    struct engine_job_brief info;
    unsigned workers = 0;
    unsigned run = 0;
    unsigned wait = 0;
    if (daemon->engine == NULL) {
        snprintf(ret_text, size, "follows: another coordinator leads, or none yet");
        return;
    }
    for (size_t i = 0; i < daemon->link_count; i++) {
        workers += daemon->links[i].sent_hello;
    }
    for (uint32_t i = 0; engine_job_brief_at(daemon->engine, i, &info); i++) {
        run += !job_state_is_final(info.state) && info.started_us != 0;
        wait += !job_state_is_final(info.state) && info.started_us == 0;
    }
    bool full = daemon->disk.low || daemon->disk.held;
    snprintf(ret_text, size, "%s%u worker%s; jobs: %u run, %u wait",
        full                ? "the disk of the state directory is full; "
        : daemon->disk.away ? "the object store of --contents is away; "
                            : "",
        workers, workers == 1 ? "" : "s", run, wait);
}

/* With --ha not before another process of its name would have ended it. */
static void note_ready(struct daemon *daemon)
{
    log_event(LOG_LEVEL_INFO, "daemon", "ready", LOG_STR("version", CADRE_VERSION),
        LOG_STR("state", daemon->options.state_dir));
    notifier_open(&daemon->notifier, rpc_loop_uv(daemon->loop), write_status, daemon);
}

/* ---- with --ha: follows, then leads ---- */

static void begin_leading(struct daemon *daemon, struct store *store, const struct engine_log *log)
{
    struct cadre_error error = {0};
    cadre_status status = daemon_lead(daemon, store, log, &error);
    if (status == CADRE_OK) {
        status = server_note_serving(daemon, &error);
    }
    if (status != CADRE_OK) {
        daemon_fail(daemon, &error);
        return;
    }
    daemon->hello_ahead = shared_ledger_hello_ahead;
    keepalive_start(daemon, daemon->options.ha.lease_us);
}

static void step_down(struct daemon *daemon, const char *text)
{
    (void)text;
    if (daemon->draining) {
        end_calls(daemon);
        return;
    }
    daemon->starts_again = true;
    signals_close(&daemon->signals); /* what comes now is for the next program */
    rpc_loop_stop(daemon->loop);
}

/* One that leads alone with a copy of a log, with which others go on, would lead a second cluster.
 */
static cadre_status check_alone(
    const struct daemon *daemon, const struct store *store, struct cadre_error *error)
{
    struct store_cluster cluster;
    if (daemon->options.contents_dir != NULL) {
        cadre_status status = contents_mark_check_alone(daemon->options.contents_dir, error);
        if (status != CADRE_OK && (status != CADRE_UNAVAILABLE || daemon->objects == NULL)) {
            return status; /* else the object store is away, and jobs go on meanwhile */
        }
    }
    store->ops->cluster(store, &cluster);
    if (cluster.id_high == 0 && cluster.id_low == 0) {
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
        "the ledger is a copy of a log in etcd: start this coordinator with --ha, or make a ledger "
        "of its own of it with --export");
}

static cadre_status begin(struct daemon *daemon, struct store *store, struct cadre_error *error)
{
    static const struct shared_ledger_owner owner = {
        .ready = note_ready, .lead = begin_leading, .read = daemon_read, .step_down = step_down};
    bool shared = daemon->options.ha.address != NULL;
    cadre_status status = shared ? CADRE_OK : check_alone(daemon, store, error);
    if (status == CADRE_OK && !shared) {
        status = daemon_lead(daemon, store, NULL, error);
    }
    if (status == CADRE_OK) {
        status = server_open(daemon, metrics_call_end, error);
    }
    if (status == CADRE_OK) {
        status = shared ? shared_ledger_open(daemon, store, &owner, error)
                        : server_note_serving(daemon, error);
    }
    if (status != CADRE_OK && daemon->engine == NULL) {
        store->ops->close(store);
    }
    return status;
}

static cadre_status open_daemon(struct daemon *daemon, struct cadre_error *error)
{
    check_times(&daemon->options);
    struct store *store = NULL;
    CADRE_TRY(shared_ledger_check_options(&daemon->options, error));
    daemon->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (daemon->arena == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    daemon->started_us = clock_wall_us();
    daemon->cleaned_us = clock_monotonic_us();
    CADRE_TRY(login_key_make(&daemon->login_key, error));
    signals_block();
    CADRE_TRY(rpc_loop_open(&daemon->loop, error));
    daemon->file_pool.loop = daemon->loop;
    daemon->write_pool.loop = daemon->loop;
    CADRE_TRY(start_handles(daemon, error));
    CADRE_TRY(rpc_tls_open(daemon->loop, &daemon->options.tls, TLS_ROLE_COORDINATOR,
        metrics_on_tls_event, daemon, &daemon->tls, error));
    CADRE_TRY(metrics_open(daemon, error));
    CADRE_TRY(state_open(daemon, &store, error));
    cadre_status status = state_open_contents(daemon, error);
    if (status != CADRE_OK) {
        store->ops->close(store);
        return status;
    }
    disk_open(daemon);
    return begin(daemon, store, error);
}

/* What ends in one pool may begin in the other. */
static void wait_for_threads(struct daemon *daemon)
{
    objects_stop(daemon->objects);
    while (daemon->file_pool.count + daemon->write_pool.count > 0) {
        file_work_pool_wait(&daemon->file_pool);
        file_work_pool_wait(&daemon->write_pool);
    }
    file_work_pool_close(&daemon->file_pool);
    file_work_pool_close(&daemon->write_pool);
}

static void close_daemon(struct daemon *daemon)
{
    if (daemon->loop != NULL) {
        rpc_loop_on_turn_end(daemon->loop, NULL, NULL);
        metrics_close(daemon);
        shared_ledger_close(daemon);
        rpc_server_close(daemon->server);
        logs_close(daemon);
        series_close(daemon);
        if (daemon->disk.timer.data != NULL) {
            disk_close(daemon);
        }
        keepalive_close(daemon);
        wait_for_threads(daemon);
        series_free(daemon);
        uv_close((uv_handle_t *)&daemon->tick, NULL);
        uv_close((uv_handle_t *)&daemon->watch_timer, NULL);
        uv_close((uv_handle_t *)&daemon->trace_timer, NULL);
        signals_close(&daemon->signals); /* a second one changes nothing */
        rpc_tls_close(daemon->tls);
        notifier_close(&daemon->notifier);
        rpc_loop_close(daemon->loop);
    }
    rpc_health_close(daemon->health);
    rpc_reflection_close(daemon->reflection);
    content_references_close(daemon->content_references);
    worker_contents_close(daemon->worker_contents);
    contents_close(daemon->contents);
    state_close_contents(daemon);
    quota_close(daemon->quota);
    free(daemon->rpc_counts);
    job_log_close(daemon);
    engine_close(daemon->engine);
    pending_close(daemon);
    free(daemon->links);
    free(daemon->ledger_path);
    free(daemon->blob_dir);
    free(daemon->job_dir);
    free(daemon->outputs_synced);
    wire_arena_free(daemon->arena);
    wire_buffer_free(&daemon->packed);
    login_key_wipe(&daemon->login_key);
    if (daemon->lock_fd >= 0) {
        close(daemon->lock_fd);
    }
    if (daemon->ready_file_written) {
        unlink(daemon->options.ready_file);
    }
}

static int daemon_main_run(void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    if (maintenance_is_asked(&daemon->options)) {
        int status = maintenance_run(daemon);
        close_daemon(daemon);
        return status;
    }
    if (open_daemon(daemon, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "daemon", "cannot start", LOG_STR("reason", error.text));
        close_daemon(daemon);
        return 1;
    }
    if (daemon->options.ha.address == NULL) {
        note_ready(daemon);
    }
    rpc_loop_run(daemon->loop);
    cadre_status failed = daemon->failed;
    if (failed != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "daemon",
            daemon->is_refused ? "cannot start"
                               : "stopped, because what cannot be stored must not be sent",
            LOG_STR("reason", daemon->failure.text));
    }
    close_daemon(daemon);
    if (!daemon->starts_again) {
        log_event(LOG_LEVEL_INFO, "daemon", "stopped", LOG_END);
    }
    return failed == CADRE_OK ? 0 : 1;
}

/* A coordinator that was replaced keeps nothing of what it had decided: it starts as a follower. */
static int start_again(char **argv)
{
    execv("/proc/self/exe", argv);
    log_event(LOG_LEVEL_ERROR, "daemon", "cannot start again", LOG_STR("reason", strerror(errno)));
    return 1;
}

int main(int argc, char **argv)
{
    struct daemon daemon = {.lock_fd = -1, .contents_fd = -1};
    log_set_journal(journal_send);
    int status = daemon_main(&coordinator_option_table, argc, argv, &daemon.options,
        &daemon.options.log, daemon_main_run, &daemon);
    return status == 0 && daemon.starts_again && !daemon.draining ? start_again(argv) : status;
}
