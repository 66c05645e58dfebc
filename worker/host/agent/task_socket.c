/* SPDX-License-Identifier: Apache-2.0
 * The Unix socket on which one task is served. The path shows which task connects: each task has
 * its own, and only its user may open it. One connection at a time; a second one is refused with
 * a message. Called by agent.c for the core's actions. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "worker/host/agent/agent_state.h"
#include "worker/host/isolate/process_stat.h"

#define READ_BYTES ((size_t)64 * 1024)

/* The most that may wait for a program that does not read; without a bound the queue would grow
 * for ever. */
#define UNREAD_BYTES_MAX ((size_t)2 * LIMIT_FRAME_BYTES)

/* Logs through a rate limit, because a program can cause such an event in a loop. */
__attribute__((format(printf, 2, 3))) static void task_socket_note(
    struct agent_task *task, const char *format, ...)
{
    char text[LIMIT_TEXT_BYTES];
    uint64_t suppressed;
    if (!log_ratelimit_allow(&task->log_ratelimit, clock_monotonic_us(), &suppressed)) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (suppressed > 0) {
        agent_notice(task->agent, task->ref, "%s (and %" PRIu64 " times what is not shown)", text,
            suppressed);
    } else {
        agent_notice(task->agent, task->ref, "%s", text);
    }
}

struct write_request {
    uv_write_t request;
    uint8_t bytes[];
};

static void take_arrival(struct task_connection *connection);

static void on_connection_closed(uv_handle_t *handle)
{
    struct task_connection *connection = handle->data;
    struct agent_task *task = connection->task;
    struct task_connection **at = &task->connections;
    while (*at != connection) {
        at = &(*at)->next;
    }
    *at = connection->next;
    mailboxes_leave(connection);
    frame_reader_free(&connection->reader);
    free(connection);
    if (!task->forgotten) {
        process_finish(task);
    }
    agent_task_handle_closed(task);
}

/* Ends a connection; it is taken off the task first, so that a new one may come. */
static void agent_task_socket_drop(struct task_connection *connection)
{
    struct agent_task *task = connection->task;
    if (task->connection == connection) {
        task->connection = NULL;
    }
    if (!uv_is_closing((uv_handle_t *)&connection->pipe)) {
        uv_close((uv_handle_t *)&connection->pipe, on_connection_closed);
    }
}

static void on_connection_lost(struct task_connection *connection)
{
    struct agent_task *task = connection->task;
    bool was_open = task->connection == connection;
    if (was_open && !task->agent->acting) {
        take_arrival(connection); /* sent before its end, like the frames */
    }
    agent_task_socket_drop(connection);
    if (was_open && !task->forgotten) {
        agent_step_after(
            task->agent, &(struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = task->ref});
    }
}

void task_socket_drop(struct agent_task *task)
{
    if (task->connection != NULL) {
        on_connection_lost(task->connection);
    }
}

static void on_written(uv_write_t *request, int status)
{
    (void)status; /* the reading side notices a broken connection */
    free(request);
}

static void on_written_last(uv_write_t *request, int status)
{
    struct task_connection *connection = request->handle->data;
    on_written(request, status);
    agent_task_socket_drop(connection);
}

/* Queues what does not fit into the socket now. */
static void queue_write(
    struct task_connection *connection, const void *bytes, size_t size, bool last)
{
    struct write_request *write = malloc(sizeof *write + size);
    if (write == NULL) {
        on_connection_lost(connection);
        return;
    }
    memcpy(write->bytes, bytes, size);
    uv_buf_t buffer = uv_buf_init((char *)write->bytes, (unsigned)size);
    if (uv_write(&write->request, (uv_stream_t *)&connection->pipe, &buffer, 1,
            last ? on_written_last : on_written) != 0) {
        free(write);
        if (last) {
            agent_task_socket_drop(connection);
        }
    }
}

/* A release goes to every task of the job: mostly there is room, and one system call does it. */
static void write_bytes(struct task_connection *connection, const uint8_t *bytes, size_t size)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)size);
    int written = uv_try_write((uv_stream_t *)&connection->pipe, &buffer, 1);
    size_t done = written > 0 ? (size_t)written : 0;
    if (done < size) {
        queue_write(connection, bytes + done, size - done, false);
    }
}

static bool task_socket_pack(struct agent_task *task, const struct task_down *down)
{
    struct cadre_error error = {0};
    wire_buffer_clear(&task->agent->frame);
    if (frame_pack_task_down(down, &task->agent->frame, &error) != CADRE_OK) {
        task_socket_note(task, "a message to the task was dropped: %s", error.text);
        return false;
    }
    return true;
}

void task_socket_send(struct agent_task *task, const struct task_down *down)
{
    if (task->connection == NULL ||
        (down->type == TASK_DOWN_RELEASE && mailboxes_release(task->connection, &down->release)) ||
        !task_socket_pack(task, down)) {
        return;
    }
    const uv_stream_t *stream = (const uv_stream_t *)&task->connection->pipe;
    if (uv_stream_get_write_queue_size(stream) > UNREAD_BYTES_MAX) {
        task_socket_note(task, "the program does not read its messages: its connection is closed");
        on_connection_lost(task->connection);
        return;
    }
    task->connection->frames_sent++;
    write_bytes(task->connection, task->agent->frame.bytes, task->agent->frame.size);
}

static void agent_task_socket_refuse(
    struct task_connection *connection, cadre_status code, const char *text)
{
    struct agent_task *task = connection->task;
    struct task_down down = {.type = TASK_DOWN_REFUSED, .refused = {.code = code, .text = text}};
    uv_read_stop((uv_stream_t *)&connection->pipe);
    if (task->connection == connection) {
        task->connection = NULL;
    }
    if (task_socket_pack(task, &down)) {
        queue_write(connection, task->agent->frame.bytes, task->agent->frame.size, true);
    } else {
        agent_task_socket_drop(connection);
    }
}

void task_socket_refuse(struct agent_task *task, cadre_status code, const char *text)
{
    task_socket_note(task, "the program's connection was refused: %s", text);
    if (task->connection != NULL) {
        agent_task_socket_refuse(task->connection, code, text);
    }
}

/* What the program sent is not of the protocol: its connection ends. */
static void refuse_message(
    struct task_connection *connection, cadre_status code, const char *kind, const char *text)
{
    struct agent_task *task = connection->task;
    task_socket_note(task, "%s of the program is refused: %s", kind, text);
    agent_task_socket_refuse(connection, code, text);
    agent_step(
        task->agent, &(struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = task->ref});
}

static void handle_frame(struct task_connection *connection, const uint8_t *payload, size_t size)
{
    struct agent_task *task = connection->task;
    struct agent *agent = task->agent;
    struct cadre_error error = {0};
    struct task_up up;
    wire_arena_reset(agent->arena);
    cadre_status status = wire_unpack_task_up(payload, size, agent->arena, &up, &error);
    if (status != CADRE_OK) {
        refuse_message(connection, status, "a frame", error.text);
        return;
    }
    agent_step(
        agent, &(struct agent_event){.type = AGENT_EVENT_TASK_UP, .task = task->ref, .up = &up});
}

/* The arrival in the connection's mailbox, if there is a new one, into the core. */
static void take_arrival(struct task_connection *connection)
{
    struct agent_task *task = connection->task;
    struct task_up up = {.type = TASK_UP_ARRIVE};
    if (!task->has_process && !task->reaped) {
        return; /* the core does not have it as running: as task_socket_read() */
    }
    enum mailbox_read read = mailboxes_next(connection, &up.arrive);
    if (read == MAILBOX_WRONG) {
        refuse_message(connection, CADRE_INVALID_ARGUMENT, "an arrival in the mailbox",
            "a number is out of its range");
    } else if (read == MAILBOX_MESSAGE) {
        agent_step(task->agent,
            &(struct agent_event){.type = AGENT_EVENT_TASK_UP, .task = task->ref, .up = &up});
    }
}

/* The frames that are whole, and what was written to the mailbox between them; stops when one of
 * them ended the connection. */
static void handle_frames(struct task_connection *connection)
{
    struct agent_task *task = connection->task;
    struct cadre_error error = {0};
    const uint8_t *payload;
    size_t size;
    cadre_status status = CADRE_OK;
    while (task->connection == connection && !task->forgotten &&
           (status = frame_reader_next(&connection->reader, &payload, &size, &error)) == CADRE_OK) {
        take_arrival(connection);
        if (task->connection == connection && !task->forgotten) {
            handle_frame(connection, payload, size);
            connection->frames_handled++;
        }
    }
    if (task->connection == connection && !task->forgotten) {
        take_arrival(connection);
    }
    if (task->connection == connection && status != CADRE_PENDING && status != CADRE_OK) {
        task_socket_note(task, "the program's frames are refused: %s", error.text);
        agent_task_socket_refuse(connection, status, error.text);
        agent_step(
            task->agent, &(struct agent_event){.type = AGENT_EVENT_TASK_CLOSED, .task = task->ref});
    }
}

/* The first eight bytes; false while they are not whole or when they ended the connection. */
static bool handle_preamble(struct task_connection *connection, const uint8_t **bytes, size_t *size)
{
    size_t missing = FRAME_PREAMBLE_BYTES - connection->preamble_size;
    size_t taken = *size < missing ? *size : missing;
    memcpy(connection->preamble + connection->preamble_size, *bytes, taken);
    connection->preamble_size += taken;
    *bytes += taken;
    *size -= taken;
    if (connection->preamble_size < FRAME_PREAMBLE_BYTES) {
        return false;
    }
    struct cadre_error error = {0};
    if (taken > 0 && frame_preamble_check(connection->preamble,
                         connection->task->start.spec.program.name, &error) != CADRE_OK) {
        task_socket_note(connection->task, "%s", error.text);
        agent_task_socket_drop(connection);
        return false;
    }
    return true;
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    buffer->base = malloc(READ_BYTES);
    buffer->len = buffer->base != NULL ? READ_BYTES : 0;
}

static void on_bytes(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct task_connection *connection = stream->data;
    if (got < 0) {
        free(buffer->base);
        on_connection_lost(connection);
        return;
    }
    const uint8_t *bytes = (const uint8_t *)buffer->base;
    size_t size = (size_t)got;
    if (size > 0 && handle_preamble(connection, &bytes, &size) && size > 0) {
        uint8_t *room = frame_reader_room(&connection->reader, size);
        if (room == NULL) {
            on_connection_lost(connection);
        } else {
            memcpy(room, bytes, size);
            frame_reader_commit(&connection->reader, size);
            handle_frames(connection);
        }
    }
    free(buffer->base);
}

/* Checks the peer, because another task of the same job runs as the same user. */
static bool is_of_task(const struct task_connection *connection)
{
    struct agent_task *task = connection->task;
    const struct task_confinement *owner = &task->confinement;
    struct peer peer = {0};
    uv_os_fd_t fd;
    if (uv_fileno((const uv_handle_t *)&connection->pipe, &fd) == 0 &&
        peer_is_task(fd, owner->change_user ? owner->uid : geteuid(),
            task->pid > 0 ? task->pid : task->keeper_pid, &owner->group, &peer)) {
        return true;
    }
    task_socket_note(task,
        "process %ld of user %u, which is none of the task's, was refused its connection",
        (long)peer.pid, (unsigned)peer.uid);
    return false;
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct agent_task *task = listener->data;
    struct task_connection *connection = status == 0 ? calloc(1, sizeof *connection) : NULL;
    if (connection == NULL) {
        return;
    }
    connection->task = task;
    connection->next = task->connections;
    task->connections = connection;
    uv_pipe_init(task->agent->loop, &connection->pipe, 0);
    connection->pipe.data = connection;
    agent_task_handle_opened(task);
    if (uv_accept(listener, (uv_stream_t *)&connection->pipe) != 0) {
        agent_task_socket_drop(connection);
        return;
    }
    if (task->agent->setup.checks_peers && !is_of_task(connection)) {
        agent_task_socket_drop(connection);
        return;
    }
    static const struct mailboxes_callbacks callbacks = {
        .take = take_arrival, .closed = agent_handle_closed};
    if (task->connection != NULL || !mailboxes_greet(connection, &callbacks)) {
        uint8_t preamble[FRAME_PREAMBLE_BYTES];
        frame_preamble_write(preamble);
        write_bytes(connection, preamble, sizeof preamble);
    }
    if (task->connection != NULL) {
        agent_task_socket_refuse(connection, CADRE_ALREADY_EXISTS,
            "another process of this task is connected already: only one process of a task may "
            "call cadre_init");
        return;
    }
    task->connection = connection;
    task_socket_read(task);
}

void task_socket_read(struct agent_task *task)
{
    bool started = task->has_process || task->reaped;
    if (task->connection != NULL && started) {
        uv_read_start((uv_stream_t *)&task->connection->pipe, on_room, on_bytes);
    }
}

static void on_listener_closed(uv_handle_t *handle)
{
    agent_task_handle_closed(handle->data);
}

cadre_status task_socket_listen(struct agent_task *task, struct cadre_error *error)
{
    uv_pipe_init(task->agent->loop, &task->listener, 0);
    task->listener.data = task;
    task->listening = true;
    agent_task_handle_opened(task);
    int result = uv_pipe_open(&task->listener, task->bound);
    if (result == 0) {
        task->bound = -1;
        result = uv_listen((uv_stream_t *)&task->listener, 4, on_connection);
    }
    if (result != 0) {
        return cadre_error_errno(error, -result, "cannot serve the task on %s", task->socket_path);
    }
    return CADRE_OK;
}

void task_socket_close(struct agent_task *task)
{
    struct task_connection *next;
    for (struct task_connection *at = task->connections; at != NULL; at = next) {
        next = at->next; /* also those that never read their refusal */
        agent_task_socket_drop(at);
    }
    if (task->log_ratelimit.suppressed > 0) {
        agent_notice(task->agent, task->ref,
            "what it did on its socket was not shown %" PRIu64 " times",
            task->log_ratelimit.suppressed);
        task->log_ratelimit.suppressed = 0;
    }
    if (task->listening) {
        task->listening = false;
        uv_close((uv_handle_t *)&task->listener, on_listener_closed);
    }
}
