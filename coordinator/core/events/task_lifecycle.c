/* SPDX-License-Identifier: Apache-2.0
 * The messages of agents about their tasks: started, relayed, exited, collected, lost. A message
 * about an unknown task, or another incarnation or worker, changes nothing (protocol, rules 7 and
 * 12). turn/core.c calls one function for each message. */
#include "coordinator/core/events/task_lifecycle.h"

#include "coordinator/core/events/failure.h"
#include "coordinator/core/events/generation.h"
#include "coordinator/core/facts/behind.h"
#include "coordinator/core/facts/ps_job.h"
#include "coordinator/core/facts/health.h"
#include "coordinator/core/facts/preempt.h"
#include "coordinator/core/facts/timeline.h"
#include "coordinator/core/facts/tasks.h"
#include "coordinator/core/facts/workers.h"
#include "coordinator/core/state/actions.h"
#include "coordinator/core/state/due.h"
#include "coordinator/core/state/find.h"
#include "coordinator/core/state/states.h"

/* Ends a task that is not known, unless the ledger may be older than it. */
static void stop_unknown(struct core *core, uint32_t worker, struct task_ref ref)
{
    if (!behind_keeps(core, worker, ref)) {
        task_stop(core, worker, ref);
    }
}

/* The task's process runs. */
static void task_runs(struct core *core, struct job *job, struct task *task, uint32_t pid)
{
    CADRE_ASSERT(task->task_group != NONE);
    if (task->state != TASK_STARTING) {
        return;
    }
    task_move(job, task, TASK_RUNNING);
    task->pid = pid;
    if (job->running == job->alive && job->state == JOB_STARTING) {
        job_move(core, job, JOB_RUNNING);
    }
    generation_await(core, job);
    job_due(core, job, DUE_CHANGED);
    CADRE_ASSERT(task->state == TASK_RUNNING);
}

void task_started(struct core *core, uint32_t worker, const struct agent_task_started *started)
{
    struct job *job;
    struct task *task = task_find(core, worker, started->task, &job);
    if (task == NULL) {
        stop_unknown(core, worker, started->task);
        return;
    }
    task_runs(core, job, task, started->pid);
}

void task_gone(struct core *core, uint32_t worker, const struct agent_task_gone *gone)
{
    struct job *job;
    struct task *task = task_find(core, worker, gone->task, &job);
    if (task == NULL || task->state == TASK_EXITED) {
        return;
    }
    task_move(job, task, TASK_EXITED);
    task->exit_code = gone->exit.code;
    task->exit_signal = gone->exit.signal;

    struct core_record *record = record_add(core, job, CORE_RECORD_TASK_EXIT, false);
    record->task_exit.slot = gone->task.slot;
    record->task_exit.incarnation = gone->task.incarnation;
    record->task_exit.state = TASK_EXITED;
    record->task_exit.exit = gone->exit;
    if (!behind_is(job)) {
        failure_exited(core, job, gone);
    }
    if (task->refill == REFILL_NOW) {
        record->task_exit.state = TASK_LOST; /* so that a restarted coordinator places it, too */
    }
    job_due(core, job, DUE_CHANGED | DUE_REGROUP | DUE_PS_JOB);
    CADRE_ASSERT(task->state != TASK_RUNNING);
}

void task_collected(
    struct core *core, uint32_t worker, const struct agent_task_collected *collected)
{
    struct job *job;
    struct task *task = task_find(core, worker, collected->task, &job);
    if (task == NULL && behind_keeps(core, worker, collected->task)) {
        return;
    }
    bool known = task == NULL || task->state == TASK_EXITED;
    if (task != NULL && task->state == TASK_EXITED) {
        if (collected->code != CADRE_OK && !task->collected && job->left[0] == '\0') {
            struct text text = text_begin(job->left, sizeof(job->left));
            text_add(&text, "not all that task ");
            text_add_u64(&text, collected->task.slot);
            text_add(&text, " left could be collected: ");
            text_add(&text, collected->text);
        }
        task_collect(core, job, collected->task.slot);
    }
    if (task == NULL) {
        worker_clears(core, worker);
    }
    if (known) {
        task_stop(core, worker, collected->task);
    }
}

void task_lose(struct core *core, struct job *job, uint32_t slot, const char *how)
{
    struct task *task = job_task(core, job, slot);
    CADRE_ASSERT(task->task_group != NONE);
    if (task->state == TASK_STARTING || task->state == TASK_RUNNING) {
        task_move(job, task, TASK_LOST);
        task->end_unrecorded = true;
        core->end_unrecorded++;
        task->next_lost = job->lost;
        job->lost = slot;
        if (!behind_is(job)) {
            failure_lost(core, job, slot, how);
        }
        job_due(core, job, DUE_CHANGED | DUE_REGROUP | DUE_PS_JOB);
    }
    task_collect(core, job, slot);
}

/* Rule 7: of a dismissed task's messages only a hello is answered. */
static void resend_to_dismissed(
    struct core *core, const struct job *job, uint32_t slot, enum task_up_type type)
{
    CADRE_ASSERT(job_task(core, job, slot)->dismissed != DISMISSED_NOT);
    if (type == TASK_UP_HELLO) {
        /* Rule 16: superseded, so that it does not run the code behind the loop. */
        notify_task_status(core, job, slot, TASK_DOWN_SUPERSEDED, CADRE_ABORTED,
            "the job goes on without this task");
    }
}

/* Whether the task has received a plan that the ledger does not have. Given up, it is superseded by
 * a plan of the same number. */
static bool is_ahead(const struct job *job, const struct task *task, const struct task_hello *hello)
{
    bool newer = hello->generation.number > job->generation.number;
    return !task_is_ps_task(task) && job->outcome == 0 &&
           behind_of_generation(job, hello->generation) &&
           (newer || task->dismissed == DISMISSED_NOT);
}

void task_relayed(struct core *core, uint32_t worker, const struct agent_relay_up *relay_up)
{
    struct job *job;
    uint32_t slot = relay_up->task.slot;
    struct task *task = task_find(core, worker, relay_up->task, &job);
    CADRE_ASSERT(core->workers[worker].state == WORKER_CONNECTED);
    if (task == NULL) {
        stop_unknown(core, worker, relay_up->task);
        return;
    }
    if (task->state == TASK_EXITED) {
        return; /* its last messages came after its exit */
    }
    if (relay_up->up.type == TASK_UP_HELLO && is_ahead(job, task, &relay_up->up.hello)) {
        behind_found(core, job, slot, relay_up->up.hello.generation);
    }
    if (behind_is(job)) {
        return;
    }
    if (task->dismissed != DISMISSED_NOT) { /* Rule 7. */
        resend_to_dismissed(core, job, slot, relay_up->up.type);
        return;
    }
    switch (relay_up->up.type) {
    case TASK_UP_HELLO:
        task_runs(core, job, task, relay_up->up.hello.pid);
        generation_hello(core, job, slot, &relay_up->up.hello);
        break;
    case TASK_UP_REPORT:
        report_handle(core, job, slot, &relay_up->up.report);
        break;
    case TASK_UP_PART:
        part_handle(core, job, slot, &relay_up->up.part);
        break;
    case TASK_UP_JOIN:
        generation_join(core, job, slot, &relay_up->up.join);
        break;
    case TASK_UP_STREAM:
        if (!task_is_ps_task(task)) {
            sample_audit_stream(core, job, &relay_up->up.stream);
        }
        break;
    case TASK_UP_STALL:
        health_stall(core, job, slot, &relay_up->up.stall);
        break;
    case TASK_UP_PREEMPT:
        preempt_notice(core, job, slot, &relay_up->up.preempt);
        break;
    case TASK_UP_BACKED:
        ps_job_backed(core, job, slot, &relay_up->up.backed);
        break;
    case TASK_UP_PROGRESS:
    case TASK_UP_SHARDS:
        job_due(core, job, DUE_CHANGED);
        break;
    case TASK_UP_VALUES:
    case TASK_UP_SPANS:
        break; /* the front stores them */
    case TASK_UP_ARRIVE:
        break; /* folded by the agent: comes as AGENT_UP_ARRIVED */
    }
}
