/* SPDX-License-Identifier: Apache-2.0
 * The connection to a task's keeper on our loop: starts keepers, sends SIGNAL and END, and turns
 * their messages into calls of process.c. */
#include "worker/host/agent/agent_state.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "worker/host/agent/orphans.h"
#include "worker/host/keeper/start.h"

static void on_link_closed(uv_handle_t *handle)
{
    agent_task_handle_closed(handle->data);
}

static void close_link(struct agent_task *task)
{
    if (task->keeper_socket < 0) {
        return;
    }
    uv_poll_stop(&task->keeper);
    close(task->keeper_socket);
    task->keeper_socket = -1;
    uv_close((uv_handle_t *)&task->keeper, on_link_closed);
}

/* Waits for a keeper of ours that has closed its socket, so that it does not stay a zombie. One
 * that still runs is connected to another daemon, and waiting for it would block for ever: it is
 * killed, and the task with it. */
static void keeper_link_reap(struct agent_task *task)
{
    if (task->keeper_pid > 0) {
        kill(task->keeper_pid, SIGKILL);
        while (waitpid(task->keeper_pid, NULL, 0) < 0 && errno == EINTR) {
        }
        task->keeper_pid = 0;
    }
}

/* ---- its messages ---- */

static void fail_start(struct agent_task *task, int errnum)
{
    struct cadre_error error = {0};
    cadre_status status = process_explain(task, errnum, &error);
    task->gpu_slot = -1;
    task->reported = true; /* no further report follows */
    agent_task_failed(task->agent, task->ref, status == CADRE_NOT_FOUND ? 127 : 126, &error);
}

static void close_fds(const int fds[KEEPER_FDS])
{
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

static void on_hello(struct agent_task *task, pid_t pid, int fds[KEEPER_FDS])
{
    bool whole = fds[KEEPER_FD_STDOUT] >= 0 && fds[KEEPER_FD_STDERR] >= 0;
    if (whole && !task->has_process && !task->reaped && !task->forgotten) {
        process_started(task, pid, fds);
        fds[KEEPER_FD_STDOUT] = -1;
        fds[KEEPER_FD_STDERR] = -1;
        agent_step_after(
            task->agent, &(struct agent_event){
                             .type = AGENT_EVENT_SPAWNED, .task = task->ref, .pid = (uint32_t)pid});
        task_socket_read(task);
    }
    close_fds(fds);
}

static void on_message(
    struct agent_task *task, const struct keeper_message *message, int fds[KEEPER_FDS])
{
    if (message->type == KEEPER_HELLO) {
        on_hello(task, (pid_t)message->value, fds);
        return;
    }
    close_fds(fds);
    if (task->forgotten) {
        return;
    }
    if (message->type == KEEPER_FAILED && !task->has_process && !task->reported) {
        fail_start(task, (int)message->value);
    } else if (message->type == KEEPER_ENDED && task->has_process) {
        process_ended(task, (int)message->value);
    } else if (message->type == KEEPER_SWEPT && task->reaped) {
        process_swept(task);
    }
}

/* The kernel has killed the task with its keeper. This agent has to end what the task had
 * started. */
static void on_process_lost(struct agent_task *task)
{
    agent_notice(task->agent, task->ref, "the keeper of the task was killed, and the task with it");
    orphans_kill(task->socket_path, NULL);
    task->agent->strays = true;
    (void)raise(SIGCHLD); /* finds them, also when none has died yet */
    process_ended(task, SIGKILL);
}

/* The keeper has exited, or is of another version. */
static void on_keeper_lost(struct agent_task *task, int why)
{
    close_link(task);
    keeper_link_reap(task);
    if (task->forgotten || task->reported) {
        return;
    }
    if (task->has_process) {
        on_process_lost(task);
    }
    if (task->reaped) {
        process_swept(task);
    } else {
        fail_start(task, why == EPIPE ? ECHILD : why);
    }
}

static void on_keeper(uv_poll_t *poll, int status, int events)
{
    struct agent_task *task = poll->data;
    (void)events;
    int failed = status < 0 ? EPIPE : 0;
    while (failed == 0 && task->keeper_socket >= 0) {
        struct keeper_message message;
        int fds[KEEPER_FDS];
        failed = keeper_receive(task->keeper_socket, &message, fds);
        if (failed == 0) {
            on_message(task, &message, fds);
        }
    }
    if (failed == EMFILE && !task->reported) {
        keeper_link_send(task, KEEPER_END, 0); /* we cannot read what it would write */
        fail_start(task, EMFILE);
    } else if (failed != 0 && failed != EAGAIN) {
        on_keeper_lost(task, failed);
    }
}

/* ---- its start and its end ---- */

cadre_status keeper_link_attach(struct agent_task *task, int socket, struct cadre_error *error)
{
    int result = uv_poll_init(task->agent->loop, &task->keeper, socket);
    if (result != 0) {
        close(socket);
        return cadre_error_errno(error, -result, "cannot listen to a task's keeper");
    }
    task->keeper_socket = socket;
    task->keeper.data = task;
    agent_task_handle_opened(task);
    result = uv_poll_start(&task->keeper, UV_READABLE, on_keeper);
    if (result != 0) {
        close_link(task);
        return cadre_error_errno(error, -result, "cannot listen to a task's keeper");
    }
    return CADRE_OK;
}

cadre_status keeper_link_start(
    struct agent_task *task, const struct keeper_launch *launch, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *mark = NULL;
    int socket = -1;
    if (asprintf(&mark, "CADRE_SOCKET=%s", task->socket_path) < 0) {
        mark = NULL;
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a task's keeper");
    }
    CADRE_TRY(keeper_start(task->agent->keeper_program, launch, task->memory, mark, &socket,
        &task->keeper_pid, error));
    cadre_status status = keeper_link_attach(task, socket, error); /* else the keeper reads the end
                                                                    * of the connection */
    if (status != CADRE_OK) {
        task->keeper_pid = 0;
    }
    return status;
}

void keeper_link_send(struct agent_task *task, uint32_t type, int64_t value)
{
    if (task->keeper_socket >= 0) {
        (void)keeper_send(task->keeper_socket,
            &(struct keeper_message){.type = type, .value = value}, NULL, 0); /* its exit closes
                                                                               * the connection */
    }
}

void keeper_link_end(struct agent_task *task)
{
    keeper_link_send(task, KEEPER_END, 0);
    if (task->keeper_socket >= 0 && task->keeper_pid > 0) {
        kill(task->keeper_pid, SIGCONT); /* in case it was stopped */
    }
}
