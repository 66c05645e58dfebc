/* SPDX-License-Identifier: Apache-2.0
 * The callbacks of the agent: what the daemon does with a task's files from the first fetch to
 * the last upload. */
#include <stdlib.h>

#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/logs.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/prepare.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/removal.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/daemon/tasks.h"

static struct task_files *new_task(struct daemon *daemon, const struct agent_start *start)
{
    struct task_files *task = calloc(1, sizeof *task);
    if (task != NULL) {
        *task = (struct task_files){.next = daemon->tasks,
            .daemon = daemon,
            .ref = start->task,
            .start = start,
            .spec = &start->spec,
            .log.fd = -1,
            .log.marks_fd = -1};
        daemon->tasks = task;
    }
    return task;
}

/* Its folders exist; what it published is not recorded any more, and is sent to the coordinator
 * again. */
static bool on_agent_adopted(void *user, const struct agent_start *start)
{
    struct cadre_error error = {0};
    struct task_files *task = new_task(user, start);
    if (task == NULL) {
        return false;
    }
    task->ready = true;
    if (tasks_name_folder(task, &error) != CADRE_OK || isolate_adopt(task, &error) != CADRE_OK ||
        logs_reopen(task, &error) != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "tasks", "a task cannot be taken over",
            LOG_U64("job", task->ref.job.n), LOG_STR("reason", error.text));
        return false;
    }
    return true;
}

static void on_agent_prepare(void *user, const struct agent_start *start)
{
    struct daemon *daemon = user;
    struct task_ref ref = start->task;
    struct task_files *task = new_task(daemon, start);
    if (task == NULL) {
        struct cadre_error error;
        cadre_error_set(
            &error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another task");
        agent_task_failed(daemon->agent, ref, 126, &error);
        return;
    }
    log_event(LOG_LEVEL_INFO, "tasks", "preparing a task", LOG_U64("job", ref.job.n),
        LOG_U64("slot", ref.slot), LOG_U64("incarnation", ref.incarnation),
        LOG_STR("program", start->spec.program.name));
    prepare_start(task);
}

_Static_assert(
    (int)AGENT_STDOUT == (int)LOG_STREAM_STDOUT && (int)AGENT_STDERR == (int)LOG_STREAM_STDERR,
    "streams have the same numbers");

static void on_agent_output(
    void *user, struct task_ref ref, enum agent_stream stream, const uint8_t *bytes, size_t size)
{
    struct task_files *task = tasks_find(user, ref);
    if (task != NULL) {
        logs_write(task, (enum log_stream)stream, bytes, size);
    }
}

static void on_agent_publish(void *user, struct task_ref ref, const struct task_part *part)
{
    struct task_files *task = tasks_find(user, ref);
    if (task != NULL) {
        publish_start(task, part);
    }
}

static void on_agent_collect(void *user, struct task_ref ref)
{
    struct daemon *daemon = user;
    struct task_files *task = tasks_find(daemon, ref);
    if (task != NULL) {
        task->start_waits = false;
        task->uid_waits = false;
        task->uid_answered = false;
        task->name_waits = false;
    }
    if (task == NULL || (task->log.fd < 0 && !task->staging_in)) {
        agent_task_collected(daemon->agent, ref, CADRE_OK, ""); /* it never had a folder */
        return;
    }
    if (!task->ready) {
        prepare_cancel(task); /* transfers for its start are not needed any more */
        task->failed = true;
    }
    if (!task->staging_in) { /* else its end collects: prepare.c */
        logs_ship_rest(task);
        outputs_start(task);
    }
}

static void on_agent_forget(void *user, struct task_ref ref)
{
    struct daemon *daemon = user;
    struct task_files **at = &daemon->tasks;
    while (*at != NULL && !task_ref_equal((*at)->ref, ref)) {
        at = &(*at)->next;
    }
    struct task_files *task = *at;
    if (task == NULL) {
        return;
    }
    *at = task->next;
    prepare_cancel(task);
    publish_cancel(task);
    outputs_cancel(task);
    task->forgotten = true;
    removal_expect(task);
    if (!task->staging_in && !task->emptying && !task->log_work.running) {
        removal_start(task); /* no thread works in its folders any more */
    }                        /* else the thread's end does it: prepare.c, logs.c */
}

static void on_agent_drained(void *user)
{
    struct daemon *daemon = user;
    log_event(LOG_LEVEL_INFO, "daemon", "drained", LOG_END);
    rpc_loop_stop(daemon->loop);
}

static void on_agent_notice(void *user, struct task_ref ref, const char *text)
{
    (void)user;
    log_event(
        LOG_LEVEL_WARNING, "tasks", text, LOG_U64("job", ref.job.n), LOG_U64("slot", ref.slot));
}

static void daemon_tasks_count(struct daemon *daemon, const struct agent_up *up)
{
    struct worker_counts *counts = &daemon->counts;
    const struct task_exit *exit = &up->gone.exit;
    bool started = up->type == AGENT_UP_TASK_STARTED;
    struct task_files *task = tasks_find(daemon, started ? up->started.task : up->gone.task);
    if (task == NULL || (started ? task->counted_start : task->counted_end)) {
        return; /* it is sent again on another stream */
    }
    bool done = exit->code == 0 || exit->code == JOB_EXIT_PREEMPTED;
    task->counted_start = true;
    task->counted_end = !started;
    if (started) {
        counts->tasks_started++;
    } else if (exit->signal != 0) {
        counts->tasks_killed++;
    } else {
        counts->tasks_done += done ? 1 : 0;
        counts->tasks_failed += done ? 0 : 1;
    }
}

static void on_agent_send(void *user, const struct agent_up *up)
{
    if (up->type == AGENT_UP_TASK_STARTED || up->type == AGENT_UP_TASK_GONE) {
        daemon_tasks_count(user, up);
    }
    if (up->type == AGENT_UP_TASK_STARTED) {
        log_event(LOG_LEVEL_INFO, "tasks", "task started", LOG_U64("job", up->started.task.job.n),
            LOG_U64("slot", up->started.task.slot), LOG_U64("pid", up->started.pid));
    } else if (up->type == AGENT_UP_TASK_GONE) {
        log_event(LOG_LEVEL_INFO, "tasks", "task ended", LOG_U64("job", up->gone.task.job.n),
            LOG_U64("slot", up->gone.task.slot), LOG_I64("code", up->gone.exit.code),
            LOG_I64("signal", up->gone.exit.signal));
    }
    const struct task_files *task =
        up->type == AGENT_UP_TASK_GONE ? tasks_find(user, up->gone.task) : NULL;
    struct agent_up gone;
    if (task != NULL && task->damaged_step > 0) {
        gone = *up;
        gone.gone.damaged_step = task->damaged_step;
        up = &gone;
    }
    link_send(user, up);
}

const struct agent_callbacks worker_agent_callbacks = {.send = on_agent_send,
    .prepare = on_agent_prepare,
    .adopted = on_agent_adopted,
    .output = on_agent_output,
    .publish = on_agent_publish,
    .collect = on_agent_collect,
    .forget = on_agent_forget,
    .drained = on_agent_drained,
    .notice = on_agent_notice};

static void log_acked(struct daemon *daemon, const struct agent_log_ack *ack)
{
    struct task_files *task = tasks_find(daemon, ack->task);
    if (task != NULL) {
        logs_acked(task, ack->offset);
    }
}

static void resume(struct task_files *task)
{
    if (task->publish != NULL) {
        publish_resume(task);
    }
    if (task->collecting) {
        outputs_resume(task);
    } else {
        prepare_resume(task);
    }
}

/* A new stream: what was interrupted goes on. */
static void daemon_tasks_linked(struct daemon *daemon)
{
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        logs_linked(task);
        resume(task);
    }
}

const struct link_callbacks worker_link_callbacks = {
    .linked = daemon_tasks_linked, .log_acked = log_acked};

void tasks_retry(struct daemon *daemon)
{
    bool resumes = daemon->resume_waits && daemon->linked; /* else the next stream resumes it */
    daemon->resume_waits = false;
    for (struct task_files *task = daemon->tasks; task != NULL; task = task->next) {
        if (resumes) {
            resume(task);
        }
        if (task->log_waits) {
            task->log_waits = false;
            logs_ship(task);
        }
        if (task->publish_waits && task->publish != NULL) {
            task->publish_waits = false;
            publish_resume(task);
        }
        if (task->collecting) {
            outputs_resume(task);
        } else if (task->start_waits && !task->failed) {
            task->start_waits = false;
            prepare_start(task);
        }
    }
}

void tasks_free_all(struct daemon *daemon)
{
    while (daemon->tasks != NULL) {
        on_agent_forget(daemon, daemon->tasks->ref);
    }
}
