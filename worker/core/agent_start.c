/* SPDX-License-Identifier: Apache-2.0
 * How a local task begins: prepared, spawned, or adopted from an earlier incarnation of the daemon.
 * agent_core.c calls it. */
#include "worker/core/agent_table.h"

#include "common/pure/assert.h"

void agent_send_started(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase >= AGENT_TASK_RUNNING && task->phase <= AGENT_TASK_KILLED);
    struct agent_up *up = agent_send(core, out, AGENT_UP_TASK_STARTED, task->ref);
    if (up != NULL) {
        up->started = (struct agent_task_started){.task = task->ref, .pid = task->pid};
    }
}

/* It did not start, and nothing of it is left. */
static void refuse_start(
    const struct agent_core *core, struct task_ref ref, const char *why, struct agent_actions *out)
{
    agent_send_not_here(core, ref, why, out);
    struct agent_up *up = agent_send(core, out, AGENT_UP_TASK_COLLECTED, ref);
    CADRE_ASSERT(up != NULL);
    up->collected.task = ref;
    up->collected.text = "";
}

/* Ends what is left of older incarnations. false: this one is itself older than one that is here.
 */
static bool agent_start_supersede(
    struct agent_core *core, struct task_ref ref, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->entries; i++) {
        if (agent_is_of_slot(&core->tasks[i], ref) &&
            core->tasks[i].ref.incarnation > ref.incarnation) {
            return false;
        }
    }
    for (uint32_t i = 0; i < core->entries; i++) {
        struct agent_task *older = &core->tasks[i];
        if (!agent_is_of_slot(older, ref)) {
            continue;
        }
        CADRE_ASSERT(older->ref.incarnation < ref.incarnation); /* an equal one has an entry */
        if (older->phase == AGENT_TASK_COLLECTED) {
            agent_forget_task(core, older, out);
        } else {
            agent_end_task(core, older, 0, out);
            CADRE_ASSERT(older->phase != AGENT_TASK_RUNNING);
        }
    }
    return true;
}

/* NULL, or why the task cannot start here. */
static const char *start_fault(
    struct agent_core *core, struct task_ref ref, struct agent_actions *out)
{
    if (core->draining) {
        return "the worker is draining and takes no new tasks";
    }
    CADRE_ASSERT(!core->left);
    if (!agent_start_supersede(core, ref, out)) {
        return "a newer incarnation of this task runs on this worker already";
    }
    return NULL;
}

void agent_start(
    struct agent_core *core, const struct agent_start *start, struct agent_actions *out)
{
    CADRE_ASSERT(core->linked);
    struct task_ref ref = start->task;
    const struct agent_task *known = agent_find(core, ref);
    if (known != NULL) {
        /* Sent twice. If the task has ended, its end is sent again. */
        if (known->phase >= AGENT_TASK_GONE) {
            agent_send_gone(core, known, out);
        }
        if (known->phase == AGENT_TASK_COLLECTED) {
            agent_send_collected(core, known, out);
        }
        return;
    }
    const char *fault = start_fault(core, ref, out);
    struct agent_task *task = fault == NULL ? agent_take_entry(core, ref, out) : NULL;
    if (task == NULL) {
        refuse_start(
            core, ref, fault != NULL ? fault : "all task entries of this worker are taken", out);
        return;
    }
    task->phase = AGENT_TASK_PREPARING;
    task->is_ps_task = ps_job_is_set(&start->spec.ps_job) && ref.slot > 0;
    agent_append(out, AGENT_ACTION_PREPARE, ref);
    CADRE_ASSERT(!task->prepared && !task->spawning);
}

/* A task that was stopped while it was being prepared has ended: late results are ignored. */
static bool was_stopped(const struct agent_task *task)
{
    return task == NULL || task->phase >= AGENT_TASK_GONE;
}

void agent_prepared(struct agent_core *core, struct task_ref ref, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    if (was_stopped(task)) {
        return;
    }
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    CADRE_ASSERT(!task->prepared); /* it is prepared once */
    CADRE_ASSERT(!task->spawning);
    task->prepared = true;
    agent_spawn_ready(core, out);
}

void agent_failed(struct agent_core *core, struct task_ref ref, const struct task_exit *exit,
    cadre_status cause, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    if (was_stopped(task)) {
        return;
    }
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    CADRE_ASSERT(task->prepared || !task->spawning);
    agent_resend_of(core, task)->cause = cause;
    agent_become_gone(core, task, exit, out);
}

void agent_spawned(
    struct agent_core *core, struct task_ref ref, uint32_t pid, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    CADRE_ASSERT(task != NULL);
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    CADRE_ASSERT(task->prepared);
    CADRE_ASSERT(task->spawning);
    CADRE_ASSERT(!task->connected); /* SPAWNED comes before its first frame */
    task->phase = AGENT_TASK_RUNNING;
    task->pid = pid;
    agent_send_started(core, task, out);
    if (task->stopping) {
        agent_end_task(core, task, task->grace_us, out);
    }
}

/* In no generation until its hello names one; the orphan limit runs until the first welcome. */
void agent_adopted(struct agent_core *core, const struct agent_start *start, uint32_t pid,
    bool ended, struct agent_actions *out)
{
    CADRE_ASSERT(!core->link_up);
    CADRE_ASSERT(!core->left);
    CADRE_ASSERT(agent_find(core, start->task) == NULL);
    bool full = agent_slots_used(core) >= core->options.slots;
    struct agent_task *task = agent_take_entry(core, start->task, out);
    CADRE_ASSERT(task != NULL);
    task->phase = ended ? AGENT_TASK_KILLED : AGENT_TASK_RUNNING;
    task->pid = pid;
    task->is_ps_task = ps_job_is_set(&start->spec.ps_job) && start->task.slot > 0;
    task->adopted = true;
    task->over = ended;
    if (core->orphan_at_us == UINT64_MAX) {
        core->orphan_at_us = core->now_us + core->options.orphan_us;
    }
    if (full && !ended) {
        agent_end_task(core, task, core->options.grace_us, out);
    }
}
