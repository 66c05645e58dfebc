/* SPDX-License-Identifier: Apache-2.0
 * The embedded cluster of `cadre run` from its opening to its end: one loop with the engine and the
 * agent. deploy/cadre/run.c calls it. */
#include "deploy/local/local.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <openssl/rand.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/checkpoint/choose.h"
#include "common/pure/assert.h"
#include "deploy/local/folders.h"
#include "deploy/local/local_state.h"
#include "worker/host/probe/slot_gpus.h"

/* After a loss, the others have so long to end the current step and report their position. */
#define REPORT_US (10 * CADRE_US_PER_S)
/* A replacement starts at once: this limits the time until its first step. */
#define WAIT_US     (600 * CADRE_US_PER_S)
#define STALL_US    (600 * CADRE_US_PER_S)
#define SLOW_US     (10 * CADRE_US_PER_S)
#define SLOW_FACTOR 10

void local_break(struct local *local, const struct cadre_error *error)
{
    if (!local->broken) {
        local->broken = true;
        local->error = *error;
    }
    local->ended = true;
}

/* ---- turns ---- */

static void on_tick(uv_timer_t *timer)
{
    struct local *local = timer->data;
    engine_tick(local->engine, clock_monotonic_us());
}

static void arm_tick(struct local *local)
{
    uint64_t wake_us = engine_wake_us(local->engine);
    uint64_t now_us = clock_monotonic_us();
    if (wake_us == CADRE_TIME_NEVER) {
        uv_timer_stop(&local->tick);
    } else {
        uv_timer_start(
            &local->tick, on_tick, wake_us > now_us ? (wake_us - now_us + 999) / 1000 : 0, 0);
    }
}

/* Commits and delivers until no message is left. */
static void local_settle(struct local *local)
{
    struct cadre_error error = {0};
    do {
        (void)local_deliver(local);
        if (engine_flush(local->engine, clock_monotonic_us(), &error) != CADRE_OK) {
            local_break(local, &error);
            return;
        }
    } while (local->downs != NULL);
    arm_tick(local);
}

static void on_turn(uv_prepare_t *turn)
{
    struct local *local = turn->data;
    local_settle(local);
    if (local->ended) {
        uv_stop(&local->loop);
    }
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    struct local *local = handle->data;
    local->interrupts++;
    if (local->interrupts == 1 && local->job.n != 0) {
        engine_cancel(local->engine, clock_monotonic_us(), (struct call_id){2}, local->job);
        return;
    }
    struct cadre_error error;
    cadre_error_set(&error, CADRE_CANCELLED, "interrupted");
    local_break(local, &error);
}

/* ---- opening and closing ---- */

static cadre_status open_engine(struct local *local, struct cadre_error *error)
{
    struct store *store = NULL;
    CADRE_TRY(store_memory_open(&store, error));
    struct engine_options options = {
        .core = {.limits = {.workers_max = 1, .jobs_max = 1, .tasks_max = local->options->tasks},
            .lease_us = 3600 * CADRE_US_PER_S, /* the agent is in this process */
            .grace_us = local->options->grace_us,
            .collect_us = 60 * CADRE_US_PER_S,
            .form_us = 60 * CADRE_US_PER_S,
            .report_us = REPORT_US,
            .wait_us = WAIT_US,
            .stall_us = STALL_US,
            .slow_factor = SLOW_FACTOR,
            .slow_us = SLOW_US,
            .forgets_jobs = true},
        .keep_jobs = 1};
    cadre_status status = CADRE_OK;
    if (RAND_bytes((unsigned char *)&options.core.seed, sizeof options.core.seed) != 1) {
        status = cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
    }
    if (status == CADRE_OK) {
        status = engine_open(
            &options, store, &local_sink, local, clock_monotonic_us(), &local->engine, error);
    }
    if (status != CADRE_OK) {
        store->ops->close(store);
    }
    return status;
}

static cadre_status open_agent(struct local *local, struct cadre_error *error)
{
    struct agent_setup setup = {.core = {.slots = local->options->tasks,
                                    .heartbeat_us = 600 * CADRE_US_PER_S,
                                    .orphan_us = 3600 * CADRE_US_PER_S,
                                    .grace_us = local->options->grace_us},
        .identity = {.name = "local",
            .host = "localhost",
            .boot_nonce = 1,
            .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
            .gpus = local->gpus->reported},
        .mesh_host = "127.0.0.1",
        .mesh_ports = local->options->mesh_ports,
        .gpu_shares = local->gpus->shares};
    return agent_open(&setup, &local->loop, &local_agent_callbacks, local, &local->agent, error);
}

/* A signal that the caller ignores stays ignored, as under nohup. */
static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void start_handles(struct local *local)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    uv_prepare_init(&local->loop, &local->turn);
    uv_timer_init(&local->loop, &local->tick);
    local->turn.data = local;
    local->tick.data = local;
    uv_prepare_start(&local->turn, on_turn);
    for (size_t i = 0; i < CADRE_COUNT_OF(numbers); i++) {
        uv_signal_init(&local->loop, &local->signals[i]);
        local->signals[i].data = local;
        if (!is_ignored(numbers[i])) {
            uv_signal_start(&local->signals[i], on_signal, numbers[i]);
        }
    }
}

/* Chooses the checkpoint to go on from, once for all tasks. */
static cadre_status find_checkpoint(
    struct local *local, struct core_checkpoint *ret_checkpoint, struct cadre_error *error)
{
    const char *path = local->options->restore_path;
    struct checkpoint_choice choice = {0};
    if (!checkpoint_is_folder(path)) {
        return local_checkpoints_read(&local->checkpoints, path, ret_checkpoint, error);
    }
    CADRE_TRY(checkpoint_choose(path, &choice, error));
    if (choice.note[0] != '\0' && local->watch.warn != NULL) {
        local->watch.warn(local->watch_user, choice.note);
    }
    cadre_status status =
        local_checkpoints_read(&local->checkpoints, choice.path, ret_checkpoint, error);
    checkpoint_choice_free(&choice);
    return status;
}

/* `restored` NULL: from the start. */
static cadre_status local_submit(
    struct local *local, const struct core_checkpoint *restored, struct cadre_error *error)
{
    const struct local_options *options = local->options;
    struct stat status;
    if (stat(local->program, &status) != 0) {
        return cadre_error_errno(error, errno, "cannot start %s", options->program);
    }
    const char *name = strrchr(local->program, '/') + 1;
    struct job_spec spec = {.name = name,
        .program = {.name = name, .size_bytes = (uint64_t)status.st_size, .executable = true},
        .arguments = options->arguments,
        .argument_count = options->argument_count,
        .environment = options->environment,
        .environment_count = options->environment_count,
        .workers = options->tasks,
        .workers_min = options->tasks_min,
        .replicas = options->replicas,
        .strategy = options->strategy != NULL ? options->strategy : "",
        .ps_job = options->ps_job,
        .max_restarts = options->max_restarts,
        .terminal = options->terminal,
        .checkpoint_every = options->checkpoint_every,
        .checkpoints_kept = options->checkpoints_kept,
        .checkpoint_folder = local->checkpoints.folder != NULL ? local->checkpoints.folder : ""};
    agent_link_up(local->agent);
    if (restored != NULL) {
        memcpy(local->named, restored->manifest_sha256, sizeof local->named);
        engine_submit_restored(
            local->engine, clock_monotonic_us(), (struct call_id){1}, &spec, restored);
    } else {
        engine_submit(local->engine, clock_monotonic_us(), (struct call_id){1}, &spec);
    }
    return CADRE_OK;
}

static void give_generations(struct local *local)
{
    size_t count = 0;
    if (local->watch.generations != NULL) {
        CADRE_FREE_AT_EXIT struct verify_generation *generations = local_generations(local, &count);
        local->watch.generations(local->watch_user, generations, count);
    }
}

static void on_agent_closed(void *user)
{
    struct local *local = user;
    local->agent = NULL;
}

static void close_handles(struct local *local)
{
    if (local->agent != NULL) {
        agent_close(local->agent, on_agent_closed, local);
    }
    uv_close((uv_handle_t *)&local->turn, NULL);
    uv_close((uv_handle_t *)&local->tick, NULL);
    for (size_t i = 0; i < CADRE_COUNT_OF(local->signals); i++) {
        uv_close((uv_handle_t *)&local->signals[i], NULL);
    }
    uv_run(&local->loop, UV_RUN_DEFAULT);
    uv_loop_close(&local->loop);
}

static void local_release(struct local *local)
{
    engine_close(local->engine);
    local_drop_messages(local);
    wire_arena_free(local->arena);
    free(local->program);
    slot_gpus_close(local->gpus);
    local_folders_close(&local->folders);
    guard_close(local->guard_fd);
    local_checkpoints_close(&local->checkpoints);
}

static cadre_status run_job(struct local *local, struct cadre_error *error)
{
    uint32_t tasks = local->options->tasks;
    if (tasks < 1 || tasks > LIMIT_SLOTS_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "one host runs 1 to %d tasks at once, not %u", LIMIT_SLOTS_PER_WORKER, tasks);
    }
    const char *fault = ps_job_fault(
        &local->options->ps_job, local->options->strategy != NULL ? local->options->strategy : "");
    if (fault != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "the job %s", fault);
    }
    local->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (local->arena == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to run %s", local->options->program);
    }
    CADRE_TRY(program_path(local->options->program, &local->program, error));
    CADRE_TRY(
        local_checkpoints_open(&local->checkpoints, local->options->checkpoint_folder, error));
    /* A store may take long to answer: while there is nothing to undo yet, a signal just ends this
     * process. */
    struct core_checkpoint restored;
    bool goes_on = local->options->restore_path != NULL;
    if (goes_on) {
        CADRE_TRY(find_checkpoint(local, &restored, error));
    }
    CADRE_TRY(local_gpus_open(local, error));
    CADRE_TRY(local_folders_open(&local->folders, local->options->output, error));
    CADRE_TRY(guard_open(local->folders.runtime, &local->guard_fd, error));
    if (uv_loop_init(&local->loop) != 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no descriptors for an event loop");
    }
    start_handles(local);
    cadre_status status = open_engine(local, error);
    if (status == CADRE_OK) {
        status = open_agent(local, error);
    }
    if (status == CADRE_OK) {
        status = local_submit(local, goes_on ? &restored : NULL, error);
    }
    if (status == CADRE_OK) {
        uv_run(&local->loop, UV_RUN_DEFAULT);
        give_generations(local);
    } else {
        uv_prepare_stop(&local->turn);
    }
    close_handles(local);
    return status;
}

cadre_status local_run(const struct local_options *options, const struct local_watch *watch,
    void *user, int *ret_exit_code, char ret_message[LIMIT_TEXT_BYTES], struct cadre_error *error)
{
    struct local local = {.options = options, .watch = *watch, .watch_user = user, .guard_fd = -1};
    local.downs_tail = &local.downs;
    cadre_status status = run_job(&local, error);
    if (status == CADRE_OK && local.broken) {
        *error = local.error;
        status = local.error.code;
    }
    if (status == CADRE_OK) {
        *ret_exit_code = local.exit_code;
        memcpy(ret_message, local.message, LIMIT_TEXT_BYTES);
    }
    local_release(&local);
    return status;
}
