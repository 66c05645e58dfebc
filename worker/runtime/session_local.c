/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's core inside the program: a cluster of one worker with one slot and one job of
 * one task. Virtual time stands still, so no lease runs out; records go nowhere, since the ledger
 * of such a run dies with its only process. */
#include "worker/runtime/session.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pure/assert.h"
#include "coordinator/core/core.h"

#define ANSWERS_MAX 16

struct session_local {
    struct session base;
    void *memory;
    struct core *core;
    struct core_action *items; /* [CORE_ACTIONS_PER_STEP_MAX] */
    struct job_id job;
    struct task_ref task;
    bool placed;
    struct task_down answers[ANSWERS_MAX]; /* a ring of what the core wants the task to hear */
    size_t first;
    size_t count;
    struct roster_entry roster[1]; /* of the plan in the answers */
    char mesh_address[LIMIT_ADDRESS_BYTES];
    char text[LIMIT_TEXT_BYTES];
};

static struct session_local *local_of(struct session *session)
{
    return (struct session_local *)session;
}

static struct task_down *answer(struct session_local *local, enum task_down_type type)
{
    CADRE_ASSERT(local->count < ANSWERS_MAX);
    struct task_down *down = &local->answers[(local->first + local->count++) % ANSWERS_MAX];
    *down = (struct task_down){.type = type};
    return down;
}

static void answer_plan(struct session_local *local, const struct core_job_view *job)
{
    struct core_task_view task;
    core_job_task(local->core, local->job, 0, &task);
    memcpy(local->mesh_address, task.mesh_address, sizeof local->mesh_address);
    local->roster[0] = (struct roster_entry){
        .slot = 0,
        .incarnation = task.incarnation,
        .replicas = task.replicas,
        .mesh_address = local->mesh_address,
    };
    struct task_down *down = answer(local, TASK_DOWN_PLAN);
    down->generation = job->generation;
    down->plan = (struct task_plan){
        .generation = job->generation,
        .roster = local->roster,
        .roster_count = 1,
        .resume = job->resume,
        .source = job->source,
        .checkpoint_at = job->checkpoint_at,
        .halt_at = job->halt_at,
        .halt_kind = job->halt_kind,
        .halt_stream = job->halt_stream,
    };
}

/* The content of what is told to the job is what the core holds now. */
static void tell(struct session_local *local, const struct core_action *action)
{
    struct core_job_view job;
    if (!core_job(local->core, local->job, &job)) {
        return;
    }
    switch (action->tell_job.tell) {
    case CORE_TELL_PLAN:
        answer_plan(local, &job);
        break;
    case CORE_TELL_RELEASE: {
        struct task_down *down = answer(local, TASK_DOWN_RELEASE);
        down->generation = job.generation;
        down->release = (struct task_release){
            .generation = job.generation,
            .up_to = job.released,
            .checkpoint_at = job.checkpoint_at,
            .halt_at = job.halt_at,
            .halt_kind = job.halt_kind,
            .halt_stream = job.halt_stream,
            .published = job.has_checkpoint ? job.checkpoint.position : POSITION_NONE,
        };
        break;
    }
    case CORE_TELL_ABORT: {
        struct task_down *down = answer(local, TASK_DOWN_ABORT);
        down->generation = action->tell_job.generation;
        memcpy(local->text, action->tell_job.reason, sizeof local->text);
        down->reason = local->text;
        break;
    }
    case CORE_TELL_BYE:
        answer(local, TASK_DOWN_BYE)->generation = action->tell_job.generation;
        break;
    }
}

static void carry_out(struct session_local *local, const struct core_action *action)
{
    switch (action->type) {
    case CORE_ACTION_ANSWER:
        local->job = action->answer.job;
        break;
    case CORE_ACTION_START_JOB:
        local->job = action->job;
        local->placed = true;
        break;
    case CORE_ACTION_TELL_JOB:
        tell(local, action);
        break;
    case CORE_ACTION_TELL_TASK: {
        struct task_down *down = answer(local, action->tell_task.type);
        memcpy(local->text, action->tell_task.text, sizeof local->text);
        down->refused = (struct task_refused){.code = action->tell_task.code, .text = local->text};
        break;
    }
    case CORE_ACTION_START_AGAIN:
    case CORE_ACTION_RECORD:
    case CORE_ACTION_WELCOME:
    case CORE_ACTION_REFUSE:
    case CORE_ACTION_STOP_JOB:
    case CORE_ACTION_STOP_TASK:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
        break; /* nobody else is there */
    }
}

static void step(struct session_local *local, const struct core_event *event)
{
    struct core_actions out = {.items = local->items, .capacity = CORE_ACTIONS_PER_STEP_MAX};
    core_step(local->core, event, &out);
    for (size_t i = 0; i < out.count; i++) {
        carry_out(local, &out.items[i]);
    }
}

static void say(struct session_local *local, const struct agent_up *up)
{
    step(
        local, &(struct core_event){.type = CORE_EVENT_AGENT_UP, .agent = {.link = {1}, .up = up}});
}

static cadre_status local_start(
    struct session *session, const struct session_events *events, struct cadre_error *error)
{
    (void)session;
    (void)events;
    (void)error;
    return CADRE_OK;
}

static void local_send(struct session *session, const struct task_up *up)
{
    struct session_local *local = local_of(session);
    struct agent_up said;
    if (up->type == TASK_UP_ARRIVE) {
        said = (struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = local->job,
                .generation = up->arrive.generation,
                .tasks = 1,
                .up_to = up->arrive.up_to,
                .applied = up->arrive.applied,
                .wanted = up->arrive.wanted,
                .wanted_slot = local->task.slot,
                .cursor = up->arrive.cursor,
                .feed = up->arrive.feed}};
    } else {
        said = (struct agent_up){.type = AGENT_UP_SAID, .said = {.task = local->task, .up = *up}};
    }
    say(local, &said);
}

static bool local_take(struct session *session, struct task_down *ret_down)
{
    struct session_local *local = local_of(session);
    if (local->count == 0) {
        return false;
    }
    *ret_down = local->answers[local->first];
    local->first = (local->first + 1) % ANSWERS_MAX;
    local->count--;
    return true;
}

static void local_close(struct session *session)
{
    if (session != NULL) {
        struct session_local *local = local_of(session);
        free(local->memory);
        free(local->items);
        free(local);
    }
}

static const struct session_ops local_ops = {
    .name = "local",
    .start = local_start,
    .send = local_send,
    .take = local_take,
    .close = local_close,
};

static cadre_status begin(struct session_local *local, uint64_t restored, struct cadre_error *error)
{
    say(local, &(struct agent_up){.type = AGENT_UP_HELLO,
                   .hello = {.protocol_version = AGENT_PROTOCOL_VERSION,
                       .library_version = CADRE_VERSION,
                       .name = "local",
                       .host = "localhost",
                       .boot_nonce = 1,
                       .slots = 1,
                       .cpus = 1}});
    step(local, &(struct core_event){.type = CORE_EVENT_SUBMIT,
                    .submit = {.call = {1},
                        .spec = {.tasks = 1, .tasks_min = 1},
                        .restores = restored > 0,
                        .checkpoint = {.position = restored}}});
    if (!local->placed) {
        return cadre_error_set(
            error, CADRE_INTERNAL, "the coordinator inside the program did not place its job");
    }
    struct core_task_view task;
    core_job_task(local->core, local->job, 0, &task);
    local->task = (struct task_ref){.job = local->job, .slot = 0, .incarnation = task.incarnation};
    say(local, &(struct agent_up){.type = AGENT_UP_TASK_STARTED,
                   .started = {.task = local->task, .pid = (uint32_t)getpid()}});
    return CADRE_OK;
}

uint64_t session_local_incarnation(const struct session *session)
{
    return ((const struct session_local *)session)->task.incarnation;
}

cadre_status session_local_open(
    uint64_t restored, struct session **ret_session, struct cadre_error *error)
{
    *ret_session = NULL;
    struct core_options options = {
        .limits = {.workers_max = 1, .jobs_max = 1, .tasks_max = 1},
        .seed = clock_wall_us() ^ ((uint64_t)getpid() << 40),
        .lease_us = CADRE_US_PER_S,
        .grace_us = CADRE_US_PER_S,
        .collect_us = CADRE_US_PER_S,
        .form_us = CADRE_US_PER_S,
        .report_us = CADRE_US_PER_S,
        .wait_us = CADRE_US_PER_S,
        .stall_us = UINT64_MAX / 2,
        .slow_factor = 1000,
        .slow_us = UINT64_MAX / 2,
    };
    struct session_local *local = calloc(1, sizeof *local);
    if (local != NULL) {
        local->base.ops = &local_ops;
        local->memory = calloc(1, core_bytes(&options.limits));
        local->items = calloc(CORE_ACTIONS_PER_STEP_MAX, sizeof *local->items);
    }
    if (local == NULL || local->memory == NULL || local->items == NULL) {
        local_close(local == NULL ? NULL : &local->base);
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for the coordinator inside the program");
    }
    local->core = core_init(local->memory, &options);
    step(local, &(struct core_event){.type = CORE_EVENT_RESTORE_DONE});
    cadre_status status = begin(local, restored, error);
    if (status != CADRE_OK) {
        local_close(&local->base);
        return status;
    }
    *ret_session = &local->base;
    return CADRE_OK;
}
