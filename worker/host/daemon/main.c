/* SPDX-License-Identifier: Apache-2.0
 * cadre-worker: options, the state directory, one loop, drain. */
#include <errno.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <openssl/rand.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/rpc/daemon_main.h"
#include "common/service/notifier.h"
#include "worker/host/daemon/cache.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/objects/job_storage.h"
#include "worker/host/daemon/fetch_report.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/silence.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/log_pause.h"
#include "worker/host/daemon/logs.h"
#include "worker/host/daemon/mesh_host.h"
#include "worker/host/daemon/tasks.h"
#include "worker/host/daemon/usage_report.h"
#include "worker/host/probe/slot_gpus.h"

#define STORE_THREADS 8 /* that wait for object stores */

static void on_drain_timeout(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    log_event(LOG_LEVEL_WARNING, "daemon", "not everything ended in time: exiting without the rest",
        LOG_U64("tasks", agent_task_count(daemon->agent)));
    rpc_loop_stop(daemon->loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    if (daemon->draining || daemon->exit_now != NULL) {
        return;
    }
    daemon->draining = true;
    log_event(LOG_LEVEL_INFO, "daemon", "draining", LOG_I64("signal", number),
        LOG_U64("tasks", agent_task_count(daemon->agent)));
    notifier_stopping(&daemon->notifier, "draining: jobs go on without the tasks here");
    uv_timer_start(&daemon->drain, on_drain_timeout, daemon->options.drain_us / 1000, 0);
    agent_drain(daemon->agent);
}

/* The tasks run on under their keepers, as after a kill -9: so both cases take one path. Before
 * the exit, what was read of their pipes is written. */
static void exit_when_logs_written(struct daemon *daemon)
{
    if (!logs_pause_all(daemon)) {
        return; /* called again at the thread's end */
    }
    if (daemon->ready_file_written) {
        unlink(daemon->options.ready_file);
    }
    _exit(0);
}

static void on_drained_to_exit(uv_signal_t *handle, int number)
{
    struct daemon *daemon = handle->data;
    if (!daemon->options.keep_tasks || daemon->draining) {
        log_event(LOG_LEVEL_WARNING, "daemon",
            daemon->draining ? "draining already: the signal is ignored"
                             : "the signal is ignored: tasks would end, see --keep-tasks",
            LOG_I64("signal", number));
        return;
    }
    if (daemon->exit_now != NULL) {
        return;
    }
    log_event(LOG_LEVEL_INFO, "daemon", "leaving, tasks run on", LOG_I64("signal", number),
        LOG_U64("tasks", agent_task_count(daemon->agent)));
    notifier_stopping(&daemon->notifier, "leaving: its tasks run on");
    daemon->exit_now = exit_when_logs_written;
    exit_when_logs_written(daemon);
}

static void on_sighup(uv_signal_t *handle, int number)
{
    const struct daemon *daemon = handle->data;
    (void)number;
    rpc_tls_reload(daemon->tls);
}

static cadre_status find_user(struct daemon *daemon, struct cadre_error *error)
{
    if (geteuid() != 0) {
        return CADRE_OK;
    }
    errno = 0;
    const struct passwd *user = getpwnam(daemon->options.task_user);
    if (user == NULL) {
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "--task-user %s: there is no such user on this host: create it or name another",
            daemon->options.task_user);
    }
    daemon->change_user = true;
    daemon->uid = user->pw_uid;
    daemon->gid = user->pw_gid;
    return CADRE_OK;
}

static cadre_status open_state(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *lock = NULL;
    CADRE_TRY(folder_make_durable(daemon->options.state_dir, 0711, error));
    /* Tasks get the absolute paths of their sockets and folders. */
    char *absolute = realpath(daemon->options.state_dir, NULL);
    if (absolute == NULL) {
        return cadre_error_errno(
            error, errno, "cannot resolve --state-dir %s", daemon->options.state_dir);
    }
    free(daemon->options.state_dir);
    daemon->options.state_dir = absolute;
    if (asprintf(&lock, "%s/lock", absolute) < 0 ||
        asprintf(&daemon->blob_dir, "%s/blobs", absolute) < 0 ||
        asprintf(&daemon->task_dir, "%s/tasks", absolute) < 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to open %s", absolute);
    }
    CADRE_TRY(lock_file_acquire(lock, &daemon->lock_fd, error));
    return folder_make(daemon->blob_dir, 0700, error);
}

static cadre_status open_agent(struct daemon *daemon, struct cadre_error *error)
{
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    const char *certified =
        daemon->tls != NULL ? rpc_tls_material(daemon->tls)->identity.name : host;
    struct agent_setup setup = {.core = {.slots = (uint32_t)daemon->options.slots,
                                    .heartbeat_us = daemon->options.heartbeat_us,
                                    .orphan_us = daemon->options.orphan_us,
                                    .grace_us = daemon->options.grace_us},
        .identity = {.name = daemon->options.name != NULL ? daemon->options.name : certified,
            .host = host,
            .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
            .memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE),
            .gpus = daemon->gpus->reported},
        .mesh_host = mesh_host_is_auto(daemon->options.mesh_host) ? MESH_HOST_LOOPBACK
                                                                  : daemon->options.mesh_host,
        .mesh_ports = daemon->mesh_ports,
        .change_user = daemon->change_user,
        .uid = daemon->uid,
        .gid = daemon->gid,
        .checks_peers = true,
        .gpu_shares = daemon->gpus->shares};
    if (RAND_bytes((unsigned char *)&setup.identity.boot_nonce, sizeof setup.identity.boot_nonce) !=
        1) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
    }
    return agent_open(
        &setup, rpc_loop_uv(daemon->loop), &worker_agent_callbacks, daemon, &daemon->agent, error);
}

/* ---- what all tasks keep of objects, now and then while some run ---- */

#define OBJECT_LOOK_MS 30000

static void look_in_thread(void *user)
{
    struct daemon *daemon = user;
    daemon->object_look_bytes =
        object_cache_trim(daemon->objects.folder, daemon->objects.limit_bytes);
}

static void after_look(void *user)
{
    struct daemon *daemon = user;
    daemon->objects.bytes = daemon->object_look_bytes;
}

static void on_object_timer(uv_timer_t *timer)
{
    struct daemon *daemon = timer->data;
    bool is_due = daemon->tasks != NULL && daemon->objects.limit_bytes > 0;
    if (is_due && !daemon->object_look.running && !daemon->closes) {
        file_work_start(
            &daemon->object_look, &daemon->file_pool, look_in_thread, after_look, daemon);
    }
}

static void start_handles(struct daemon *daemon)
{
    uv_loop_t *loop = rpc_loop_uv(daemon->loop);
    uv_timer_init(loop, &daemon->reconnect_timer);
    uv_timer_init(loop, &daemon->drain);
    uv_timer_init(loop, &daemon->object_timer);
    daemon->object_timer.data = daemon;
    uv_timer_start(&daemon->object_timer, on_object_timer, OBJECT_LOOK_MS, OBJECT_LOOK_MS);
    retry_open(daemon, tasks_retry);
    fetch_report_open(daemon);
    log_pause_open(daemon, logs_ship_all);
    uv_signal_init(loop, &daemon->sigterm);
    uv_signal_init(loop, &daemon->sigint);
    uv_signal_init(loop, &daemon->sigusr1);
    uv_signal_init(loop, &daemon->sighup);
    daemon->reconnect_timer.data = daemon;
    daemon->drain.data = daemon;
    daemon->sigterm.data = daemon;
    daemon->sigint.data = daemon;
    daemon->sigusr1.data = daemon;
    uv_signal_start(&daemon->sigterm, on_signal, SIGTERM);
    uv_signal_start(&daemon->sigint, on_signal, SIGINT);
    uv_signal_start(&daemon->sigusr1, on_drained_to_exit, SIGUSR1);
    daemon->sighup.data = daemon;
    uv_signal_start(&daemon->sighup, on_sighup, SIGHUP);
}

static cadre_status open_tls(struct daemon *daemon, struct cadre_error *error)
{
    CADRE_TRY(rpc_tls_open(daemon->loop, &daemon->options.tls, TLS_ROLE_WORKER,
        metrics_on_tls_event, daemon, &daemon->tls, error));
    const char *name = daemon->options.name;
    if (daemon->tls == NULL || name == NULL) {
        return CADRE_OK;
    }
    const char *certified = rpc_tls_material(daemon->tls)->identity.name;
    if (strcmp(name, certified) != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--name %s: the certificate is that of worker \"%s\", and a coordinator refuses it "
            "under another name; leave --name out, or issue a certificate for this name",
            name, certified);
    }
    return CADRE_OK;
}

/* Protocol, section 3 (daemon): what cannot be adopted is killed before the hello. Control
 * groups first: a process that runs on in one makes files while their folders are removed, and
 * cannot be found otherwise when it has overwritten its environment. */
static cadre_status clear_previous_incarnation(struct daemon *daemon, struct cadre_error *error)
{
    isolate_clear(daemon);
    return leftovers_clear(daemon, error);
}

/* Takes over tasks last: from here on they would end with this daemon, so what cannot be cleared
 * is left for its next start. */
static void take_over(struct daemon *daemon)
{
    struct cadre_error error = {0};
    leftovers_adopt(daemon);
    if (clear_previous_incarnation(daemon, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "daemon",
            "what an earlier incarnation of this daemon left stays", LOG_STR("reason", error.text));
    }
}

static cadre_status open_daemon(struct daemon *daemon, struct cadre_error *error)
{
    daemon->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (daemon->arena == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start");
    }
    /* Inherited by every task: none of them can gain rights by a set-uid program. */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return cadre_error_errno(error, errno, "the kernel refuses no_new_privs");
    }
    CADRE_TRY(mesh_host_check(daemon->options.mesh_host, error));
    CADRE_TRY(port_range_parse("--mesh-ports", daemon->options.mesh_ports,
        (uint32_t)daemon->options.slots, &daemon->mesh_ports, error));
    CADRE_TRY(find_user(daemon, error));
    CADRE_TRY(open_state(daemon, error));
    CADRE_TRY(isolate_open(daemon, error));
    job_storage_use_host_credentials(daemon->options.host_credentials);
    if (!daemon->options.keep_tasks) {
        CADRE_TRY(clear_previous_incarnation(daemon, error));
    }
    CADRE_TRY(cache_open(daemon, error));
    CADRE_TRY(object_cache_open(&daemon->objects, daemon->options.state_dir,
        daemon->options.object_cache_limit_bytes, daemon->options.keep_tasks, error));
    CADRE_TRY(gpus_open(daemon, error)); /* before there are threads, and children of the agent */
    CADRE_TRY(rpc_loop_open(&daemon->loop, error));
    daemon->file_pool.loop = daemon->loop;
    daemon->store_pool.loop = daemon->loop;
    CADRE_TRY(file_work_pool_start(&daemon->store_pool, STORE_THREADS, error));
    start_handles(daemon);
    CADRE_TRY(open_tls(daemon, error));
    struct rpc_channel_options options = {.send_queue_bytes_max = (size_t)4 * LIMIT_FRAME_BYTES,
        .keepalive = {.idle_us = RPC_KEEPALIVE_HEARTBEATS_IDLE_US},
        .tls = daemon->tls};
    CADRE_TRY(rpc_endpoints_open(
        daemon->loop, daemon->options.coordinator, &options, &daemon->endpoints, error));
    daemon->channel = rpc_endpoints_channel(daemon->endpoints);
    CADRE_TRY(silence_open(daemon, error));
    CADRE_TRY(metrics_open(daemon, error));
    CADRE_TRY(cache_check_open(daemon, error));
    CADRE_TRY(open_agent(daemon, error));
    CADRE_TRY(usage_report_open(daemon, error));
    CADRE_TRY(term_load(daemon, error));
    if (daemon->options.keep_tasks) {
        take_over(daemon); /* last, so that a start that fails leaves them to their keepers */
    }
    return CADRE_OK;
}

static void on_agent_closed(void *user)
{
    struct daemon *daemon = user;
    daemon->agent = NULL;
    daemon->agent_closed = true;
}

/* What ends in one pool may begin in the other. */
static void wait_for_threads(struct daemon *daemon)
{
    while (daemon->file_pool.count + daemon->store_pool.count > 0) {
        file_work_pool_wait(&daemon->file_pool);
        file_work_pool_wait(&daemon->store_pool);
    }
    file_work_pool_close(&daemon->store_pool);
}

static void close_loop(struct daemon *daemon)
{
    metrics_close(daemon);
    daemon->closes = true;
    daemon->join = NULL; /* its end has no effect any more */
    daemon->linked = false;
    uv_timer_stop(&daemon->reconnect_timer);
    uv_timer_stop(&daemon->drain);
    agent_close(daemon->agent, on_agent_closed, daemon); /* kills tasks, then forgets each */
    tasks_free_all(daemon);
    silence_close(daemon);
    rpc_endpoints_close(daemon->endpoints);
    (void)rpc_loop_run_until(daemon->loop, &daemon->agent_closed, CADRE_TIME_NEVER);
    wait_for_threads(daemon);
    cache_check_close(daemon);
    uv_close((uv_handle_t *)&daemon->object_timer, NULL);
    uv_close((uv_handle_t *)&daemon->reconnect_timer, NULL);
    uv_close((uv_handle_t *)&daemon->drain, NULL);
    retry_close(daemon);
    fetch_report_close(daemon);
    log_pause_close(daemon);
    usage_report_close(daemon);
    uv_close((uv_handle_t *)&daemon->sigterm, NULL);
    uv_close((uv_handle_t *)&daemon->sigint, NULL);
    notifier_close(&daemon->notifier);
    uv_close((uv_handle_t *)&daemon->sigusr1, NULL);
    uv_close((uv_handle_t *)&daemon->sighup, NULL);
    rpc_tls_close(daemon->tls);
    signal(SIGTERM, SIG_IGN); /* the daemon exits by itself now */
    signal(SIGINT, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    rpc_loop_close(daemon->loop);
}

static void close_daemon(struct daemon *daemon)
{
    if (daemon->loop != NULL) {
        close_loop(daemon);
    }
    usage_report_free(daemon->usage_report);
    silence_free(daemon->silence);
    isolation_close(daemon->isolation);
    slot_gpus_close(daemon->gpus);
    free(daemon->blob_dir);
    object_cache_close(&daemon->objects);
    free(daemon->task_dir);
    wire_arena_free(daemon->arena);
    wire_buffer_free(&daemon->packed);
    if (daemon->lock_fd >= 0) {
        close(daemon->lock_fd);
    }
    if (daemon->ready_file_written) {
        unlink(daemon->options.ready_file);
    }
}

/* For `systemctl status`. */
static void write_status(void *user, char *ret_text, size_t size)
{
    const struct daemon *daemon = user;
    const char *coordinator = daemon->options.coordinator;
    unsigned tasks = agent_task_count(daemon->agent);
    const char *plural = tasks == 1 ? "" : "s";
    if (daemon->linked) {
        snprintf(ret_text, size, "joined %s; %u task%s", rpc_endpoints_address(daemon->endpoints),
            tasks, plural);
    } else {
        snprintf(ret_text, size, "no coordinator at %s%s%s; %u task%s", coordinator,
            daemon->refusal[0] != '\0' ? ": " : "", daemon->refusal, tasks, plural);
    }
}

static int run_daemon(void *user)
{
    struct daemon *daemon = user;
    struct cadre_error error = {0};
    if (open_daemon(daemon, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_ERROR, "daemon", "cannot start", LOG_STR("reason", error.text));
        close_daemon(daemon);
        return 1;
    }
    log_event(LOG_LEVEL_INFO, "daemon", "ready", LOG_STR("version", CADRE_VERSION),
        LOG_STR("state", daemon->options.state_dir), LOG_U64("slots", daemon->options.slots));
    notifier_open(&daemon->notifier, rpc_loop_uv(daemon->loop), write_status, daemon);
    link_start(daemon, &worker_link_callbacks);
    rpc_loop_run(daemon->loop);
    close_daemon(daemon);
    log_event(LOG_LEVEL_INFO, "daemon", "stopped", LOG_END);
    return 0;
}

int main(int argc, char **argv)
{
    struct daemon daemon = {.lock_fd = -1};
    log_set_journal(journal_send);
    return daemon_main(&worker_option_table, argc, argv, &daemon.options, &daemon.options.log,
        run_daemon, &daemon);
}
