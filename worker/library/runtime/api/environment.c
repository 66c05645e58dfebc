/* SPDX-License-Identifier: Apache-2.0
 * Reads and checks all CADRE_* variables at once. program/ calls it in cadre_init. */
#include "worker/library/runtime/api/environment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/near_miss.h"
#include "common/model/strategy_names.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"
#include "common/pure/object_path.h"

/* Longer than any step takes; without a limit, programs that disagree would wait for ever. */
#define COLLECTIVE_TIMEOUT_S     1800
#define COLLECTIVE_TIMEOUT_S_MAX (30 * 24 * 3600)

#define CLUSTER_WAIT_S  300
#define CLUSTER_GRACE_S 30
#define CLUSTER_S_MAX   (30 * 24 * 3600)

#define PS_THREADS_MAX 64 /* workers, and servers, of a ps job that is made by hand */

/* Long values are cut in messages. */
#define VALUE_SHOWN 64

/* *ret_value is `fallback` when the variable is absent. */
static cadre_status read_number(const char *name, uint64_t least, uint64_t most, uint64_t fallback,
    uint64_t *ret_value, struct cadre_error *error)
{
    const char *text = getenv(name);
    *ret_value = fallback;
    if (text == NULL) {
        return CADRE_OK;
    }
    errno = 0;
    char *end = NULL;
    unsigned long long value = strtoull(text, &end, 10);
    bool digits = text[0] >= '0' && text[0] <= '9';
    if (!digits || *end != '\0' || errno != 0 || value < least || value > most) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is '%.*s', not a whole number from %" PRIu64 " to %" PRIu64
            "; set it to one, or unset it",
            name, VALUE_SHOWN, text, least, most);
    }
    *ret_value = value;
    return CADRE_OK;
}

static cadre_status read_text(
    const char *name, const char *fallback, char *ret_text, size_t size, struct cadre_error *error)
{
    CADRE_ASSERT(size > 0);
    const char *text = getenv(name);
    text = text == NULL ? fallback : text;
    size_t length = strlen(text);
    if (length == 0 || length >= size) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s is '%.*s', %zu bytes long; it must hold 1 to %zu bytes, or be unset", name,
            VALUE_SHOWN, text, length, size - 1);
    }
    memcpy(ret_text, text, length + 1);
    return CADRE_OK;
}

static cadre_status read_preemption(struct environment *environment, struct cadre_error *error)
{
    const char *text = getenv("CADRE_PREEMPTION");
    uint64_t daemon_pid = 0;
    CADRE_TRY(read_number("CADRE_DAEMON_PID", 1, INT32_MAX, 0, &daemon_pid, error));
    uint64_t returns = 0;
    CADRE_TRY(read_number("CADRE_DAEMON_RETURNS", 0, 1, 0, &returns, error));
    environment->daemon_pid = (int64_t)daemon_pid;
    environment->daemon_returns = returns == 1;
    environment->preemption = environment->attached;
    if (text == NULL) {
        return CADRE_OK;
    }
    environment->preemption = strcmp(text, "on") == 0;
    if (!environment->preemption && strcmp(text, "off") != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_PREEMPTION is '%.*s'; set it to on or off, or unset it", VALUE_SHOWN, text);
    }
    return CADRE_OK;
}

static cadre_status read_strategy(char ret_strategy[LIMIT_NAME_BYTES], struct cadre_error *error)
{
    const char *text = getenv("CADRE_STRATEGY");
    if (text == NULL || text[0] == '\0') {
        return CADRE_OK;
    }
    for (size_t i = 0; strategy_names[i] != NULL; i++) {
        if (strcmp(text, strategy_names[i]) == 0) {
            memcpy(ret_strategy, text, strlen(text) + 1);
            return CADRE_OK;
        }
    }
    const char *near = near_miss_find(text, strategy_names);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "CADRE_STRATEGY is '%.*s', which is no strategy; use %s", VALUE_SHOWN, text,
        near != NULL ? near : "mirrored, multi_worker_mirrored or parameter_server");
}

static cadre_status check_frame(struct cadre_error *error)
{
    uint64_t version = TASK_FRAME_VERSION;
    cadre_status status =
        read_number("CADRE_TASK_FRAME", 0, UINT16_MAX, TASK_FRAME_VERSION, &version, error);
    if (status == CADRE_OK && version != TASK_FRAME_VERSION) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "the worker daemon uses version %" PRIu64
            " of the frames between program and daemon, this program was built with "
            "Cadre " CADRE_VERSION
            " for version %d: build it against the daemon's version of Cadre",
            version, TASK_FRAME_VERSION);
    }
    return status;
}

/* The name of a folder; in an object store without slashes at its end, so that there is one before
 * the names in it. */
static cadre_status check_folder(const char *name, char *folder, struct cadre_error *error)
{
    const char *fault = object_folder_fault(folder);
    if (fault != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s is '%.*s', which %s", name,
            VALUE_SHOWN, folder, fault);
    }
    size_t length = strlen(folder);
    while (object_path_is(folder) && folder[length - 1] == '/') {
        folder[--length] = '\0';
    }
    return CADRE_OK;
}

/* Which checkpoint is loaded, and where checkpoints are written. */
static cadre_status read_checkpoints(struct environment *environment, struct cadre_error *error)
{
    uint64_t kept = LIMIT_CHECKPOINTS_KEPT_DEFAULT;
    CADRE_TRY(read_number(
        "CADRE_CHECKPOINT_EVERY", 0, LIMIT_POSITION, 0, &environment->checkpoint_every, error));
    CADRE_TRY(read_number("CADRE_CHECKPOINTS_KEPT", 1, LIMIT_CHECKPOINTS_KEPT,
        LIMIT_CHECKPOINTS_KEPT_DEFAULT, &kept, error));
    environment->checkpoints_kept = (uint32_t)kept;
    if (getenv("CADRE_CHECKPOINT_DIR") != NULL) {
        CADRE_TRY(read_text("CADRE_CHECKPOINT_DIR", "", environment->checkpoint_folder,
            sizeof environment->checkpoint_folder, error));
        CADRE_TRY(check_folder("CADRE_CHECKPOINT_DIR", environment->checkpoint_folder, error));
    }
    return getenv("CADRE_RESTORE") == NULL
               ? CADRE_OK
               : read_text("CADRE_RESTORE", "", environment->restore_path,
                     sizeof environment->restore_path, error);
}

/* The variables of programs of a cluster that are started by hand. */
static cadre_status read_cluster(struct environment *environment, struct cadre_error *error)
{
    const char *mode = getenv("CADRE_CLUSTER");
    uint64_t insecure = 0;
    uint64_t wait_s = 0;
    uint64_t grace_s = 0;
    uint64_t port = 0;
    environment->cluster_ignored = mode != NULL && strcmp(mode, "none") == 0;
    if (mode != NULL && !environment->cluster_ignored && strcmp(mode, "auto") != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_CLUSTER is '%.*s'; use auto or none", VALUE_SHOWN, mode);
    }
    CADRE_TRY(
        read_number("CADRE_CLUSTER_WAIT_S", 1, CLUSTER_S_MAX, CLUSTER_WAIT_S, &wait_s, error));
    CADRE_TRY(
        read_number("CADRE_CLUSTER_GRACE_S", 0, CLUSTER_S_MAX, CLUSTER_GRACE_S, &grace_s, error));
    CADRE_TRY(read_number("CADRE_CLUSTER_INSECURE", 0, 1, 0, &insecure, error));
    CADRE_TRY(read_number("CADRE_CLUSTER_PORT", 1, UINT16_MAX, 0, &port, error));
    environment->cluster_port = (uint32_t)port;
    environment->cluster_wait_us = wait_s * CADRE_US_PER_S;
    environment->cluster_grace_us = grace_s * CADRE_US_PER_S;
    environment->cluster_insecure = insecure == 1;
    return getenv("CADRE_CLUSTER_KEY_FILE") == NULL
               ? CADRE_OK
               : read_text("CADRE_CLUSTER_KEY_FILE", "", environment->cluster_key_path,
                     sizeof environment->cluster_key_path, error);
}

static cadre_status read_role(enum role *ret_role, struct cadre_error *error)
{
    const char *text = getenv("CADRE_TASK_TYPE");
    *ret_role = ROLE_NONE;
    if (text == NULL) {
        return CADRE_OK;
    }
    for (enum role role = ROLE_CHIEF; role <= ROLE_EVALUATOR; role++) {
        if (strcmp(text, role_name(role)) == 0) {
            *ret_role = role;
            return CADRE_OK;
        }
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
        "CADRE_TASK_TYPE is '%.*s', which is no type of a task; it is chief, worker, ps or "
        "evaluator, and set by the worker daemon: unset it to run by hand",
        VALUE_SHOWN, text);
}

/* The variables of ps jobs, which only a daemon sets. */
static cadre_status read_ps_job(struct environment *environment, struct cadre_error *error)
{
    static const char *const required[] = {
        "CADRE_SOCKET", "CADRE_TASK_INDEX", "CADRE_WORKERS", "CADRE_SERVERS"};
    struct ps_job *ps_job = &environment->ps_job;
    uint64_t workers = 0;
    uint64_t servers = 0;
    uint64_t evaluators = 0;
    uint64_t backups = 0;
    uint64_t index = 0;
    uint64_t memory = UINT64_MAX;
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (getenv(required[i]) == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "CADRE_TASK_TYPE is set but %s is not; both are set by the worker daemon, unset "
                "CADRE_TASK_TYPE to run by hand",
                required[i]);
        }
    }
    CADRE_TRY(read_number("CADRE_WORKERS", 1, LIMIT_TASKS_PER_JOB, 1, &workers, error));
    CADRE_TRY(read_number("CADRE_SERVERS", 1, LIMIT_TASKS_PER_JOB, 1, &servers, error));
    CADRE_TRY(read_number("CADRE_EVALUATORS", 0, 1, 0, &evaluators, error));
    CADRE_TRY(read_number("CADRE_SERVER_BACKUPS", 0, 1, 0, &backups, error));
    *ps_job = (struct ps_job){.workers = (uint32_t)workers,
        .servers = (uint32_t)servers,
        .evaluators = (uint32_t)evaluators,
        .backups = backups == 1};
    uint32_t count = ps_job_role_count(ps_job, environment->role);
    if (count == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_TASK_TYPE is %s and CADRE_EVALUATORS is 0; both are set by the worker daemon, "
            "unset CADRE_TASK_TYPE to run by hand",
            role_name(environment->role));
    }
    CADRE_TRY(read_number("CADRE_TASK_INDEX", 0, count - 1, 0, &index, error));
    environment->index = (uint32_t)index;
    if (environment->role == ROLE_SERVER) {
        CADRE_TRY(read_number("CADRE_SERVER_MEMORY", 0, INT32_MAX, UINT64_MAX, &memory, error));
        environment->server_memory = memory == UINT64_MAX ? -1 : (int)memory;
    }
    return CADRE_OK;
}

/* The tasks of this ps job are made inside the program, by cadre_strategy_parameter_server. */
static cadre_status read_threads(struct environment *environment, struct cadre_error *error)
{
    uint64_t workers = 1;
    uint64_t servers = 1;
    CADRE_TRY(read_number("CADRE_WORKERS", 1, PS_THREADS_MAX, 1, &workers, error));
    CADRE_TRY(read_number("CADRE_SERVERS", 1, PS_THREADS_MAX, 1, &servers, error));
    environment->ps_job =
        (struct ps_job){.workers = (uint32_t)workers, .servers = (uint32_t)servers};
    return CADRE_OK;
}

/* The type and the index of a task of a ps job must be those of its slot. */
static cadre_status check_slot(const struct environment *environment, struct cadre_error *error)
{
    uint32_t slot = ps_job_first_slot(&environment->ps_job, environment->role) + environment->index;
    return environment->slot == slot
               ? CADRE_OK
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "CADRE_SLOT is %" PRIu32 ", and %s %" PRIu32 " of %" PRIu32
                     " workers and %" PRIu32 " servers has slot %" PRIu32
                     "; both are set by the worker daemon",
                     environment->slot, role_name(environment->role), environment->index,
                     environment->ps_job.workers, environment->ps_job.servers, slot);
}

/* The variables that only a daemon sets: all of them, or none. */
static cadre_status read_attachment(struct environment *environment, struct cadre_error *error)
{
    static const char *const required[] = {"CADRE_JOB", "CADRE_SLOT", "CADRE_INCARNATION"};
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        if (getenv(required[i]) == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "CADRE_SOCKET is set but %s is not; both are set by the worker daemon, unset "
                "CADRE_SOCKET to run by hand",
                required[i]);
        }
    }
    environment->attached = true;
    return read_text(
        "CADRE_SOCKET", "", environment->socket_path, sizeof environment->socket_path, error);
}

/* Which task of which job this is. In the ledger a ps job has one task, its chief. */
static cadre_status read_task_index(
    struct environment *environment, uint64_t *ret_tasks, struct cadre_error *error)
{
    uint64_t tasks_min = 1;
    uint64_t replicas = 0;
    uint64_t slot = 0;
    bool in_ps_job = environment->role != ROLE_NONE;
    CADRE_TRY(read_number("CADRE_TASKS", 1, LIMIT_TASKS_PER_JOB, 1, ret_tasks, error));
    uint64_t tasks = *ret_tasks;
    CADRE_TRY(read_number("CADRE_TASKS_MIN", 1, tasks, tasks, &tasks_min, error));
    CADRE_TRY(read_number("CADRE_REPLICAS", 0, LIMIT_REPLICAS_PER_TASK, 0, &replicas, error));
    CADRE_TRY(read_number("CADRE_JOB", 1, UINT64_MAX, 0, &environment->job, error));
    uint64_t slots = in_ps_job ? ps_job_task_count(&environment->ps_job) : tasks;
    CADRE_ASSERT(slots > 0);
    CADRE_TRY(read_number("CADRE_SLOT", 0, slots - 1, 0, &slot, error));
    CADRE_TRY(read_number("CADRE_INCARNATION", 1, UINT64_MAX, 1, &environment->incarnation, error));
    environment->slot = (uint32_t)slot;
    environment->tasks = in_ps_job ? 1 : (uint32_t)tasks;
    environment->tasks_min = in_ps_job ? 1 : (uint32_t)tasks_min;
    environment->replicas = (uint32_t)replicas;
    return CADRE_OK;
}

/* The address of its mesh listener, and where its files are. */
static cadre_status read_task_and_count(struct environment *environment, struct cadre_error *error)
{
    CADRE_TRY(read_text("CADRE_MESH_HOST", "127.0.0.1", environment->mesh_host,
        sizeof environment->mesh_host, error));
    environment->mesh_host_given = getenv("CADRE_MESH_HOST") != NULL;
    CADRE_TRY(port_range_parse(
        "CADRE_MESH_PORTS", getenv("CADRE_MESH_PORTS"), 1, &environment->mesh_ports, error));
    CADRE_TRY(read_text("CADRE_OUTPUT_DIR", ".", environment->output_folder,
        sizeof environment->output_folder, error));
    return read_checkpoints(environment, error);
}

static cadre_status read_verify(struct environment *environment, struct cadre_error *error)
{
    const char *text = getenv("CADRE_VERIFY_STATE");
    const char *losses = getenv("CADRE_VERIFY_LOSSES");
    environment->verify_off = text != NULL && strcmp(text, "off") == 0;
    environment->verify_losses = losses != NULL && strcmp(losses, "on") == 0;
    if (losses != NULL && !environment->verify_losses && strcmp(losses, "off") != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_VERIFY_LOSSES is '%.*s'; set it to on or off, or unset it", VALUE_SHOWN, losses);
    }
    if (environment->verify_losses && environment->verify_off) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_VERIFY_LOSSES is on and CADRE_VERIFY_STATE is off: what is not compared is "
            "never "
            "verified; unset one of them");
    }
    if (text == NULL || environment->verify_off) {
        return CADRE_OK;
    }
    struct cadre_error ignored;
    if (read_number("CADRE_VERIFY_STATE", 1, LIMIT_VERIFY_STEPS, 0, &environment->verify_every,
            &ignored) != CADRE_OK) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_VERIFY_STATE is '%.*s'; set it to off, or to the steps from one comparison of "
            "the replicas' states to the next, 1 to %d, or unset it",
            VALUE_SHOWN, text, LIMIT_VERIFY_STEPS);
    }
    return CADRE_OK;
}

static cadre_status read_neighbours(struct environment *environment, struct cadre_error *error)
{
    const char *text = getenv("CADRE_OBJECT_NEIGHBOURS");
    environment->object_neighbours = text != NULL && strcmp(text, "on") == 0;
    if (text != NULL && !environment->object_neighbours && strcmp(text, "off") != 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_OBJECT_NEIGHBOURS is '%.*s'; set it to on or off, or unset it", VALUE_SHOWN,
            text);
    }
    return CADRE_OK;
}

static cadre_status read_events(struct environment *environment, struct cadre_error *error)
{
    const char *text = getenv("CADRE_EVENTS");
    if (text == NULL) {
        environment->events = EVENTS_BESIDE_OUTPUTS;
    } else if (strcmp(text, "off") == 0) {
        environment->events = EVENTS_OFF;
    } else if (strcmp(text, "on") == 0) {
        environment->events = EVENTS_ON;
    } else if (text[0] == '/') {
        environment->events = EVENTS_ON;
        return read_text("CADRE_EVENTS", "", environment->events_folder,
            sizeof environment->events_folder, error);
    } else {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_EVENTS is '%.*s'; set it to on, off, or the absolute path of a folder for "
            "TensorBoard's event files, or unset it",
            VALUE_SHOWN, text);
    }
    return CADRE_OK;
}

static cadre_status read_limits(struct environment *environment, struct cadre_error *error)
{
    uint64_t backtrace = 1;
    uint64_t timeout_s = 0;
    CADRE_TRY(read_number("CADRE_BACKTRACE", 0, 1, 1, &backtrace, error));
    CADRE_TRY(read_number("CADRE_COLLECTIVE_TIMEOUT_S", 0, COLLECTIVE_TIMEOUT_S_MAX,
        COLLECTIVE_TIMEOUT_S, &timeout_s, error));
    CADRE_TRY(read_verify(environment, error));
    CADRE_TRY(read_neighbours(environment, error));
    environment->backtrace = backtrace == 1;
    environment->collective_timeout_us = timeout_s * CADRE_US_PER_S;
    return CADRE_OK;
}

cadre_status environment_read(struct environment *ret_environment, struct cadre_error *error)
{
    struct environment *environment = ret_environment;
    bool daemon = getenv("CADRE_SOCKET") != NULL;
    uint64_t tasks = 1;
    *environment = (struct environment){.server_memory = -1};
    CADRE_TRY(check_frame(error));
    CADRE_TRY(read_role(&environment->role, error));
    if (environment->role != ROLE_NONE) {
        CADRE_TRY(read_ps_job(environment, error));
    } else if (!daemon) {
        CADRE_TRY(read_threads(environment, error));
    }
    CADRE_TRY(read_task_index(environment, &tasks, error));
    CADRE_TRY(read_task_and_count(environment, error));
    CADRE_TRY(read_limits(environment, error));
    CADRE_TRY(read_events(environment, error));
    CADRE_TRY(read_strategy(environment->strategy, error));
    CADRE_TRY(daemon ? read_attachment(environment, error) : read_cluster(environment, error));
    CADRE_TRY(read_preemption(environment, error));
    if (tasks > 1 && !environment->attached) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "CADRE_TASKS is %" PRIu64 " but CADRE_SOCKET is not set: several tasks need a daemon, "
            "start them with `cadre run -n %" PRIu64 "`, or a cluster in TF_CONFIG",
            tasks, tasks);
    }
    environment->by_hand = !environment->attached;
    environment->output_asked = !environment->by_hand || getenv("CADRE_OUTPUT_DIR") != NULL;
    environment->checkpoints_asked =
        environment->output_asked || environment->checkpoint_folder[0] != '\0' ||
        environment->checkpoint_every > 0 || environment->restore_path[0] != '\0';
    CADRE_ASSERT(environment->tasks_min <= environment->tasks);
    return environment->role != ROLE_NONE ? check_slot(environment, error) : CADRE_OK;
}

void environment_alone(
    const struct environment *of, uint32_t replicas, struct environment *ret_environment)
{
    CADRE_ASSERT(of != ret_environment);
    *ret_environment = *of;
    ret_environment->attached = false;
    ret_environment->by_hand = true;
    ret_environment->job = 0;
    ret_environment->slot = 0;
    ret_environment->incarnation = 0;
    ret_environment->tasks = 1;
    ret_environment->tasks_min = 1;
    ret_environment->replicas = replicas;
    ret_environment->role = ROLE_NONE;
    ret_environment->index = 0;
    ret_environment->restore_path[0] = '\0';
    ret_environment->checkpoint_every = 0;
    ret_environment->preemption = false;
}
