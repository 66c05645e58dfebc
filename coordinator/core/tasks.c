/* SPDX-License-Identifier: Apache-2.0
 * The lives of tasks as their agents report them: started, said, gone, collected, lost. A message
 * about a task that is not known, or of another incarnation or worker, changes nothing (rules 7,
 * 12). */
#include "coordinator/core/state.h"

static const struct {
    uint8_t may_become; /* bits of enum task_state */
} task_moves[] = {
    [TASK_WAITING] = {1 << TASK_STARTING},
    [TASK_STARTING] = {1 << TASK_RUNNING | 1 << TASK_EXITED | 1 << TASK_LOST},
    [TASK_RUNNING] = {1 << TASK_EXITED | 1 << TASK_LOST},
    [TASK_EXITED] = {0},
    [TASK_LOST] = {0},
};

void task_move(struct task *task, enum task_state state)
{
    CADRE_ASSERT((task_moves[task->state].may_become >> state & 1) != 0);
    task->state = state;
}

struct task *job_task(const struct core *core, const struct job *job, uint32_t slot)
{
    CADRE_ASSERT(slot < job->tasks);
    return &core->tasks[job->first + slot];
}

struct party *job_party(const struct core *core, const struct job *job, uint32_t party)
{
    CADRE_ASSERT(party < job->parties);
    return &core->parties[job->first + party];
}

struct task_ref job_task_ref(const struct core *core, const struct job *job, uint32_t slot)
{
    return (struct task_ref){
        .job = job->id, .slot = slot, .incarnation = job_task(core, job, slot)->incarnation};
}

struct task *task_find(
    struct core *core, uint32_t worker, struct task_ref ref, struct job **ret_job)
{
    struct job *job = job_find(core, ref.job);
    if (job == NULL || ref.slot >= job->tasks) {
        return NULL;
    }
    struct task *task = job_task(core, job, ref.slot);
    if (task->party == NONE || task->incarnation != ref.incarnation || task->state == TASK_LOST ||
        job_party(core, job, task->party)->worker != worker) {
        return NULL;
    }
    *ret_job = job;
    return task;
}

void task_name(const struct core *core, const struct job *job, uint32_t slot, struct text *text)
{
    const struct task *task = job_task(core, job, slot);
    text_add(text, "task ");
    text_add_u64(text, slot);
    if (task->party != NONE) {
        uint32_t worker = job_party(core, job, task->party)->worker;
        text_add(text, " on worker ");
        text_add(text, worker == NONE ? "(lost)" : core->workers[worker].name);
    }
}

static void stop_task(struct core *core, uint32_t worker, struct task_ref task)
{
    struct core_action *action = action_add(core, CORE_ACTION_STOP_TASK);
    action->stop_task.link = core->workers[worker].link;
    action->stop_task.task = task;
}

/* Its process was seen. */
static void task_runs(struct core *core, struct job *job, struct task *task, uint32_t pid)
{
    if (task->state != TASK_STARTING) {
        return;
    }
    task_move(task, TASK_RUNNING);
    task->pid = pid;
    job->running++;
    if (job->running == job->tasks && job->state == JOB_STARTING) {
        job_move(core, job, JOB_RUNNING);
        generation_await(core, job);
    }
    job_due(core, job, DUE_CHANGED);
}

void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started)
{
    struct job *job;
    struct task *task = task_find(core, worker, started->task, &job);
    if (task == NULL) {
        stop_task(core, worker, started->task);
        return;
    }
    task_runs(core, job, task, started->pid);
}

/* Nothing of it is left on its worker: its slot is free again. */
static void task_clear(struct core *core, struct job *job, struct task *task)
{
    CADRE_ASSERT(task->state == TASK_EXITED || task->state == TASK_LOST);
    if (task->collected) {
        return;
    }
    uint32_t worker = job_party(core, job, task->party)->worker;
    task->collected = true;
    job->collected++;
    if (worker != NONE) {
        CADRE_ASSERT(core->workers[worker].slots_used > 0);
        core->workers[worker].slots_used--;
        worker_offer(core, worker);
    }
    job_due(core, job, DUE_CHANGED);
}

void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone)
{
    struct job *job;
    struct task *task = task_find(core, worker, gone->task, &job);
    if (task == NULL || task->state == TASK_EXITED) {
        return;
    }
    task_move(task, TASK_EXITED);
    task->has_exit = true;
    task->exit_code = gone->exit.code;
    task->exit_signal = gone->exit.signal;
    job->gone++;

    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    record->task_exit.slot = gone->task.slot;
    record->task_exit.incarnation = gone->task.incarnation;
    record->task_exit.state = TASK_EXITED;
    record->task_exit.exit = gone->exit;
    ending_task_gone(core, job, gone->task.slot, &gone->exit, NULL);
    job_due(core, job, DUE_CHANGED);
}

void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected)
{
    struct job *job;
    struct task *task = task_find(core, worker, collected->task, &job);
    if (task != NULL && task->state == TASK_EXITED) {
        if (collected->code != CADRE_OK && !task->collected && job->left[0] == '\0') {
            struct text text = text_begin(job->left, sizeof(job->left));
            text_add(&text, "not all that task ");
            text_add_u64(&text, collected->task.slot);
            text_add(&text, " left could be collected: ");
            text_add(&text, collected->text);
        }
        task_clear(core, job, task);
    }
    if (task == NULL || task->state == TASK_EXITED) {
        stop_task(core, worker, collected->task);
    }
}

void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how)
{
    struct task *task = job_task(core, job, slot);
    if (task->state == TASK_STARTING || task->state == TASK_RUNNING) {
        task_move(task, TASK_LOST);
        task->next_lost = job->lost;
        job->lost = slot;
        job->gone++;
        ending_task_gone(core, job, slot, NULL, how);
    }
    task_clear(core, job, task);
}

void task_said(struct core *core, uint32_t worker, const struct agent_said *said)
{
    struct job *job;
    struct task *task = task_find(core, worker, said->task, &job);
    if (task == NULL) {
        stop_task(core, worker, said->task);
        return;
    }
    if (task->state == TASK_EXITED) {
        return; /* its last words came after its end */
    }
    switch (said->up.type) {
    case TASK_UP_HELLO:
        task_runs(core, job, task, said->up.hello.pid);
        generation_hello(core, job, said->task.slot, &said->up.hello);
        break;
    case TASK_UP_REPORT:
        generation_report(core, job, said->task.slot, &said->up.report);
        break;
    case TASK_UP_PART:
        generation_part(core, job, said->task.slot, &said->up.part);
        break;
    case TASK_UP_PROGRESS:
        job_due(core, job, DUE_CHANGED);
        break;
    case TASK_UP_ARRIVE:
        break; /* folded by the agent: comes as AGENT_UP_ARRIVED */
    }
}
