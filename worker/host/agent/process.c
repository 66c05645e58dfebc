/* SPDX-License-Identifier: Apache-2.0
 * A task's process, by the reports of its keeper: its start, its output, its end. Called by
 * agent.c for the core's actions and by keeper_link.c for reports. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/host/agent/agent_state.h"

/* How long, after the process has ended, its pipes may stay open and strays may run: longer only
 * what the kernel does not kill. */
#define DRAIN_MS 500

/* More than any pipe holds: the most that is read when a pipe is given up. */
#define REMAINING_BYTES_MAX ((size_t)1024 * 1024)

#define READ_BYTES ((size_t)64 * 1024)

static void store_last_text_line(struct last_text_line *text_line, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n' || bytes[i] == '\r') { /* progress bars print one text line again
                                                     * and again */
            text_line->ended = text_line->ended || text_line->size > 0;
            continue;
        }
        if (text_line->ended) {
            text_line->size = 0;
            text_line->ended = false;
        }
        if (text_line->size < sizeof text_line->text - 1) {
            text_line->text[text_line->size++] = bytes[i];
        }
    }
    text_line->text[text_line->size] = '\0';
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    (void)handle;
    (void)suggested;
    buffer->base = malloc(READ_BYTES);
    buffer->len = buffer->base != NULL ? READ_BYTES : 0;
}

/* The reason why the kernel ended it comes before its last text line. */
static void end_group(struct agent_task *task)
{
    struct task_cgroup *group = &task->confinement.group;
    const struct job_limits *limits = &task->start.spec.limits;
    const struct cgroup_limits asked = {.memory_bytes = limits->memory_bytes, .pids = limits->pids};
    struct cgroup_usage report;
    if (group->kind == CGROUP_NONE) {
        return;
    }
    cgroup_usage(group, &report);
    cgroup_explain(&report, &asked, task->exit.code != 0 || task->exit.signal != 0,
        task->last_text_line.text, sizeof task->last_text_line.text);
    if (!cgroup_kill(group, 0) || !cgroup_remove(group)) {
        agent_notice(task->agent, task->ref, "the task's control group %s cannot be removed",
            group->folders[0]);
    }
    group->kind = CGROUP_NONE;
}

bool process_finish(struct agent_task *task)
{
    /* Its last message may still be in its socket: the reason of its end, maybe. */
    bool waits =
        task->pipes_open > 0 || task->connection != NULL || (!task->swept && !task->drained);
    if (!task->reaped || waits || task->reported) {
        return false;
    }
    task->reported = true;
    uv_timer_stop(&task->drain);
    end_group(task);
    struct agent_event event = {.type = AGENT_EVENT_EXITED, .task = task->ref, .exit = task->exit};
    memcpy(event.exit.text, task->last_text_line.text, sizeof event.exit.text);
    agent_step(task->agent, &event);
    return true;
}

static void on_pipe_closed(uv_handle_t *handle)
{
    struct agent_task *task = handle->data;
    task->pipes_open--;
    if (!task->forgotten) {
        process_finish(task);
    }
    agent_task_handle_closed(task);
}

static void close_pipe(uv_pipe_t *pipe)
{
    if (!uv_is_closing((uv_handle_t *)pipe)) {
        uv_close((uv_handle_t *)pipe, on_pipe_closed);
    }
}

static void pass_output(
    struct agent_task *task, const uv_pipe_t *pipe, const char *bytes, size_t size)
{
    enum agent_stream which = pipe == &task->pipes[0] ? AGENT_STDOUT : AGENT_STDERR;
    if (which == AGENT_STDERR || task->start.spec.terminal) {
        store_last_text_line(&task->last_text_line, bytes, size);
    }
    task->agent->callbacks.output(
        task->agent->user, task->ref, which, (const uint8_t *)bytes, size);
}

static void on_output(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct agent_task *task = stream->data;
    if (size > 0 && !task->forgotten) {
        pass_output(task, (uv_pipe_t *)stream, buffer->base, (size_t)size);
    }
    free(buffer->base);
    if (size < 0) {
        close_pipe((uv_pipe_t *)stream);
    }
}

/* Reads what is in the pipe now, and nothing that comes after. True: a process still holds it
 * open. */
static bool read_remaining(struct agent_task *task, uv_pipe_t *pipe)
{
    char bytes[4096];
    uv_os_fd_t fd;
    ssize_t got = 1;
    if (uv_is_closing((uv_handle_t *)pipe) || uv_fileno((uv_handle_t *)pipe, &fd) != 0) {
        return false;
    }
    for (size_t total = 0; got > 0 && total < REMAINING_BYTES_MAX; total += (size_t)got) {
        got = read(fd, bytes, sizeof bytes); /* it does not block */
        if (got > 0) {
            pass_output(task, pipe, bytes, (size_t)got);
        }
    }
    return got != 0 && !(got < 0 && errno == EIO); /* a terminal that no process has open */
}

static void on_drained(uv_timer_t *timer)
{
    struct agent_task *task = timer->data;
    task->drained = true;
    if (task->pipes_open > 0) {
        bool open = false;
        for (int i = 0; i < 2; i++) {
            open = read_remaining(task, &task->pipes[i]) || open;
            close_pipe(&task->pipes[i]);
        }
        if (open) { /* else reading was only paused */
            agent_notice(task->agent, task->ref,
                "a process that the task left behind holds its output open; what it writes from "
                "now on is dropped");
        }
        task_socket_drop(task);
        return; /* the end of uv_close() calls this again */
    }
    if (task->connection != NULL) {
        agent_notice(task->agent, task->ref,
            "a process that the task left behind holds its connection open");
        task_socket_drop(task);
        return;
    }
    agent_notice(task->agent, task->ref, "a process that the task left behind cannot be killed");
    process_finish(task);
}

static void on_handle_closed(uv_handle_t *handle)
{
    agent_task_handle_closed(handle->data);
}

void process_ended(struct agent_task *task, int status)
{
    task->has_process = false;
    task->reaped = true;
    task->exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    task->exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    uv_timer_start(&task->drain, on_drained, DRAIN_MS, 0);
    process_finish(task);
}

void process_swept(struct agent_task *task)
{
    task->swept = true;
    process_finish(task);
}

void process_signal(struct agent_task *task, int signal)
{
    if (task->has_process) {
        keeper_link_send(task, KEEPER_SIGNAL, signal);
    }
}

static void open_handles(struct agent_task *task)
{
    uv_loop_t *loop = task->agent->loop;
    for (int i = 0; i < 2; i++) {
        uv_pipe_init(loop, &task->pipes[i], 0);
        task->pipes[i].data = task;
        agent_task_handle_opened(task);
    }
    task->pipes_open = 2;
    uv_timer_init(loop, &task->drain);
    task->drain.data = task;
    agent_task_handle_opened(task);
}

static void read_pipe(struct agent_task *task, int i)
{
    if (!task->output_paused) {
        uv_read_start((uv_stream_t *)&task->pipes[i], on_room, on_output);
    }
}

void process_set_output_paused(struct agent_task *task, bool held)
{
    task->output_paused = held;
    for (int i = 0; i < 2 && task->drain.data != NULL; i++) {
        uv_stream_t *pipe = (uv_stream_t *)&task->pipes[i];
        if (held) {
            uv_read_stop(pipe);
        } else if (!uv_is_closing((uv_handle_t *)pipe)) {
            read_pipe(task, i);
        }
    }
}

void process_started(struct agent_task *task, pid_t pid, const int fds[2])
{
    open_handles(task);
    task->pid = pid;
    task->has_process = true;
    for (int i = 0; i < 2; i++) {
        if (uv_pipe_open(&task->pipes[i], fds[i]) == 0) {
            read_pipe(task, i);
        } else { /* the loop cannot poll the pipe: its output is lost, the task runs */
            close(fds[i]);
            close_pipe(&task->pipes[i]);
        }
    }
}

/* The reason why a program does not start, in one sentence, as shells give it. */
cadre_status process_explain(const struct agent_task *task, int errnum, struct cadre_error *error)
{
    const char *name = task->start.spec.program.name;
    if (errnum < 0) {
        return cadre_error_errno(
            error, -errnum, "cannot start %s in the folder %s", name, task->folder);
    }
    switch (errnum) {
    case ENOENT:
        return cadre_error_set(error, CADRE_NOT_FOUND,
            "cannot start %s: no such program, or the interpreter that its first line names is not "
            "on this host",
            name);
    case EACCES:
        return cadre_error_set(error, CADRE_PERMISSION_DENIED,
            "cannot start %s: it is not executable for the user that tasks run as", name);
    case ENOEXEC:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cannot start %s: it is no program for this host (another architecture, or no "
            "executable)",
            name);
    case E2BIG:
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "cannot start %s: its arguments and environment are longer than this host allows",
            name);
    case ENXIO:
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cannot start %s on a terminal (--tty): this host gives none; mount devpts at "
            "/dev/pts, or leave --tty out",
            name);
    case EPROTO:
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "cannot start %s: the program cadre-keeper here is of another version than "
            "cadre-worker; "
            "install both of one version",
            name);
    default:
        return cadre_error_errno(error, errnum, "cannot start %s", name);
    }
}

static char **make_argv(const struct agent_task *task)
{
    char **argv = calloc(task->start.spec.argument_count + 2, sizeof *argv);
    if (argv != NULL) {
        argv[0] = task->program;
        for (size_t i = 0; i < task->start.spec.argument_count; i++) {
            argv[i + 1] = (char *)(uintptr_t)task->start.spec.arguments[i];
        }
    }
    return argv;
}

static cadre_status process_start(struct agent_task *task, char **argv, char **environment,
    const struct wire_buffer *note, struct cadre_error *error)
{
    const struct agent_setup *setup = &task->agent->setup;
    struct keeper_launch launch = {.launch = {.program = task->program,
                                       .argv = argv,
                                       .environment = environment,
                                       .folder = task->folder,
                                       .terminal = task->start.spec.terminal,
                                       .confinement = task->confinement},
        .listen = task->keeper_path,
        .orphan_ms = setup->core.orphan_us / 1000,
        .grace_ms = setup->core.grace_us / 1000,
        .note = note->bytes,
        .note_bytes = note->size};
    return keeper_link_start(task, &launch, error);
}

cadre_status process_spawn(struct agent_task *task, struct cadre_error *error)
{
    struct environment environment = {0};
    struct wire_buffer note = {0};
    char **argv = make_argv(task);
    cadre_status status = argv != NULL ? environment_of_task(&environment, task, error)
                                       : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                             "no memory for the task's arguments");
    if (status == CADRE_OK) {
        status = adopt_note(task, &note, error);
    }
    if (status == CADRE_OK) {
        status = process_start(task, argv, environment.items, &note, error);
    }
    wire_buffer_free(&note);
    environment_free(&environment);
    free(argv);
    return status;
}

void process_close(struct agent_task *task)
{
    keeper_link_end(task);
    task->has_process = false;
    if (task->drain.data == NULL) {
        return; /* it has no process yet */
    }
    close_pipe(&task->pipes[0]);
    close_pipe(&task->pipes[1]);
    uv_close((uv_handle_t *)&task->drain, on_handle_closed);
}
