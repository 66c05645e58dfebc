/* SPDX-License-Identifier: Apache-2.0
 * Makes the messages of a turn out of the core's actions. Called by the engine's flush and by the
 * simulator; owns nothing but the lists that messages_make allocates and messages_free frees. */
#include "coordinator/engine/messages.h"

#include <string.h>

#include "common/pure/assert.h"
#include "coordinator/engine/messages_plan.h"

void messages_send(const struct sender *sender, struct link_id link, const struct agent_down *down)
{
    if (link.n != 0) {
        sender->down(sender->user, link, down);
    }
}

static struct checkpoint_ref ref_of(const struct core_checkpoint *checkpoint)
{
    struct checkpoint_ref ref = {.position = checkpoint->position,
        .shared = checkpoint->shared,
        .path = checkpoint->path,
        .manifest_bytes = checkpoint->manifest_bytes};
    memcpy(ref.manifest_sha256, checkpoint->manifest_sha256, LIMIT_SHA256_BYTES);
    return ref;
}

/* The START of each task that is STARTING, through every link; `again`: only on this one. */
static void start_job(const struct sender *sender, struct job_id job, const struct link_id *again)
{
    struct core_job_view view;
    const struct job_spec *spec = sender->spec(sender->user, job);
    if (spec == NULL || !core_job(sender->core, job, &view)) {
        return; /* it ended in the same turn */
    }
    bool restores = view.restores && view.has_checkpoint;
    for (uint32_t slot = 0; slot < view.tasks; slot++) {
        struct core_task_view task;
        core_job_task(sender->core, job, slot, &task);
        if (!task.starts || (again != NULL && task.link.n != again->n)) {
            continue;
        }
        sender->starts(sender->user, job, slot);
        bool is_ps_task = ps_job_is_set(&view.ps_job) && slot > 0;
        struct agent_down down = {.type = AGENT_DOWN_START,
            .start = {.task = {.job = job, .slot = slot, .incarnation = task.incarnation},
                .task_count = view.tasks,
                .spec = *spec,
                .restores = restores && !is_ps_task,
                .predecessor = task.predecessor}};
        if (down.start.restores) {
            down.start.checkpoint = ref_of(&view.checkpoint);
        }
        messages_send(sender, task.link, &down);
    }
}

static void stop_job(const struct sender *sender, struct job_id job)
{
    struct core_job_view view;
    if (!core_job(sender->core, job, &view)) {
        return;
    }
    struct agent_down down = {
        .type = AGENT_DOWN_STOP, .stop = {.job = job, .grace_us = sender->grace_us}};
    for (uint32_t i = 0; i < view.workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(sender->core, job, i, &worker, &link, &members);
        messages_send(sender, link, &down);
    }
}

static struct task_release release_of(const struct core_job_view *view)
{
    return (struct task_release){.generation = view->generation,
        .up_to = view->released,
        .checkpoint_at = view->checkpoint_at,
        .halt_at = view->halt_at,
        .halt_kind = view->halt_kind,
        .halt_stream = view->halt_stream,
        .published = view->published};
}

bool messages_fan_out_job(const struct core_action *action)
{
    return action->type == CORE_ACTION_NOTIFY_JOB &&
           action->notify_job.message < CORE_MESSAGE_MEMBERS;
}

cadre_status messages_make(const struct sender *sender, const struct core_action *action,
    struct fanout *ret_fanout, struct cadre_error *error)
{
    CADRE_ASSERT(messages_fan_out_job(action));
    struct core_job_view view;
    enum core_message message = action->notify_job.message;
    *ret_fanout = (struct fanout){.down = {.type = AGENT_DOWN_RELAY}};
    if (!core_job(sender->core, action->notify_job.job, &view) ||
        ((message == CORE_MESSAGE_PLAN || message == CORE_MESSAGE_RELEASE) &&
            !generation_equal(view.generation, action->notify_job.generation))) {
        ret_fanout->outdated = true;
        return CADRE_OK;
    }
    struct task_down *body = &ret_fanout->down.relay_down.down;
    ret_fanout->down.relay_down.job = view.job;
    body->generation = action->notify_job.generation;
    if (message == CORE_MESSAGE_PLAN) {
        body->type = TASK_DOWN_PLAN;
        if (!messages_plan_make(sender, &view, ret_fanout)) {
            messages_free(ret_fanout);
            return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                "no memory for the plan of job %llu", (unsigned long long)view.job.n);
        }
    } else if (message == CORE_MESSAGE_RELEASE) {
        body->type = TASK_DOWN_RELEASE;
        body->release = release_of(&view);
    } else if (message == CORE_MESSAGE_ABORT) {
        body->type = TASK_DOWN_ABORT;
        body->reason = action->notify_job.reason;
    } else {
        body->type = TASK_DOWN_GOODBYE;
    }
    return CADRE_OK;
}

void messages_free(struct fanout *fanout)
{
    messages_plan_free(fanout);
}

static void send_members_down(
    const struct sender *sender, const struct core_job_view *view, const struct agent_down *down)
{
    for (uint32_t i = 0; i < view->workers; i++) {
        struct worker_id worker;
        struct link_id link;
        uint32_t members;
        core_job_worker(sender->core, view->job, i, &worker, &link, &members);
        if (members > 0) {
            messages_send(sender, link, down);
        }
    }
}

static void send_to_one(
    const struct sender *sender, const struct core_action *action, struct agent_down *down)
{
    struct core_task_view task;
    core_job_task(sender->core, action->notify_job.job, action->notify_job.slot, &task);
    down->relay_down.one = true;
    down->relay_down.task = (struct task_ref){
        .job = action->notify_job.job, .slot = task.slot, .incarnation = task.incarnation};
    messages_send(sender, action->notify_job.link, down);
}

void messages_fan_out(
    const struct sender *sender, const struct core_action *action, struct fanout *fanout)
{
    struct core_job_view view;
    bool one = action->notify_job.one;
    if (fanout->split != NULL) {
        bool known = core_job(sender->core, action->notify_job.job, &view);
        CADRE_ASSERT(known);
        messages_plan_fan_out(sender, &view, fanout, one ? action : NULL);
    } else if (one) {
        send_to_one(sender, action, &fanout->down);
    } else if (core_job(sender->core, action->notify_job.job, &view)) {
        send_members_down(sender, &view, &fanout->down);
    }
}

static cadre_status notify_job(
    const struct sender *sender, const struct core_action *action, struct cadre_error *error)
{
    struct fanout fanout;
    if (!messages_fan_out_job(action)) {
        return messages_send_ps_job(sender, action, error);
    }
    CADRE_TRY(messages_make(sender, action, &fanout, error));
    if (!fanout.outdated) {
        messages_fan_out(sender, action, &fanout);
    }
    messages_free(&fanout);
    return CADRE_OK;
}

/* The positions of the job's streams, for a joiner. */
static size_t fill_streams(const struct sender *sender, struct job_id job,
    struct stream_position ret_streams[LIMIT_STREAMS])
{
    uint32_t count = 0;
    while (
        count < LIMIT_STREAMS && core_job_stream(sender->core, job, count, &ret_streams[count])) {
        count++;
    }
    return count;
}

static void notify_task(const struct sender *sender, const struct core_action *action)
{
    struct stream_position streams[LIMIT_STREAMS];
    struct agent_down down = {.type = AGENT_DOWN_RELAY,
        .relay_down = {.job = action->notify_task.task.job,
            .one = true,
            .task = action->notify_task.task,
            .down = {.type = action->notify_task.type}}};
    struct task_down *body = &down.relay_down.down;
    if (body->type == TASK_DOWN_REFUSED) {
        body->refused = (struct task_refused){action->notify_task.code, action->notify_task.text};
    } else if (body->type == TASK_DOWN_WARM) {
        struct core_job_view view;
        if (!core_job(sender->core, action->notify_task.task.job, &view)) {
            return; /* it ended in the same turn */
        }
        body->warm = (struct task_warm){.streams = streams,
            .stream_count = fill_streams(sender, view.job, streams),
            .tasks = view.roster};
    }
    messages_send(sender, action->notify_task.link, &down);
}

/* To one worker, or (0) to all that are connected. */
static void engine_messages_forget(
    const struct sender *sender, struct job_id job, struct link_id link)
{
    struct agent_down down = {.type = AGENT_DOWN_FORGET, .forget = job};
    struct core_worker_view worker;
    if (link.n != 0) {
        messages_send(sender, link, &down);
        return;
    }
    uint32_t cursor = 0;
    while (core_worker_next(sender->core, &cursor, &worker)) {
        messages_send(sender, worker.link, &down);
    }
}

cadre_status messages_dispatch(
    const struct sender *sender, const struct core_action *action, struct cadre_error *error)
{
    switch (action->type) {
    case CORE_ACTION_WELCOME:
        messages_send(sender, action->welcome.link,
            &(struct agent_down){.type = AGENT_DOWN_WELCOME,
                .welcome = {.worker = action->welcome.worker,
                    .protocol_version = action->welcome.protocol,
                    .lease_us = sender->lease_us,
                    .term = sender->term}});
        break;
    case CORE_ACTION_START_JOB:
        start_job(sender, action->job, NULL);
        break;
    case CORE_ACTION_START_TASKS:
        start_job(sender, action->start_tasks.job, &action->start_tasks.link);
        break;
    case CORE_ACTION_STOP_JOB:
        stop_job(sender, action->job);
        break;
    case CORE_ACTION_STOP_TASK:
        messages_send(sender, action->stop_task.link,
            &(struct agent_down){.type = AGENT_DOWN_STOP,
                .stop = {.job = action->stop_task.task.job,
                    .one = true,
                    .task = action->stop_task.task,
                    .grace_us = sender->grace_us}});
        break;
    case CORE_ACTION_NOTIFY_JOB:
        return notify_job(sender, action, error);
    case CORE_ACTION_NOTIFY_TASK:
        notify_task(sender, action);
        break;
    case CORE_ACTION_FORGET_JOB:
        engine_messages_forget(sender, action->forget_job.job, action->forget_job.link);
        break;
    case CORE_ACTION_ANSWER:
    case CORE_ACTION_REFUSE:
    case CORE_ACTION_JOB_CHANGED:
    case CORE_ACTION_JOB_ENDED:
    case CORE_ACTION_RECORD:
        break;
    }
    return CADRE_OK;
}
