/* SPDX-License-Identifier: Apache-2.0
 * The environment of a task, layer by layer in rising precedence (agent_state.h). Called by
 * process.c before it starts the keeper. */
#include "worker/host/agent/agent_state.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/host/keeper/start.h"

static cadre_status no_memory(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the task's environment");
}

/* Takes `item` over; it replaces an earlier one of the same name. */
static cadre_status agent_environment_put(
    struct environment *environment, char *item, struct cadre_error *error)
{
    const char *equals = item != NULL ? strchr(item, '=') : NULL;
    if (equals == NULL) {
        free(item);
        return item == NULL ? no_memory(error) : CADRE_OK; /* an item without a name is dropped */
    }
    size_t name = (size_t)(equals - item) + 1;
    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->items[i], item, name) == 0) {
            free(environment->items[i]);
            environment->items[i] = item;
            return CADRE_OK;
        }
    }
    if (environment->count + 1 >= environment->capacity) {
        size_t capacity = environment->capacity > 0 ? environment->capacity * 2 : 64;
        char **grown = realloc(environment->items, capacity * sizeof *grown);
        if (grown == NULL) {
            free(item);
            return no_memory(error);
        }
        environment->items = grown;
        environment->capacity = capacity;
    }
    environment->items[environment->count++] = item;
    environment->items[environment->count] = NULL;
    return CADRE_OK;
}

__attribute__((format(printf, 3, 4))) static cadre_status put_text(
    struct environment *environment, struct cadre_error *error, const char *format, ...)
{
    char *item = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&item, format, arguments) < 0) {
        item = NULL;
    }
    va_end(arguments);
    return agent_environment_put(environment, item, error);
}

/* Removes variables that only Cadre may set, also when Cadre does not set them: the path of a
 * checkpoint of which the coordinator has no record, for instance. */
static void agent_environment_drop(struct environment *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < environment->count; i++) {
        char *item = environment->items[i];
        if (strncmp(item, name, length) == 0 && item[length] == '=') {
            free(item);
            environment->items[i] = environment->items[--environment->count];
            environment->items[environment->count] = NULL;
            return;
        }
    }
}

/* The checkpoint that it goes on from, and the folder for its own. */
static cadre_status put_checkpoints(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    const struct job_spec *spec = &task->start.spec;
    uint32_t kept =
        spec->checkpoints_kept > 0 ? spec->checkpoints_kept : LIMIT_CHECKPOINTS_KEPT_DEFAULT;
    agent_environment_drop(environment, "CADRE_RESTORE");
    agent_environment_drop(environment, "CADRE_CHECKPOINT_DIR");
    if (task->restore != NULL) {
        CADRE_TRY(put_text(environment, error, "CADRE_RESTORE=%s", task->restore));
    }
    if (spec->checkpoint_folder[0] != '\0') {
        CADRE_TRY(put_text(environment, error, "CADRE_CHECKPOINT_DIR=%s", spec->checkpoint_folder));
    }
    CADRE_TRY(put_text(environment, error, "CADRE_CHECKPOINTS_KEPT=%" PRIu32, kept));
    return put_text(environment, error, "CADRE_CHECKPOINT_EVERY=%" PRIu64, spec->checkpoint_every);
}

/* Unless the job names a folder of its own, "" for none. */
static cadre_status put_object_cache(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    static const char name[] = "CADRE_CACHE_FOLDER=";
    for (size_t i = 0; i < environment->count; i++) {
        if (strncmp(environment->items[i], name, strlen(name)) == 0) {
            return CADRE_OK;
        }
    }
    if (task->object_folder == NULL) {
        return CADRE_OK;
    }
    CADRE_TRY(put_text(environment, error, "%s%s", name, task->object_folder));
    return put_text(environment, error, "CADRE_CACHE_MIB=%" PRIu64, task->object_mib);
}

/* Variables of the daemon that describe this host, set by its operator: where plugin and NCCL
 * are, and NCCL's settings. */
static const char *const host_names[] = {
    "CADRE_PLUGIN=", "CADRE_NCCL=", "CUDA_DEVICE_ORDER=", "NCCL_"};

static bool is_of_host(const char *item)
{
    bool is = false;
    for (size_t i = 0; i < CADRE_COUNT_OF(host_names); i++) {
        is = is || strncmp(item, host_names[i], strlen(host_names[i])) == 0;
    }
    return is;
}

/* The GPUs of the task: those of its slot on this host. */
static cadre_status put_gpus(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    const struct agent_setup *setup = &task->agent->setup;
    if (setup->gpu_shares == NULL || task->gpu_slot < 0) {
        return CADRE_OK;
    }
    const char *share = setup->gpu_shares[task->gpu_slot];
    agent_environment_drop(environment, "CADRE_DEVICES_REASON");
    if (share[0] == '\0') {
        const char *reason = setup->identity.gpus.reason;
        CADRE_TRY(put_text(environment, error, "CADRE_DEVICES=cpu"));
        CADRE_TRY(put_text(environment, error, "CADRE_DEVICES_REASON=%s",
            reason != NULL && reason[0] != '\0' ? reason : "this slot of the worker has none"));
    }
    return put_text(environment, error, "CUDA_VISIBLE_DEVICES=%s", share);
}

static cadre_status put_base(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    if (!task->inherit_environment) {
        CADRE_TRY(put_text(environment, error, "PATH=/usr/local/bin:/usr/bin:/bin"));
        CADRE_TRY(put_text(environment, error, "HOME=%s", task->folder));
        CADRE_TRY(put_text(environment, error, "TMPDIR=%s",
            task->temporary != NULL ? task->temporary : task->folder));
        CADRE_TRY(put_text(environment, error, "LANG=C.UTF-8"));
        if (task->start.spec.terminal) {
            CADRE_TRY(put_text(environment, error, "TERM=xterm"));
        }
    }
    for (char **item = environ; *item != NULL; item++) {
        if (task->inherit_environment || is_of_host(*item)) {
            CADRE_TRY(agent_environment_put(environment, strdup(*item), error));
        }
    }
    return CADRE_OK;
}

static const char *const ps_role_names[] = {"CADRE_TASK_TYPE", "CADRE_TASK_INDEX", "CADRE_WORKERS",
    "CADRE_SERVERS", "CADRE_EVALUATORS", "CADRE_SERVER_BACKUPS", "CADRE_SERVER_MEMORY"};

/* The task's type and index in a job with parameter servers. */
static cadre_status put_ps_job(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    const struct ps_job *ps_job = &task->start.spec.ps_job;
    uint32_t slot = task->ref.slot;
    for (size_t i = 0; i < CADRE_COUNT_OF(ps_role_names); i++) {
        agent_environment_drop(environment, ps_role_names[i]);
    }
    if (!ps_job_is_set(ps_job)) {
        return CADRE_OK;
    }
    CADRE_TRY(
        put_text(environment, error, "CADRE_TASK_TYPE=%s", role_name(ps_job_role(ps_job, slot))));
    CADRE_TRY(
        put_text(environment, error, "CADRE_TASK_INDEX=%" PRIu32, ps_job_role_index(ps_job, slot)));
    CADRE_TRY(put_text(environment, error, "CADRE_WORKERS=%" PRIu32, ps_job->workers));
    CADRE_TRY(put_text(environment, error, "CADRE_SERVERS=%" PRIu32, ps_job->servers));
    CADRE_TRY(put_text(environment, error, "CADRE_EVALUATORS=%" PRIu32, ps_job->evaluators));
    if (ps_job->backups) {
        CADRE_TRY(put_text(environment, error, "CADRE_SERVER_BACKUPS=1"));
    }
    if (task->memory >= 0) {
        CADRE_TRY(put_text(environment, error, "CADRE_SERVER_MEMORY=%d", KEEPER_START_MEMORY));
    }
    return CADRE_OK;
}

static cadre_status put_cadre(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    struct task_ref ref = task->ref;
    CADRE_TRY(put_text(environment, error, "CADRE_SOCKET=%s", task->socket_path));
    CADRE_TRY(put_text(environment, error, "CADRE_TASK_FRAME=%d", TASK_FRAME_VERSION));
    agent_environment_drop(environment, "CADRE_DAEMON_PID"); /* its keeper's, which puts it there */
    CADRE_TRY(
        put_text(environment, error, "CADRE_DAEMON_RETURNS=%d", task->keeper_path != NULL ? 1 : 0));
    CADRE_TRY(put_text(environment, error, "CADRE_JOB=%" PRIu64, ref.job.n));
    CADRE_TRY(put_text(environment, error, "CADRE_SLOT=%" PRIu32, ref.slot));
    CADRE_TRY(put_text(environment, error, "CADRE_INCARNATION=%" PRIu64, ref.incarnation));
    /* For the ledger the chief of a ps job is the whole job. */
    bool ps_job = ps_job_is_set(&task->start.spec.ps_job);
    uint32_t tasks = ps_job ? 1 : task->start.task_count;
    uint32_t least = ps_job ? 1 : task->start.spec.workers_min;
    CADRE_TRY(put_text(environment, error, "CADRE_TASKS=%" PRIu32, tasks));
    CADRE_TRY(put_text(environment, error, "CADRE_TASKS_MIN=%" PRIu32, least > 0 ? least : tasks));
    CADRE_TRY(put_text(environment, error, "CADRE_REPLICAS=%" PRIu32, task->start.spec.replicas));
    CADRE_TRY(put_text(environment, error, "CADRE_STRATEGY=%s", task->start.spec.strategy));
    CADRE_TRY(put_text(environment, error, "CADRE_MESH_HOST=%s", task->agent->mesh_host));
    const struct port_range *ports = &task->agent->setup.mesh_ports;
    if (port_range_count(ports) > 0) {
        char text[PORT_RANGE_TEXT_BYTES];
        port_range_format(ports, text);
        CADRE_TRY(put_text(environment, error, "CADRE_MESH_PORTS=%s", text));
    }
    CADRE_TRY(put_text(environment, error, "CADRE_OUTPUT_DIR=%s", task->output));
    return put_text(environment, error, ENVIRONMENT_TASK "=%" PRIu64 ".%" PRIu32 ".%" PRIu64,
        ref.job.n, ref.slot, ref.incarnation);
}

cadre_status environment_of_task(
    struct environment *environment, const struct agent_task *task, struct cadre_error *error)
{
    CADRE_TRY(put_base(environment, task, error));
    for (size_t i = 0; i < task->start.spec.environment_count; i++) {
        CADRE_TRY(
            agent_environment_put(environment, strdup(task->start.spec.environment[i]), error));
    }
    CADRE_TRY(put_checkpoints(environment, task, error));
    CADRE_TRY(put_object_cache(environment, task, error));
    CADRE_TRY(put_ps_job(environment, task, error));
    CADRE_TRY(put_gpus(environment, task, error));
    return put_cadre(environment, task, error);
}

void environment_free(struct environment *environment)
{
    for (size_t i = 0; i < environment->count; i++) {
        free(environment->items[i]);
    }
    free(environment->items);
    *environment = (struct environment){0};
}
