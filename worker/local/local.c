/* SPDX-License-Identifier: Apache-2.0
 * The embedded cluster: messages between engine and agent go through a queue as packed bytes,
 * exactly what a stream would carry, so that neither ever calls into the other from inside itself.
 */
#include "worker/local/local.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include <openssl/rand.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "common/wire/wire.h"
#include "coordinator/engine/engine.h"
#include "worker/agent/agent.h"
#include "worker/local/folders.h"
#include "worker/local/program_path.h"

#define LINK ((struct link_id){1})

struct packed_down {
    struct packed_down *next;
    struct wire_buffer bytes;
};

struct local {
    const struct local_options *options;
    struct local_watch watch;
    void *watch_user;
    uv_loop_t loop;
    uv_prepare_t turn;
    uv_timer_t tick;
    uv_signal_t signals[3];
    struct engine *engine;
    struct agent *agent;
    struct wire_arena *arena;
    struct packed_down *downs;
    struct packed_down **downs_tail;
    char *program; /* absolute */
    struct local_folders folders;
    struct job_id job;
    unsigned interrupts;
    bool ended;
    int exit_code;
    char message[LIMIT_TEXT_BYTES];
    bool broken;
    struct cadre_error error;
};

static void end_with(struct local *local, const struct cadre_error *error)
{
    if (!local->broken) {
        local->broken = true;
        local->error = *error;
    }
    local->ended = true;
}

/* ---- the engine's sink ---- */

static void sink_down(void *user, struct link_id link, const struct agent_down *down)
{
    (void)link;
    struct local *local = user;
    struct cadre_error error = {0};
    struct packed_down *packed = calloc(1, sizeof *packed);
    if (packed == NULL) {
        cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a message to the tasks");
        end_with(local, &error);
        return;
    }
    if (wire_pack_agent_down(down, &packed->bytes, &error) != CADRE_OK) {
        wire_buffer_free(&packed->bytes);
        free(packed);
        end_with(local, &error);
        return;
    }
    *local->downs_tail = packed;
    local->downs_tail = &packed->next;
}

static void sink_refuse(void *user, struct link_id link, cadre_status code, const char *text)
{
    (void)link;
    struct cadre_error error;
    cadre_error_set(&error, code, "%s", text);
    end_with(user, &error);
}

static void sink_answer(void *user, struct call_id call, cadre_status code, struct job_id job,
    uint32_t queued_before, const char *text)
{
    (void)queued_before;
    struct local *local = user;
    if (call.n != 1) {
        return; /* the cancel of an interrupt: the job's end tells */
    }
    if (code != CADRE_OK) {
        struct cadre_error error;
        cadre_error_set(&error, code, "%s", text);
        end_with(local, &error);
        return;
    }
    local->job = job;
}

static void sink_job_changed(void *user, struct job_id job)
{
    struct local *local = user;
    struct job_info info;
    if (!engine_job_info(local->engine, job, &info)) {
        return;
    }
    local->watch.changed(local->watch_user, &info);
    if (job_state_is_final(info.state)) {
        local->ended = true;
        local->exit_code = info.exit_code;
        snprintf(local->message, sizeof local->message, "%s", info.message);
    }
}

static void sink_job_forgotten(void *user, struct job_id job)
{
    (void)user;
    (void)job;
}

static const struct engine_sink sink = {.down = sink_down,
    .refuse = sink_refuse,
    .answer = sink_answer,
    .job_changed = sink_job_changed,
    .job_forgotten = sink_job_forgotten};

/* ---- the agent's front ---- */

static void front_send(void *user, const struct agent_up *up)
{
    struct local *local = user;
    engine_agent_up(local->engine, clock_monotonic_us(), LINK, up);
}

static void front_prepare(void *user, struct task_ref task, const struct job_spec *spec)
{
    (void)spec;
    struct local *local = user;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *output = NULL;
    char socket[sizeof local->folders.runtime + 32];
    snprintf(socket, sizeof socket, "%s/%u", local->folders.runtime, task.slot);
    bool own = local->folders.output != NULL;
    int length = own ? asprintf(&output, "%s/%u", local->folders.output, task.slot)
                     : asprintf(&output, "%s", local->folders.working);
    if (length < 0) {
        output = NULL;
        agent_task_failed(local->agent, task, 126, "no memory for another task");
        return;
    }
    if (own && folder_make(output, 0755, &error) != CADRE_OK) {
        agent_task_failed(local->agent, task, 126, error.text);
        return;
    }
    agent_task_prepared(local->agent, task,
        &(struct agent_launch){.program = local->program,
            .folder = local->folders.working,
            .output = output,
            .socket = socket,
            .inherit_environment = true});
}

static void front_output(
    void *user, struct task_ref task, enum agent_stream stream, const uint8_t *bytes, size_t size)
{
    struct local *local = user;
    local->watch.output(local->watch_user, task.slot, (int)stream, bytes, size);
}

static void front_collect(void *user, struct task_ref task)
{
    struct local *local = user;
    agent_task_collected(local->agent, task, CADRE_OK, "");
}

static void front_forget(void *user, struct task_ref task)
{
    (void)user;
    (void)task;
}

static void front_leave(void *user)
{
    (void)user;
}

static void front_notice(void *user, struct task_ref task, const char *text)
{
    struct local *local = user;
    char line[LIMIT_TEXT_BYTES + 16];
    int length = snprintf(line, sizeof line, "cadre: %s\n", text);
    local->watch.output(
        local->watch_user, task.slot, AGENT_STDERR, (const uint8_t *)line, (size_t)length);
}

static const struct agent_front front = {.send = front_send,
    .prepare = front_prepare,
    .output = front_output,
    .collect = front_collect,
    .forget = front_forget,
    .leave = front_leave,
    .notice = front_notice};

/* ---- turns ---- */

static void take_down(struct local *local, struct packed_down *packed)
{
    struct cadre_error error = {0};
    struct agent_down down;
    wire_arena_reset(local->arena);
    if (wire_unpack_agent_down(
            packed->bytes.bytes, packed->bytes.size, local->arena, &down, &error) != CADRE_OK) {
        end_with(local, &error);
    } else {
        agent_down(local->agent, &down);
    }
    wire_buffer_free(&packed->bytes);
    free(packed);
}

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

/* Commits and delivers until nothing is left to say. */
static void settle(struct local *local)
{
    struct cadre_error error = {0};
    do {
        struct packed_down *packed = local->downs;
        if (packed != NULL) {
            local->downs = packed->next;
            if (local->downs == NULL) {
                local->downs_tail = &local->downs;
            }
            take_down(local, packed);
        }
        if (engine_flush(local->engine, clock_monotonic_us(), &error) != CADRE_OK) {
            end_with(local, &error);
            return;
        }
    } while (local->downs != NULL);
    arm_tick(local);
}

static void on_turn(uv_prepare_t *turn)
{
    struct local *local = turn->data;
    settle(local);
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
    end_with(local, &error);
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
            .form_us = 60 * CADRE_US_PER_S},
        .keep_jobs = 1};
    cadre_status status = CADRE_OK;
    if (RAND_bytes((unsigned char *)&options.core.seed, sizeof options.core.seed) != 1) {
        status = cadre_error_set(error, CADRE_UNAVAILABLE, "the system gives no random bytes");
    }
    if (status == CADRE_OK) {
        status =
            engine_open(&options, store, &sink, local, clock_monotonic_us(), &local->engine, error);
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
            .cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN)},
        .mesh_host = "127.0.0.1"};
    return agent_open(&setup, &local->loop, &front, local, &local->agent, error);
}

/* One that the caller ignores stays ignored, as under nohup. */
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

static cadre_status submit(struct local *local, struct cadre_error *error)
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
        .replicas = options->replicas,
        .strategy = ""};
    agent_link_up(local->agent);
    engine_submit(local->engine, clock_monotonic_us(), (struct call_id){1}, &spec);
    return CADRE_OK;
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

static void release(struct local *local)
{
    engine_close(local->engine);
    while (local->downs != NULL) {
        struct packed_down *next = local->downs->next;
        wire_buffer_free(&local->downs->bytes);
        free(local->downs);
        local->downs = next;
    }
    wire_arena_free(local->arena);
    free(local->program);
    local_folders_close(&local->folders);
}

static cadre_status run(struct local *local, struct cadre_error *error)
{
    uint32_t tasks = local->options->tasks;
    if (tasks < 1 || tasks > LIMIT_SLOTS_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "one host runs 1 to %d tasks at once, not %u", LIMIT_SLOTS_PER_WORKER, tasks);
    }
    local->arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    if (local->arena == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory to run %s", local->options->program);
    }
    CADRE_TRY(program_path(local->options->program, &local->program, error));
    CADRE_TRY(local_folders_open(&local->folders, local->options->output, error));
    if (uv_loop_init(&local->loop) != 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no descriptors for an event loop");
    }
    start_handles(local);
    cadre_status status = open_engine(local, error);
    if (status == CADRE_OK) {
        status = open_agent(local, error);
    }
    if (status == CADRE_OK) {
        status = submit(local, error);
    }
    if (status == CADRE_OK) {
        uv_run(&local->loop, UV_RUN_DEFAULT);
    } else {
        uv_prepare_stop(&local->turn);
    }
    close_handles(local);
    return status;
}

cadre_status local_run(const struct local_options *options, const struct local_watch *watch,
    void *user, int *ret_exit_code, char ret_message[LIMIT_TEXT_BYTES], struct cadre_error *error)
{
    struct local local = {.options = options, .watch = *watch, .watch_user = user};
    local.downs_tail = &local.downs;
    cadre_status status = run(&local, error);
    if (status == CADRE_OK && local.broken) {
        *error = local.error;
        status = local.error.code;
    }
    if (status == CADRE_OK) {
        *ret_exit_code = local.exit_code;
        memcpy(ret_message, local.message, LIMIT_TEXT_BYTES);
    }
    release(&local);
    return status;
}
