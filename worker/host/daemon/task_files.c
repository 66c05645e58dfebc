/* SPDX-License-Identifier: Apache-2.0
 * Functions on struct task_files that several files of the daemon use. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/task_files.h"

struct task_files *tasks_find(struct daemon *daemon, struct task_ref ref)
{
    struct task_files *task = daemon->tasks;
    while (task != NULL && !task_ref_equal(task->ref, ref)) {
        task = task->next;
    }
    return task;
}

const struct job_file *tasks_file(const struct task_files *task, size_t i)
{
    const struct job_file *files = task->objects != NULL ? task->objects : task->spec->files;
    return i == 0 ? &task->spec->program : &files[i - 1];
}

cadre_status tasks_name_folder(struct task_files *task, struct cadre_error *error)
{
    free(task->folder);
    if (asprintf(&task->folder, "%s/%" PRIu64 ".%" PRIu32 ".%" PRIu64, task->daemon->task_dir,
            task->ref.job.n, task->ref.slot, task->ref.incarnation) < 0) {
        task->folder = NULL;
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory for another task");
    }
    return CADRE_OK;
}

void tasks_fail(struct task_files *task, const struct cadre_error *cause)
{
    log_event(LOG_LEVEL_ERROR, "tasks", "a task cannot start", LOG_U64("job", task->ref.job.n),
        LOG_U64("slot", task->ref.slot), LOG_STR("reason", cause->text));
    task->failed = true;
    agent_task_failed(task->daemon->agent, task->ref, 126, cause);
}

void tasks_fail_memory(struct task_files *task, const char *what)
{
    struct cadre_error error;
    cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED, "the worker has no memory %s", what);
    tasks_fail(task, &error);
}
