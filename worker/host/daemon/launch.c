/* SPDX-License-Identifier: Apache-2.0
 * Starts the process of a task whose files are in place: the work on files is done in the thread
 * that placed them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/host/agent/agent.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/isolate.h"
#include "worker/host/daemon/objects/job_storage.h"
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

/* Jobs with the same keys of the same store have one identity, others are alone. */
static cadre_status identify(
    const struct task_files *task, char ret_name[SHA256_HEX_BYTES], struct cadre_error *error)
{
    struct sha256 hash;
    char job[128];
    char id[2 * LIMIT_REQUEST_ID_BYTES + 1];
    for (size_t i = 0; i < LIMIT_REQUEST_ID_BYTES; i++) {
        snprintf(id + 2 * i, 3, "%02x", task->spec->request_id[i]);
    }
    snprintf(job, sizeof job, "%016" PRIx64 " %" PRIu64 " %s", task->daemon->term.cluster,
        task->ref.job.n, id);
    CADRE_TRY(job_storage_identity(task->spec, job, &hash, error));
    sha256_hex(&hash, ret_name);
    return CADRE_OK;
}

char *launch_object_folder(const struct task_files *task)
{
    char identity[SHA256_HEX_BYTES];
    char *path = NULL;
    struct cadre_error error = {0};
    if (task->daemon->objects.limit_bytes == 0) {
        return NULL;
    }
    cadre_status status = identify(task, identity, &error);
    if (status == CADRE_OK) {
        status = object_cache_give(&task->daemon->objects, identity, &task->user, &path, &error);
    }
    if (status != CADRE_OK) {
        log_event(LOG_LEVEL_WARNING, "objects",
            "a task has no cache of objects: it reads all from the store",
            LOG_U64("job", task->ref.job.n), LOG_U64("slot", task->ref.slot),
            LOG_STR("reason", error.text));
    }
    return path;
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
        tasks_fail(task, &error);
        return;
    }
    if (asprintf(&program, "./%s", task->spec->program.name) < 0 ||
        asprintf(&work, "%s/work", task->folder) < 0 ||
        asprintf(&out, "%s/out", task->folder) < 0 ||
        asprintf(&socket, "%s/socket", task->folder) < 0 ||
        asprintf(&temporary, "%s/tmp", task->folder) < 0 ||
        asprintf(&keeper, "%s/keeper", task->folder) < 0) {
        tasks_fail_memory(task, "for another task");
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
        .object_folder = task->object_folder,
        .object_mib = task->daemon->objects.limit_bytes >> 20,
        .keeper = task->daemon->options.keep_tasks ? keeper : NULL};
    *listener = -1;
    agent_task_prepared(task->daemon->agent, task->ref, &launch);
}
