/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes an agent: its memory, handles and tasks, which are freed with their last
 * handle. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/host/agent/agent_state.h"
#include "worker/host/agent/ps_memory.h"
#include "worker/host/keeper/start.h"
#include "worker/host/isolate/process_stat.h"
#include "worker/host/keeper/task.h"

static void free_agent(struct agent *agent)
{
    while (agent->deferred != NULL) {
        struct deferred *next = agent->deferred->next;
        free(agent->deferred);
        agent->deferred = next;
    }
    free(agent->name);
    free(agent->host);
    free(agent->mesh_host);
    free(agent->keeper_program);
    free(agent->core_memory);
    free(agent->actions);
    free(agent->refs);
    free(agent->kept);
    ps_memory_close(agent);
    wire_arena_free(agent->arena);
    wire_buffer_free(&agent->frame);
    free(agent);
}

void agent_handle_closed(struct agent *agent)
{
    CADRE_ASSERT(agent->handles > 0);
    agent->handles--;
    if (agent->handles > 0) {
        return;
    }
    void (*closed)(void *) = agent->closed;
    void *user = agent->closed_user;
    free_agent(agent);
    closed(user);
}

static void free_task(struct agent_task *task)
{
    if (task->bound >= 0) {
        close(task->bound);
    }
    wire_arena_free(task->arena);
    free(task->program);
    free(task->folder);
    free(task->output);
    free(task->socket_path);
    free(task->restore);
    free(task->object_folder);
    free(task->temporary);
    free(task->keeper_path);
    free(task);
}

void agent_task_free_if_closed(struct agent_task *task)
{
    if (task->handles == 0 && task->forgotten) {
        free_task(task);
    }
}

void agent_task_handle_opened(struct agent_task *task)
{
    task->handles++;
    task->agent->handles++;
}

void agent_task_handle_closed(struct agent_task *task)
{
    struct agent *agent = task->agent;
    CADRE_ASSERT(task->handles > 0);
    task->handles--;
    agent_task_free_if_closed(task);
    agent_handle_closed(agent);
}

static cadre_status check_setup(const struct agent_setup *setup, struct cadre_error *error)
{
    if (setup->core.slots < 1 || setup->core.slots > LIMIT_SLOTS_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "one host runs 1 to %d tasks at once, not %u", LIMIT_SLOTS_PER_WORKER,
            setup->core.slots);
    }
    if (setup->core.heartbeat_us == 0) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "the time between heartbeats must not be 0");
    }
    return CADRE_OK;
}

static cadre_status new_agent(
    const struct agent_setup *setup, struct agent **ret_agent, struct cadre_error *error)
{
    struct agent *agent = calloc(1, sizeof *agent);
    if (agent == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for the agent");
    }
    *agent = (struct agent){.setup = *setup,
        .name = strdup(setup->identity.name),
        .host = strdup(setup->identity.host),
        .mesh_host = strdup(setup->mesh_host),
        .keeper_program = keeper_program(),
        .core_memory = calloc(1, agent_core_bytes(setup->core.slots)),
        .action_capacity = AGENT_ACTIONS_PER_STEP_MAX(setup->core.slots),
        .refs = calloc(AGENT_ENTRIES(setup->core.slots), sizeof *agent->refs),
        .kept = calloc(AGENT_ENTRIES(setup->core.slots), sizeof *agent->kept),
        .arena = wire_arena_new(LIMIT_UNPACK_BYTES)};
    agent->actions = calloc(agent->action_capacity, sizeof *agent->actions);
    agent->deferred_tail = &agent->deferred;
    if (agent->name == NULL || agent->host == NULL || agent->mesh_host == NULL ||
        agent->keeper_program == NULL || agent->core_memory == NULL || agent->actions == NULL ||
        agent->refs == NULL || agent->kept == NULL || agent->arena == NULL) {
        free_agent(agent);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for an agent of %u slots", setup->core.slots);
    }
    agent->core = agent_core_init(agent->core_memory, &setup->core);
    *ret_agent = agent;
    return CADRE_OK;
}

void agent_set_term(struct agent *agent, const struct term *term, uint64_t log_index)
{
    agent->term = *term;
    agent->log_index = log_index;
}

bool agent_is_occupied(const struct agent *agent)
{
    return agent->tasks != NULL || agent->memories != NULL;
}

cadre_status agent_set_mesh_host(struct agent *agent, const char *host, struct cadre_error *error)
{
    char *copy = strdup(host);
    if (copy == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for an address");
    }
    free(agent->mesh_host);
    agent->mesh_host = copy;
    return CADRE_OK;
}

static void ignore_broken_pipes(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
        signal(SIGPIPE, SIG_IGN);
    }
}

/* Spares keepers, and processes of our own session: those that this one forked for itself
 * (worker/host/isolate/uid_cleanup.h). No task, and no process of one, is in our session. */
static bool is_spared(pid_t pid, const void *user)
{
    const struct agent *agent = user;
    struct process_stat process_stat;
    if (process_stat_read(pid, &process_stat) && process_stat.session == getsid(0)) {
        return true;
    }
    const struct agent_task *task = agent->tasks;
    while (task != NULL && task->keeper_pid != pid) {
        task = task->next;
    }
    return task != NULL;
}

/* Keepers that have exited are found by their sockets. */
static void on_child(uv_signal_t *handle, int number)
{
    (void)number;
    struct agent *agent = handle->data;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    agent->strays = agent->strays && strays_kill(is_spared, agent) > 0;
}

cadre_status agent_open(const struct agent_setup *setup, struct uv_loop_s *loop,
    const struct agent_callbacks *callbacks, void *user, struct agent **ret_agent,
    struct cadre_error *error)
{
    struct agent *agent = NULL;
    CADRE_TRY(check_setup(setup, error));
    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
        return cadre_error_set(error, CADRE_UNIMPLEMENTED, "the kernel offers no child subreaper");
    }
    CADRE_TRY(new_agent(setup, &agent, error));
    ignore_broken_pipes();
    agent->loop = loop;
    agent->callbacks = *callbacks;
    agent->user = user;
    uv_timer_init(loop, &agent->tick);
    uv_signal_init(loop, &agent->child);
    agent->handles = 2; /* those of tasks are counted as they come */
    agent->tick.data = agent;
    agent->child.data = agent;
    uv_signal_start(&agent->child, on_child, SIGCHLD);
    agent_arm_tick(agent);
    *ret_agent = agent;
    return CADRE_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    agent_handle_closed(handle->data);
}

static void close_handles(struct agent *agent)
{
    uv_close((uv_handle_t *)&agent->tick, on_handle_closed);
    uv_close((uv_handle_t *)&agent->child, on_handle_closed);
}

void agent_close(struct agent *agent, void (*done)(void *user), void *user)
{
    if (agent == NULL) {
        done(user);
        return;
    }
    CADRE_ASSERT(!agent->acting);
    agent->closing = true;
    agent->closed = done;
    agent->closed_user = user;
    uv_timer_stop(&agent->tick);
    while (agent->tasks != NULL) {
        agent_forget(agent, agent->tasks->ref); /* a handle of the task's stays open until its
                                                 * processes have ended */
    }
    close_handles(agent);
}
