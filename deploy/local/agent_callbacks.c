/* SPDX-License-Identifier: Apache-2.0
 * The callbacks of the embedded agent: tasks run in the caller's folder, and their files stay where
 * they are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/checkpoint/choose.h"
#include "worker/host/agent/agent.h"
#include "deploy/local/local_state.h"

/* The task gets the answer that lets it drop them. Without memory for that it sends them again. */
static void answer_values(struct local *local, const struct agent_relay_up *relay_up)
{
    const struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = relay_up->task.job,
            .one = true,
            .task = relay_up->task,
            .down = {.type = TASK_DOWN_VALUES_KEPT, .values_kept = relay_up->up.values.end}}};
    struct cadre_error error;
    (void)local_queue_down(local, &down, &error);
}

static void take_values(struct local *local, const struct agent_relay_up *relay_up)
{
    size_t count = 0;
    bool taken = true;
    if (local->watch.values != NULL) {
        CADRE_FREE_AT_EXIT struct verify_generation *generations = local_generations(local, &count);
        taken = generations != NULL &&
                local->watch.values(local->watch_user,
                    engine_task_role(local->engine, relay_up->task) == ROLE_EVALUATOR,
                    &relay_up->up.values, generations, count);
    }
    if (taken) {
        answer_values(local, relay_up);
    }
}

/* A task that comes while steps are traced, or were: it has the same ones. */
static void order_trace(struct local *local, const struct agent_relay_up *relay_up)
{
    const struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = relay_up->task.job,
            .one = true,
            .task = relay_up->task,
            .down = {.type = TASK_DOWN_TRACE,
                .trace = {.id = 1,
                    .first = local->options->trace_first,
                    .end = local->options->trace_end,
                    .limit_us = LIMIT_TRACE_TIME_US,
                    .own_numbers = relay_up->up.hello.plain}}}};
    struct cadre_error error;
    (void)local_queue_down(local, &down, &error); /* without memory it is not in the trace */
}

static void take_spans(struct local *local, const struct agent_relay_up *relay_up)
{
    struct job_info info;
    uint32_t slot = relay_up->task.slot;
    if (local->watch.spans != NULL && engine_job_info(local->engine, local->job, &info) &&
        slot < info.task_count) {
        local->watch.spans(
            local->watch_user, relay_up->task, info.tasks[slot].pid, &relay_up->up.spans);
    }
}

static void on_agent_send(void *user, const struct agent_up *up)
{
    struct local *local = user;
    struct agent_up gone;
    if (up->type == AGENT_UP_RELAY && up->relay_up.up.type == TASK_UP_SPANS) {
        take_spans(local, &up->relay_up);
        return;
    }
    if (up->type == AGENT_UP_RELAY && up->relay_up.up.type == TASK_UP_VALUES) {
        take_values(local, &up->relay_up);
        return;
    }
    if (up->type == AGENT_UP_TASK_GONE && local->damaged_step > 0 &&
        task_ref_equal(up->gone.task, local->damaged_task)) {
        gone = *up;
        gone.gone.damaged_step = local->damaged_step;
        up = &gone;
    }
    engine_agent_up(local->engine, clock_monotonic_us(), LOCAL_LINK, up);
    if (local->options->trace_end > 0 && up->type == AGENT_UP_RELAY &&
        up->relay_up.up.type == TASK_UP_HELLO) {
        order_trace(local, &up->relay_up);
    }
}

/* The folder for the files of a task; the caller frees it. NULL: no memory. */
static char *output_of(const struct local *local, uint32_t slot)
{
    char *output = NULL;
    int length = local->folders.output != NULL
                     ? asprintf(&output, "%s/%" PRIu32, local->folders.output, slot)
                     : asprintf(&output, "%s", local->folders.working);
    return length >= 0 ? output : NULL;
}

#define SOCKET_BYTES (sizeof(((struct local_folders *)NULL)->runtime) + 32)

static void socket_of(const struct local *local, struct task_ref task, char ret_path[SOCKET_BYTES])
{
    snprintf(ret_path, SOCKET_BYTES, "%s/%" PRIu32 ".%" PRIu64, local->folders.runtime, task.slot,
        task.incarnation);
}

/* Checks a checkpoint of this job, for the first task only. Errors other than damage are reported
 * by the task when it reads it. */
static cadre_status look_at(struct local *local, const struct agent_start *start, const char *path,
    struct cadre_error *error)
{
    const uint8_t *sha256 = start->checkpoint.manifest_sha256;
    struct checkpoint_counts counts = {0};
    if (start->task.slot != 0 || memcmp(sha256, local->named, sizeof local->named) == 0 ||
        checkpoint_check(NULL, path, sha256, &counts, error) != CADRE_DATA_LOSS) {
        return CADRE_OK;
    }
    local->damaged_task = start->task;
    local->damaged_step = start->checkpoint.position;
    return CADRE_DATA_LOSS;
}

static cadre_status agent_callbacks_prepare(
    struct local *local, const struct agent_start *start, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *output = output_of(local, start->task.slot);
    CADRE_FREE_AT_EXIT char *restore = NULL;
    char socket[SOCKET_BYTES];
    int listener = -1;
    if (output == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for another task");
    }
    socket_of(local, start->task, socket);
    if (local->folders.output != NULL) {
        CADRE_TRY(folder_make_durable(output, 0755, error));
    }
    if (start->restores) {
        CADRE_TRY(local_checkpoints_find(&local->checkpoints, &start->checkpoint, &restore, error));
        CADRE_TRY(look_at(local, start, restore, error));
    }
    CADRE_TRY(
        executable_check(local->folders.working, local->program, start->spec.program.name, error));
    CADRE_TRY(listener_make(socket, &(struct task_confinement){0}, &listener, error));
    agent_task_prepared(local->agent, start->task,
        &(struct agent_launch){.program = local->program,
            .folder = local->folders.working,
            .output = output,
            .socket = socket,
            .listener = listener,
            .restore = restore,
            .inherit_environment = true});
    return CADRE_OK;
}

static void on_agent_prepare(void *user, const struct agent_start *start)
{
    struct local *local = user;
    struct cadre_error error = {0};
    if (agent_callbacks_prepare(local, start, &error) != CADRE_OK) {
        agent_task_failed(local->agent, start->task, 126, &error);
    }
}

/* The checkpoint is on this machine already; its path is recorded for tasks that go on from it. */
static void on_agent_publish(void *user, struct task_ref task, const struct task_part *part)
{
    struct local *local = user;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *output = output_of(local, task.slot);
    cadre_status status =
        output != NULL
            ? local_checkpoints_add(&local->checkpoints, part->sha256, output, part->path, &error)
            : cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "no memory for a checkpoint");
    agent_task_published(local->agent, task, status, error.text);
}

static void on_agent_output(
    void *user, struct task_ref task, enum agent_stream stream, const uint8_t *bytes, size_t size)
{
    struct local *local = user;
    local->watch.output(local->watch_user, task.slot, (int)stream, bytes, size);
}

static void on_agent_collect(void *user, struct task_ref task)
{
    struct local *local = user;
    agent_task_collected(local->agent, task, CADRE_OK, "");
}

static void on_agent_forget(void *user, struct task_ref task)
{
    char socket[SOCKET_BYTES];
    socket_of(user, task, socket);
    (void)unlink(socket);
}

static void on_agent_drained(void *user)
{
    (void)user;
}

static void on_agent_notice(void *user, struct task_ref task, const char *text)
{
    struct local *local = user;
    char text_line[LIMIT_TEXT_BYTES + 16];
    int length = snprintf(text_line, sizeof text_line, "cadre: %s\n", text);
    local->watch.output(
        local->watch_user, task.slot, AGENT_STDERR, (const uint8_t *)text_line, (size_t)length);
}

const struct agent_callbacks local_agent_callbacks = {.send = on_agent_send,
    .prepare = on_agent_prepare,
    .output = on_agent_output,
    .publish = on_agent_publish,
    .collect = on_agent_collect,
    .forget = on_agent_forget,
    .drained = on_agent_drained,
    .notice = on_agent_notice};
