/* SPDX-License-Identifier: Apache-2.0
 * Starts the process of a task whose files are in place: the work on files is done in the thread
 * that placed them. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/prepare.h"
#include "worker/host/daemon/task_files.h"

cadre_status launch_open(const struct task_files *task, const char *program, int *ret_listener,
    struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *work = NULL;
    CADRE_FREE_AT_EXIT char *socket = NULL;
    const struct task_confinement user = {
        .change_user = task->user.change, .uid = task->user.uid, .gid = task->user.gid};
    if (asprintf(&work, "%s/work", task->folder) < 0 ||
        asprintf(&socket, "%s/socket", task->folder) < 0) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to start the task");
    }
    CADRE_TRY(executable_check(work, program, program, error));
    return listener_make(socket, &user, ret_listener, error);
}

void launch_start(struct task_files *task, int *listener)
{
    CADRE_FREE_AT_EXIT char *program = NULL;
    CADRE_FREE_AT_EXIT char *work = NULL;
    CADRE_FREE_AT_EXIT char *out = NULL;
    CADRE_FREE_AT_EXIT char *socket = NULL;
    CADRE_FREE_AT_EXIT char *temporary = NULL;
    CADRE_FREE_AT_EXIT char *keeper = NULL;
    struct task_confinement confinement;
    struct cadre_error error = {0};
    if (isolate_prepare(task, &confinement, &error) != CADRE_OK) {
        tasks_fail(task, error.text);
        return;
    }
    if (asprintf(&program, "./%s", task->spec->program.name) < 0 ||
        asprintf(&work, "%s/work", task->folder) < 0 ||
        asprintf(&out, "%s/out", task->folder) < 0 ||
        asprintf(&socket, "%s/socket", task->folder) < 0 ||
        asprintf(&temporary, "%s/tmp", task->folder) < 0 ||
        asprintf(&keeper, "%s/keeper", task->folder) < 0) {
        tasks_fail(task, "the worker has no memory for another task");
        return;
    }
    struct agent_launch launch = {.program = program,
        .folder = work,
        .output = out,
        .socket = socket,
        .listener = *listener,
        .confinement = &confinement,
        .temporary = temporary,
        .restore = task->restore_path,
        .keeper = task->daemon->options.keep_tasks ? keeper : NULL};
    *listener = -1;
    agent_task_prepared(task->daemon->agent, task->ref, &launch);
}
