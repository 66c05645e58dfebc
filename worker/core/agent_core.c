/* SPDX-License-Identifier: Apache-2.0
 * The agent core's step: links, time, drain; it passes each other event to its file (start, end,
 * relay, fold). The shell in worker/host/agent and the simulator call it. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

#define NEVER UINT64_MAX

static size_t agent_core_aligned(size_t bytes)
{
    CADRE_ASSERT(bytes <= SIZE_MAX - 15);
    return (bytes + 15) / 16 * 16;
}

size_t agent_core_bytes(uint32_t slots)
{
    CADRE_ASSERT(slots >= 1 && slots <= LIMIT_SLOTS_PER_WORKER);
    size_t entries = AGENT_ENTRIES((size_t)slots);
    return agent_core_aligned(sizeof(struct agent_core)) +
           agent_core_aligned(entries * sizeof(struct agent_task)) +
           agent_core_aligned(entries * sizeof(struct agent_resend)) +
           agent_core_aligned(entries * sizeof(struct agent_group)) +
           AGENT_STREAMS((size_t)slots) * sizeof(struct agent_stream);
}

struct agent_core *agent_core_init(void *memory, const struct agent_options *options)
{
    CADRE_ASSERT(memory != NULL);
    CADRE_ASSERT(options->heartbeat_us > 0);
    memset(memory, 0, agent_core_bytes(options->slots));
    struct agent_core *core = memory;
    core->options = *options;
    core->entries = AGENT_ENTRIES(options->slots);
    core->heartbeat_us = options->heartbeat_us;
    core->heartbeat_at_us = NEVER;
    core->orphan_at_us = NEVER;
    core->drain_at_us = NEVER;
    char *next = (char *)memory + agent_core_aligned(sizeof(*core));
    core->tasks = (struct agent_task *)(void *)next;
    next += agent_core_aligned(core->entries * sizeof(*core->tasks));
    core->resend = (struct agent_resend *)(void *)next;
    next += agent_core_aligned(core->entries * sizeof(*core->resend));
    core->groups = (struct agent_group *)(void *)next;
    next += agent_core_aligned(core->entries * sizeof(*core->groups));
    core->streams = (struct agent_stream *)(void *)next;
    next += AGENT_STREAMS(options->slots) * sizeof(*core->streams);
    CADRE_ASSERT(next == (char *)memory + agent_core_bytes(options->slots));
    return core;
}

/* ---- links ---- */

static void link_up(struct agent_core *core, struct agent_actions *out)
{
    CADRE_ASSERT(!core->link_up); /* one link at a time */
    CADRE_ASSERT(!core->linked);
    CADRE_ASSERT(core->heartbeat_at_us == NEVER);
    core->link_up = true;
    struct task_ref none = {.slot = 0};
    struct agent_up *up = &agent_append(out, AGENT_ACTION_SEND, none)->up;
    up->type = AGENT_UP_HELLO;
    up->hello.draining = core->draining;
}

static void link_down(struct agent_core *core)
{
    CADRE_ASSERT(core->link_up);
    core->link_up = false;
    if (core->linked) {
        CADRE_ASSERT(core->orphan_at_us == NEVER); /* the welcome had stopped it */
        core->linked = false;
        core->orphan_at_us = core->now_us + core->options.orphan_us;
    }
    core->heartbeat_at_us = NEVER;
}

/* The reports and ends of all tasks. */
static void resend_ends(struct agent_core *core, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked);
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED) {
            agent_resend_report(core, task, out);
        }
        if (task->phase >= AGENT_TASK_GONE) {
            agent_send_failure(core, task, out);
            agent_send_gone(core, task, out);
        }
        if (task->phase == AGENT_TASK_COLLECTED) {
            agent_send_collected(core, task, out);
        }
    }
}

/* Everything that a lost link may have dropped, in the order of a task's states: the reports of a
 * job's tasks may end it, so what they have applied and consumed goes before them. */
static void resend_all(struct agent_core *core, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked);
    struct task_ref none = {.slot = 0};
    if (core->draining) {
        agent_send(core, out, AGENT_UP_DRAINING, none);
    }
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED) {
            agent_send_started(core, task, out);
            agent_resend_task(core, task, out);
        }
    }
    agent_send_streams(core, out);
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_group *group = &core->groups[i];
        group->consumed_sent = 0;
        agent_consumed_send(core, group, out);
        if (group->job.n != 0 && (group->folded || group->wanted > 0)) {
            agent_send_arrived(core, group, out);
        }
    }
    resend_ends(core, out);
}

static void agent_core_welcome(
    struct agent_core *core, const struct agent_welcome *message, struct agent_actions *out)
{
    if (!core->link_up || core->linked) {
        return;
    }
    CADRE_ASSERT(core->heartbeat_at_us == NEVER); /* it begins with a link */
    core->linked = true;
    core->orphan_at_us = NEVER;
    uint64_t third = message->lease_us / 3;
    core->heartbeat_us = core->options.heartbeat_us;
    if (third > 0 && third < core->heartbeat_us) {
        core->heartbeat_us = third;
    }
    CADRE_ASSERT(core->heartbeat_us > 0);
    core->heartbeat_at_us = core->now_us + core->heartbeat_us;
    resend_all(core, out);
}

static void on_down(
    struct agent_core *core, const struct agent_down *down, struct agent_actions *out)
{
    if (down->type == AGENT_DOWN_WELCOME) {
        agent_core_welcome(core, &down->welcome, out);
        return;
    }
    if (!core->linked) {
        return; /* no other message is allowed before the welcome */
    }
    CADRE_ASSERT(core->link_up);
    switch (down->type) {
    case AGENT_DOWN_START:
        agent_start(core, &down->start, out);
        break;
    case AGENT_DOWN_STOP:
        agent_stop(core, &down->stop, out);
        break;
    case AGENT_DOWN_RELAY:
        agent_relay_down(core, &down->relay_down, out);
        break;
    case AGENT_DOWN_FORGET:
        agent_append(out, AGENT_ACTION_FORGET_JOB, (struct task_ref){.job = down->forget});
        break;
    case AGENT_DOWN_WELCOME:
    case AGENT_DOWN_REFUSED: /* the shell ends the stream, and tries again or gives up */
    case AGENT_DOWN_LOG_ACK:
    case AGENT_DOWN_KEEPALIVE:
        break;
    }
}

/* ---- time and drain ---- */

static void agent_core_drain(struct agent_core *core, struct agent_actions *out)
{
    if (core->draining) {
        return;
    }
    CADRE_ASSERT(!core->left);
    CADRE_ASSERT(core->drain_at_us == NEVER);
    struct task_ref none = {.slot = 0};
    core->draining = true;
    core->drain_at_us = core->now_us + core->options.grace_us;
    agent_send(core, out, AGENT_UP_DRAINING, none);
}

static void on_time(struct agent_core *core, struct agent_actions *out)
{
    struct task_ref none = {.slot = 0};
    if (core->now_us >= core->heartbeat_at_us) {
        core->heartbeat_at_us = core->now_us + core->heartbeat_us;
        agent_send(core, out, AGENT_UP_HEARTBEAT, none);
    }
    if (core->now_us >= core->orphan_at_us) {
        CADRE_ASSERT(!core->linked);
        core->orphan_at_us = NEVER;
        agent_end_all(core, out);
    }
    if (core->now_us >= core->drain_at_us) {
        CADRE_ASSERT(core->draining);
        core->drain_at_us = NEVER;
        agent_end_all(core, out);
    }
    CADRE_ASSERT((core->heartbeat_at_us != NEVER) == core->linked);
    CADRE_ASSERT(core->heartbeat_at_us > core->now_us);
    CADRE_ASSERT(core->orphan_at_us > core->now_us);
    CADRE_ASSERT(core->drain_at_us > core->now_us);
    agent_kill_overdue(core, out);
    agent_publish_due(core, out);
}

/* A drained daemon waits until the coordinator has acknowledged that its tasks are collected;
 * without a coordinator, only until they have exited. */
static void exit_if_drained(struct agent_core *core, struct agent_actions *out)
{
    if (!core->draining || core->left) {
        return;
    }
    bool patient = core->linked || core->drain_at_us != NEVER;
    for (uint32_t i = 0; i < core->entries; i++) {
        enum agent_task_phase phase = core->tasks[i].phase;
        if (phase != AGENT_TASK_NONE && (patient || phase < AGENT_TASK_GONE)) {
            return;
        }
    }
    struct task_ref none = {.slot = 0};
    core->left = true;
    agent_append(out, AGENT_ACTION_EXIT, none);
}

static void task_closed(struct agent_core *core, struct task_ref ref)
{
    struct agent_task *task = agent_find(core, ref);
    if (task != NULL) {
        CADRE_ASSERT(!task->connected || task->phase <= AGENT_TASK_KILLED);
        task->connected = false;
    }
}

void agent_core_step(
    struct agent_core *core, const struct agent_event *event, struct agent_actions *out)
{
    CADRE_ASSERT(out->capacity - out->count >= AGENT_ACTIONS_PER_STEP_MAX(core->options.slots));
    CADRE_ASSERT(event->now_us >= core->now_us);
    const size_t before = out->count;
    core->now_us = event->now_us;
    switch (event->type) {
    case AGENT_EVENT_TICK:
        break;
    case AGENT_EVENT_LINK_UP:
        link_up(core, out);
        break;
    case AGENT_EVENT_LINK_DOWN:
        link_down(core);
        break;
    case AGENT_EVENT_DOWN:
        on_down(core, event->down, out);
        break;
    case AGENT_EVENT_PREPARED:
        agent_prepared(core, event->task, out);
        break;
    case AGENT_EVENT_ADOPTED:
        agent_adopted(core, &event->down->start, event->pid, event->ended, out);
        break;
    case AGENT_EVENT_SPAWNED:
        agent_spawned(core, event->task, event->pid, out);
        break;
    case AGENT_EVENT_FAILED:
        agent_failed(core, event->task, &event->exit, event->code, out);
        break;
    case AGENT_EVENT_EXITED:
        agent_gone(core, event->task, &event->exit, out);
        break;
    case AGENT_EVENT_COLLECTED:
        agent_collected(core, event->task, event->code, event->text, out);
        break;
    case AGENT_EVENT_PUBLISHED:
        agent_published(core, event->task, event->code, out);
        break;
    case AGENT_EVENT_TASK_UP:
        agent_on_task_up(core, event->task, event->up, out);
        break;
    case AGENT_EVENT_TASK_CLOSED:
        task_closed(core, event->task);
        break;
    case AGENT_EVENT_DRAIN:
        agent_core_drain(core, out);
        break;
    }
    on_time(core, out);
    exit_if_drained(core, out);
    CADRE_ASSERT(out->count - before <= AGENT_ACTIONS_PER_STEP_MAX(core->options.slots));
}

uint64_t agent_core_wake_us(const struct agent_core *core)
{
    uint64_t wake_us = core->heartbeat_at_us;
    wake_us = core->orphan_at_us < wake_us ? core->orphan_at_us : wake_us;
    wake_us = core->drain_at_us < wake_us ? core->drain_at_us : wake_us;
    for (uint32_t i = 0; i < core->entries; i++) {
        const struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_TERMINATING && task->kill_at_us < wake_us) {
            wake_us = task->kill_at_us;
        }
        if (task->publish_at_us != 0 && task->publish_at_us < wake_us) {
            wake_us = task->publish_at_us;
        }
    }
    CADRE_ASSERT(wake_us > core->now_us); /* what was due is done */
    return wake_us;
}

bool agent_core_linked(const struct agent_core *core)
{
    CADRE_ASSERT(core->link_up || !core->linked);
    return core->linked;
}
