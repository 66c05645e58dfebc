/* SPDX-License-Identifier: Apache-2.0
 * How a local task ends: stopped, killed, exited, collected. agent_core.c calls it. */
#include "worker/core/agent_table.h"

#include "common/pure/assert.h"

#define SIGNAL_KILL       9
#define SIGNAL_TERM       15
#define EXIT_CANNOT_START 126

/* ---- messages of an end ---- */

void agent_send_gone(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase >= AGENT_TASK_GONE);
    struct agent_up *up = agent_send(core, out, AGENT_UP_TASK_GONE, task->ref);
    if (up != NULL) {
        up->gone.task = task->ref;
        up->gone.exit = agent_resend_of(core, task)->exit;
        up->gone.cause = agent_resend_of(core, task)->cause;
    }
}

void agent_send_collected(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase == AGENT_TASK_COLLECTED);
    const struct agent_resend *resend = agent_resend_of(core, task);
    struct agent_up *up = agent_send(core, out, AGENT_UP_TASK_COLLECTED, task->ref);
    if (up != NULL) {
        up->collected.task = task->ref;
        up->collected.code = resend->collected_code;
        up->collected.text = resend->collected_text;
    }
}

void agent_send_not_here(
    const struct agent_core *core, struct task_ref ref, const char *why, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked); /* it answers a message of this link */
    CADRE_ASSERT(why[0] != '\0');
    struct agent_up *up = agent_send(core, out, AGENT_UP_TASK_GONE, ref);
    CADRE_ASSERT(up != NULL);
    up->gone.task = ref;
    up->gone.exit.code = EXIT_CANNOT_START;
    agent_copy_text(up->gone.exit.text, sizeof(up->gone.exit.text), why);
}

/* ---- from running to collected ---- */

void agent_become_gone(struct agent_core *core, struct agent_task *task,
    const struct task_exit *exit, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase > AGENT_TASK_NONE && task->phase < AGENT_TASK_GONE);
    CADRE_ASSERT(task->ended == 0);
    struct agent_resend *resend = agent_resend_of(core, task);
    resend->exit = *exit;
    resend->exit.text[sizeof(resend->exit.text) - 1] = '\0';
    bool stopped = task->phase == AGENT_TASK_TERMINATING || task->phase == AGENT_TASK_KILLED;
    if (stopped && exit->signal != 0 && exit->text[0] == '\0') {
        agent_copy_text(resend->exit.text, sizeof(resend->exit.text), "stopped by Cadre");
    }
    task->phase = AGENT_TASK_GONE;
    task->connected = false;
    agent_publish_stop(core, task);
    agent_drop_streams(core, task->ref.job);
    agent_send_gone(core, task, out);
    agent_append(out, AGENT_ACTION_COLLECT, task->ref);
    agent_spawn_ready(core, out);
}

void agent_end_task(
    struct agent_core *core, struct agent_task *task, uint64_t grace_us, struct agent_actions *out)
{
    uint64_t kill_at_us =
        grace_us < UINT64_MAX - core->now_us ? core->now_us + grace_us : UINT64_MAX;
    CADRE_ASSERT(kill_at_us >= core->now_us);
    switch (task->phase) {
    case AGENT_TASK_PREPARING:
        if (!task->spawning) { /* it has no process, and none is being spawned */
            CADRE_ASSERT(!task->stopping);
            struct task_exit exit = {.signal = SIGNAL_TERM, .text = "stopped before it started"};
            agent_become_gone(core, task, &exit, out);
            break;
        }
        CADRE_ASSERT(task->prepared);
        task->grace_us = task->stopping && task->grace_us < grace_us ? task->grace_us : grace_us;
        task->stopping = true;
        break;
    case AGENT_TASK_RUNNING:
        CADRE_ASSERT(!task->over);
        CADRE_ASSERT(task->kill_at_us == 0); /* its grace begins once */
        task->phase = AGENT_TASK_TERMINATING;
        task->kill_at_us = kill_at_us;
        if (grace_us > 0) {
            agent_append(out, AGENT_ACTION_SIGNAL, task->ref)->signal = SIGNAL_TERM;
        }
        break;
    case AGENT_TASK_TERMINATING:
        task->kill_at_us = kill_at_us < task->kill_at_us ? kill_at_us : task->kill_at_us;
        break;
    case AGENT_TASK_NONE:
    case AGENT_TASK_KILLED:
    case AGENT_TASK_GONE:
    case AGENT_TASK_COLLECTED:
        break;
    }
}

void agent_end_all(struct agent_core *core, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        agent_end_task(core, &core->tasks[i], core->options.grace_us, out);
        /* Else a process would stay that no event ends. */
        CADRE_ASSERT(core->tasks[i].phase != AGENT_TASK_RUNNING);
    }
}

void agent_kill_overdue(struct agent_core *core, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_TERMINATING && core->now_us >= task->kill_at_us) {
            CADRE_ASSERT(!task->over); /* there is a process to kill */
            task->phase = AGENT_TASK_KILLED;
            agent_append(out, AGENT_ACTION_SIGNAL, task->ref)->signal = SIGNAL_KILL;
        }
    }
}

/* A stop that names an unknown task is answered, so that the coordinator does not wait for its end.
 * A collected task is removed: with this stop the coordinator acknowledges its end, or that it has
 * no record of the task. */
static void stop_one(
    struct agent_core *core, const struct agent_stop *stop, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, stop->task);
    if (task == NULL) {
        agent_send_not_here(core, stop->task, "this worker has no such task", out);
    } else if (task->phase == AGENT_TASK_COLLECTED) {
        agent_forget_task(core, task, out);
    } else {
        agent_end_task(core, task, stop->grace_us, out);
        CADRE_ASSERT(task->phase != AGENT_TASK_RUNNING);
        CADRE_ASSERT(task->phase != AGENT_TASK_PREPARING || task->stopping);
    }
}

void agent_stop(struct agent_core *core, const struct agent_stop *stop, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked);
    if (stop->one) {
        stop_one(core, stop, out);
        return;
    }
    for (uint32_t i = 0; i < core->entries; i++) {
        if (core->tasks[i].phase != AGENT_TASK_NONE && core->tasks[i].ref.job.n == stop->job.n) {
            agent_end_task(core, &core->tasks[i], stop->grace_us, out);
        }
    }
}

void agent_gone(struct agent_core *core, struct task_ref ref, const struct task_exit *exit,
    struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    CADRE_ASSERT(task != NULL);
    CADRE_ASSERT(task->phase >= AGENT_TASK_RUNNING); /* SPAWNED goes before */
    CADRE_ASSERT(task->phase < AGENT_TASK_GONE);
    agent_become_gone(core, task, exit, out);
}

void agent_collected(struct agent_core *core, struct task_ref ref, cadre_status code,
    const char *text, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    CADRE_ASSERT(task != NULL);
    CADRE_ASSERT(task->phase == AGENT_TASK_GONE);
    CADRE_ASSERT(task->ended == 0);
    CADRE_ASSERT(core->ended < UINT64_MAX);
    struct agent_resend *resend = agent_resend_of(core, task);
    task->phase = AGENT_TASK_COLLECTED;
    task->ended = ++core->ended;
    resend->collected_code = code;
    agent_copy_text(resend->collected_text, sizeof(resend->collected_text), text);
    agent_send_collected(core, task, out);
}
