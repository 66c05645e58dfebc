/* SPDX-License-Identifier: Apache-2.0
 * Runs a program with a deadline, and keeps its output and the end of its standard error. Called
 * by find_gpus.c. */
#include "worker/host/probe/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/utf8.h"
#include "worker/host/keeper/launch.h"

/* One that hangs in the kernel cannot be killed: after this it is left alone. */
#define DEATH_MS 2000

#define TAIL_BYTES 256

struct run {
    pid_t pid;
    int process; /* readable once it has ended */
    int outputs[2];
    struct child_output *output;
    char tail[TAIL_BYTES]; /* the end of its standard error */
    size_t tail_size;
    bool over; /* it printed more than the limit */
};

static void store_stderr_tail(struct run *run, const char *bytes, size_t size)
{
    if (size >= TAIL_BYTES) {
        bytes += size - TAIL_BYTES + 1;
        size = TAIL_BYTES - 1;
    }
    size_t kept = run->tail_size;
    if (kept + size >= TAIL_BYTES) {
        size_t gone = kept + size - TAIL_BYTES + 1;
        memmove(run->tail, run->tail + gone, kept - gone);
        kept -= gone;
    }
    memcpy(run->tail + kept, bytes, size);
    run->tail_size = kept + size;
}

static void store_output(struct run *run, const char *bytes, size_t size)
{
    struct child_output *output = run->output;
    run->over = run->over || size > CHILD_OUTPUT_BYTES_MAX - output->size;
    if (!run->over) {
        memcpy(output->bytes + output->size, bytes, size);
        output->size += size;
    }
}

/* Reads what is there now; the pipe is closed when no more can come. */
static void child_take(struct run *run, int which)
{
    char bytes[4096];
    ssize_t got = 1;
    while (run->outputs[which] >= 0 && got > 0) {
        got = read(run->outputs[which], bytes, sizeof bytes);
        if (got > 0 && which == 0) {
            store_output(run, bytes, (size_t)got);
        } else if (got > 0) {
            store_stderr_tail(run, bytes, (size_t)got);
        } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            close(run->outputs[which]);
            run->outputs[which] = -1;
        }
    }
}

/* The last text line of its standard error, made printable. */
static const char *stderr_tail(struct run *run)
{
    size_t end = run->tail_size;
    while (end > 0 && (run->tail[end - 1] == '\n' || run->tail[end - 1] == ' ')) {
        end--;
    }
    run->tail[end] = '\0';
    char *newline = memrchr(run->tail, '\n', end);
    char *text_line = newline != NULL ? newline + 1 : run->tail;
    size_t size = strlen(text_line);
    for (size_t at = 0; at < size;) {
        size_t length = utf8_printable(text_line + at, size - at);
        text_line[at] = length > 0 ? text_line[at] : '?';
        at += length > 0 ? length : 1;
    }
    return text_line;
}

/* Reads until it has ended; false: the deadline came first, or it printed too much. */
static bool child_follow(struct run *run, uint64_t deadline_us)
{
    for (;;) {
        uint64_t now_us = clock_monotonic_us();
        if (now_us >= deadline_us || run->over) {
            return false;
        }
        uint64_t left_ms = (deadline_us - now_us + 999) / 1000;
        struct pollfd waits[3] = {{.fd = run->process, .events = POLLIN},
            {.fd = run->outputs[0], .events = POLLIN}, {.fd = run->outputs[1], .events = POLLIN}};
        (void)poll(waits, 3, left_ms < INT32_MAX ? (int)left_ms : INT32_MAX);
        child_take(run, 0);
        child_take(run, 1);
        if ((waits[0].revents & POLLIN) != 0) {
            child_take(run, 0); /* its last output */
            child_take(run, 1);
            return !run->over;
        }
    }
}

static bool child_reap(struct run *run, int *ret_status)
{
    struct pollfd end = {.fd = run->process, .events = POLLIN};
    kill(-run->pid, SIGKILL); /* also processes that it has left behind */
    return poll(&end, 1, DEATH_MS) == 1 && waitpid(run->pid, ret_status, WNOHANG) == run->pid;
}

static cadre_status child_judge(struct run *run, const struct child *child, bool ended, bool reaped,
    int status, struct cadre_error *error)
{
    const char *tail = stderr_tail(run);
    const char *prints = tail[0] != '\0' ? ": " : "";
    if (run->over) {
        return cadre_error_set(error, CADRE_OUT_OF_RANGE,
            "%.200s, which looks for GPUs, printed more than %zu bytes", child->program,
            CHILD_OUTPUT_BYTES_MAX);
    }
    if (!ended) {
        return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
            "%.200s, which looks for GPUs, did not end within %g s%s%s%s", child->program,
            (double)child->timeout_us / 1e6, reaped ? "" : " and cannot be killed", prints, tail);
    }
    if (WIFSIGNALED(status)) {
        return cadre_error_set(error, CADRE_ABORTED,
            "%.200s, which looks for GPUs, was killed by signal %d%s%s", child->program,
            WTERMSIG(status), prints, tail);
    }
    if (WEXITSTATUS(status) != 0) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "%.200s, which looks for GPUs, ended with status %d%s%s", child->program,
            WEXITSTATUS(status), prints, tail);
    }
    return CADRE_OK;
}

static cadre_status child_start(
    const struct child *child, struct run *run, int writers[2], struct cadre_error *error)
{
    char json[] = "--json";
    char *argv[] = {(char *)(uintptr_t)child->program, json, NULL};
    const struct launch launch = {.program = child->program,
        .argv = argv,
        .environment = (char **)(uintptr_t)child->environment,
        .folder = "/",
        .outputs = {writers[0], writers[1]},
        .inherited = -1,
        .confinement = {.change_user = child->change_user, .uid = child->uid, .gid = child->gid}};
    int errnum = launch_process(&launch, &run->pid);
    if (errnum == 0) {
        run->process = pidfd_open(run->pid, 0);
        errnum = run->process < 0 ? errno : 0;
        if (errnum != 0) {
            kill(-run->pid, SIGKILL);
            (void)waitpid(run->pid, NULL, 0);
        }
    }
    return errnum == 0 ? CADRE_OK
                       : cadre_error_errno(error, errnum,
                             "%.200s, which looks for GPUs, cannot be run", child->program);
}

static cadre_status run_piped(const struct child *child, struct run *run, struct cadre_error *error)
{
    CADRE_CLOSE_AT_EXIT int out = -1;
    CADRE_CLOSE_AT_EXIT int err = -1;
    int pipes[2][2] = {{-1, -1}, {-1, -1}};
    for (int i = 0; i < 2; i++) {
        if (pipe2(pipes[i], O_CLOEXEC) != 0) {
            return cadre_error_errno(error, errno, "no pipe to look for GPUs by");
        }
        run->outputs[i] = pipes[i][0];
        *(i == 0 ? &out : &err) = pipes[i][1];
        (void)fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
    }
    uint64_t deadline_us = clock_monotonic_us() + child->timeout_us;
    CADRE_TRY(child_start(child, run, (int[2]){out, err}, error));
    close(out);
    close(err);
    out = err = -1; /* closed here, or reading would never end */
    int status = 0;
    bool ended = child_follow(run, deadline_us);
    bool reaped = child_reap(run, &status);
    return child_judge(run, child, ended && reaped, reaped, status, error);
}

cadre_status child_run(
    const struct child *child, struct child_output *ret_output, struct cadre_error *error)
{
    *ret_output = (struct child_output){.bytes = malloc(CHILD_OUTPUT_BYTES_MAX)};
    if (ret_output->bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to look for GPUs");
    }
    struct run run = {.process = -1, .outputs = {-1, -1}, .output = ret_output};
    cadre_status status = run_piped(child, &run, error);
    for (int i = 0; i < 2; i++) {
        if (run.outputs[i] >= 0) {
            close(run.outputs[i]);
        }
    }
    if (run.process >= 0) {
        close(run.process);
    }
    return status;
}
