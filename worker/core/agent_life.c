/* SPDX-License-Identifier: Apache-2.0
 * The life of a local task: prepare, spawn, run, terminate, kill, gone, collect, collected. */
#include "worker/core/agent_table.h"

#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/text.h"

#define SIGNAL_KILL       9
#define SIGNAL_TERM       15
#define EXIT_CANNOT_START 126

/* ---- what is told ---- */

void agent_say_started(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    struct agent_up *up = agent_say(core, out, AGENT_UP_TASK_STARTED, task->ref);
    if (up != NULL) {
        up->started = (struct agent_task_started){.task = task->ref, .pid = task->pid};
    }
}

void agent_say_gone(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    struct agent_up *up = agent_say(core, out, AGENT_UP_TASK_GONE, task->ref);
    if (up != NULL) {
        up->gone.task = task->ref;
        up->gone.exit = agent_words_of(core, task)->exit;
    }
}

void agent_say_collected(
    const struct agent_core *core, const struct agent_task *task, struct agent_actions *out)
{
    const struct agent_words *words = agent_words_of(core, task);
    struct agent_up *up = agent_say(core, out, AGENT_UP_TASK_COLLECTED, task->ref);
    if (up != NULL) {
        up->collected.task = task->ref;
        up->collected.code = words->collected_code;
        up->collected.text = words->collected_text;
    }
}

/* For a task that has no place here. */
static void say_not_here(
    const struct agent_core *core, struct task_ref ref, const char *why, struct agent_actions *out)
{
    struct agent_up *up = agent_say(core, out, AGENT_UP_TASK_GONE, ref);
    if (up != NULL) {
        up->gone.task = ref;
        up->gone.exit.code = EXIT_CANNOT_START;
        agent_copy_text(up->gone.exit.text, sizeof(up->gone.exit.text), why);
    }
}

/* It did not start, and nothing of it is left. */
static void refuse_start(
    const struct agent_core *core, struct task_ref ref, const char *why, struct agent_actions *out)
{
    say_not_here(core, ref, why, out);
    struct agent_up *up = agent_say(core, out, AGENT_UP_TASK_COLLECTED, ref);
    if (up != NULL) {
        up->collected.task = ref;
        up->collected.text = "";
    }
}

/* ---- places ---- */

static void forget(struct agent_core *core, struct agent_task *task, struct agent_actions *out)
{
    CADRE_ASSERT(task->phase == AGENT_TASK_COLLECTED);
    agent_append(out, AGENT_ACTION_FORGET, task->ref);
    agent_group_leave(core, task);
    memset(agent_words_of(core, task), 0, sizeof(struct agent_words));
    memset(task, 0, sizeof(*task));
}

/* Tasks that have a process, or are about to. */
static uint32_t slots_used(const struct agent_core *core)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < core->places; i++) {
        const struct agent_task *task = &core->tasks[i];
        bool runs = task->phase >= AGENT_TASK_RUNNING && task->phase < AGENT_TASK_GONE;
        runs = runs && !task->over;
        used += runs || (task->phase == AGENT_TASK_PREPARING && task->spawning) ? 1 : 0;
    }
    return used;
}

/* A free place; else that of the task which was collected longest ago: the coordinator would not
 * start another one here if it had not heard of that. */
static struct agent_task *take_place(struct agent_core *core, struct agent_actions *out)
{
    struct agent_task *oldest = NULL;
    for (uint32_t i = 0; i < core->places; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_NONE) {
            return task;
        }
        if (task->phase == AGENT_TASK_COLLECTED &&
            (oldest == NULL || task->ended < oldest->ended)) {
            oldest = task;
        }
    }
    if (oldest != NULL) {
        forget(core, oldest, out);
    }
    return oldest;
}

/* ---- start ---- */

static bool same_slot(const struct agent_task *task, struct task_ref ref)
{
    return task->phase != AGENT_TASK_NONE && task->ref.job.n == ref.job.n &&
           task->ref.slot == ref.slot;
}

/* Whether a process of an older incarnation may still be alive. */
static bool predecessor_lives(const struct agent_core *core, const struct agent_task *task)
{
    for (uint32_t i = 0; i < core->places; i++) {
        const struct agent_task *other = &core->tasks[i];
        if (same_slot(other, task->ref) && other->ref.incarnation < task->ref.incarnation &&
            other->phase < AGENT_TASK_GONE && !other->over) {
            return true;
        }
    }
    return false;
}

/* Whoever is prepared and has a slot free is spawned. A start may come while tasks that the
 * coordinator has given up are still being killed: it waits for them. */
static void spawn_ready(struct agent_core *core, struct agent_actions *out)
{
    uint32_t used = slots_used(core);
    for (uint32_t i = 0; i < core->places && used < core->options.slots; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_PREPARING && task->prepared && !task->spawning &&
            !predecessor_lives(core, task)) {
            task->spawning = true;
            agent_append(out, AGENT_ACTION_SPAWN, task->ref);
            used++;
        }
    }
}

/* Ends what is left of older incarnations. false: this one is itself older than one that is here.
 */
static bool supersede(struct agent_core *core, struct task_ref ref, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->places; i++) {
        if (same_slot(&core->tasks[i], ref) && core->tasks[i].ref.incarnation > ref.incarnation) {
            return false;
        }
    }
    for (uint32_t i = 0; i < core->places; i++) {
        struct agent_task *older = &core->tasks[i];
        if (!same_slot(older, ref)) {
            continue;
        }
        if (older->phase == AGENT_TASK_COLLECTED) {
            forget(core, older, out);
        } else {
            agent_end_task(core, older, 0, out);
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
    if (!supersede(core, ref, out)) {
        return "a newer incarnation of this task is on this worker already";
    }
    return NULL;
}

void agent_start(
    struct agent_core *core, const struct agent_start *start, struct agent_actions *out)
{
    struct task_ref ref = start->task;
    const struct agent_task *known = agent_find(core, ref);
    if (known != NULL) {
        /* Said twice. If it is over, so is how it ended. */
        if (known->phase >= AGENT_TASK_GONE) {
            agent_say_gone(core, known, out);
        }
        if (known->phase == AGENT_TASK_COLLECTED) {
            agent_say_collected(core, known, out);
        }
        return;
    }
    const char *fault = start_fault(core, ref, out);
    struct agent_task *task = fault == NULL ? take_place(core, out) : NULL;
    if (task == NULL) {
        refuse_start(core, ref, fault != NULL ? fault : "every place of this worker is taken", out);
        return;
    }
    memset(task, 0, sizeof(*task));
    memset(agent_words_of(core, task), 0, sizeof(struct agent_words));
    task->phase = AGENT_TASK_PREPARING;
    task->ref = ref;
    task->group = GROUP_NONE;
    task->attends = crew_is(&start->spec.crew) && ref.slot > 0;
    agent_append(out, AGENT_ACTION_PREPARE, ref);
}

static void become_gone(struct agent_core *core, struct agent_task *task,
    const struct task_exit *exit, struct agent_actions *out)
{
    struct agent_words *words = agent_words_of(core, task);
    words->exit = *exit;
    words->exit.text[sizeof(words->exit.text) - 1] = '\0';
    bool stopped = task->phase == AGENT_TASK_TERMINATING || task->phase == AGENT_TASK_KILLED;
    if (stopped && exit->signal != 0 && exit->text[0] == '\0') {
        agent_copy_text(words->exit.text, sizeof(words->exit.text), "stopped by Cadre");
    }
    task->phase = AGENT_TASK_GONE;
    task->connected = false;
    agent_drop_streams(core, task->ref.job);
    agent_say_gone(core, task, out);
    agent_append(out, AGENT_ACTION_COLLECT, task->ref);
    spawn_ready(core, out);
}

/* One that was stopped while it was being prepared is over: what comes of that comes late. */
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
    task->prepared = true;
    spawn_ready(core, out);
}

void agent_failed(struct agent_core *core, struct task_ref ref, const struct task_exit *exit,
    struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    if (was_stopped(task)) {
        return;
    }
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    become_gone(core, task, exit, out);
}

void agent_spawned(
    struct agent_core *core, struct task_ref ref, uint32_t pid, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    CADRE_ASSERT(task != NULL);
    CADRE_ASSERT(task->phase == AGENT_TASK_PREPARING);
    CADRE_ASSERT(task->spawning);
    task->phase = AGENT_TASK_RUNNING;
    task->pid = pid;
    agent_say_started(core, task, out);
    if (task->stopping) {
        agent_end_task(core, task, task->grace_us, out);
    }
}

/* In no generation as far as this life knows; the coordinator may be away for good. */
void agent_adopted(struct agent_core *core, const struct agent_start *start, uint32_t pid,
    bool ended, struct agent_actions *out)
{
    CADRE_ASSERT(!core->link_up);
    CADRE_ASSERT(agent_find(core, start->task) == NULL);
    bool full = slots_used(core) >= core->options.slots;
    struct agent_task *task = take_place(core, out);
    CADRE_ASSERT(task != NULL);
    memset(task, 0, sizeof(*task));
    memset(agent_words_of(core, task), 0, sizeof(struct agent_words));
    task->phase = ended ? AGENT_TASK_KILLED : AGENT_TASK_RUNNING;
    task->ref = start->task;
    task->pid = pid;
    task->group = GROUP_NONE;
    task->attends = crew_is(&start->spec.crew) && start->task.slot > 0;
    task->adopted = true;
    task->over = ended;
    if (core->orphan_at_us == UINT64_MAX) {
        core->orphan_at_us = core->now_us + core->options.orphan_us;
    }
    if (full && !ended) {
        agent_end_task(core, task, core->options.grace_us, out);
    }
}

/* ---- end ---- */

void agent_end_task(
    struct agent_core *core, struct agent_task *task, uint64_t grace_us, struct agent_actions *out)
{
    uint64_t kill_at_us =
        grace_us < UINT64_MAX - core->now_us ? core->now_us + grace_us : UINT64_MAX;
    switch (task->phase) {
    case AGENT_TASK_PREPARING:
        if (!task->spawning) { /* no process of it is there or on its way */
            struct task_exit exit = {.signal = SIGNAL_TERM, .text = "stopped before it started"};
            become_gone(core, task, &exit, out);
            break;
        }
        task->grace_us = task->stopping && task->grace_us < grace_us ? task->grace_us : grace_us;
        task->stopping = true;
        break;
    case AGENT_TASK_RUNNING:
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
    for (uint32_t i = 0; i < core->places; i++) {
        agent_end_task(core, &core->tasks[i], core->options.grace_us, out);
    }
}

void agent_kill_overdue(struct agent_core *core, struct agent_actions *out)
{
    for (uint32_t i = 0; i < core->places; i++) {
        struct agent_task *task = &core->tasks[i];
        if (task->phase == AGENT_TASK_TERMINATING && core->now_us >= task->kill_at_us) {
            task->phase = AGENT_TASK_KILLED;
            agent_append(out, AGENT_ACTION_SIGNAL, task->ref)->signal = SIGNAL_KILL;
        }
    }
}

/* A task that is named and not known gets an answer, so that nobody waits for its end. One that is
 * collected is forgotten: this is how the coordinator says that it has heard of that, or that it
 * does not know the task. */
static void stop_one(
    struct agent_core *core, const struct agent_stop *stop, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, stop->task);
    if (task == NULL) {
        say_not_here(core, stop->task, "this worker has no such task", out);
    } else if (task->phase == AGENT_TASK_COLLECTED) {
        forget(core, task, out);
    } else {
        agent_end_task(core, task, stop->grace_us, out);
    }
}

void agent_stop(struct agent_core *core, const struct agent_stop *stop, struct agent_actions *out)
{
    if (stop->one) {
        stop_one(core, stop, out);
        return;
    }
    for (uint32_t i = 0; i < core->places; i++) {
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
    CADRE_ASSERT(task->phase < AGENT_TASK_GONE);
    become_gone(core, task, exit, out);
}

void agent_collected(struct agent_core *core, struct task_ref ref, cadre_status code,
    const char *text, struct agent_actions *out)
{
    struct agent_task *task = agent_find(core, ref);
    CADRE_ASSERT(task != NULL);
    CADRE_ASSERT(task->phase == AGENT_TASK_GONE);
    struct agent_words *words = agent_words_of(core, task);
    task->phase = AGENT_TASK_COLLECTED;
    task->ended = ++core->ended;
    words->collected_code = code;
    agent_copy_text(words->collected_text, sizeof(words->collected_text), text);
    agent_say_collected(core, task, out);
}
