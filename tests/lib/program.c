/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/program.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/speed.h"
#include "tests/lib/test.h"

#define LOOK_EVERY_MS 20

extern char **environ;

static int memory_file(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* True when `entry` ("NAME=value") sets a variable that one of `ours` sets as well. */
static bool is_replaced(const char *entry, const char *const *ours)
{
    size_t length = strcspn(entry, "=") + 1;
    for (; *ours != NULL; ours++) {
        if (strncmp(entry, *ours, length) == 0) {
            return true;
        }
    }
    return false;
}

/* Our environment with the program's own on top; only the array is allocated. */
static char **join_environment(const char *const *ours)
{
    static const char *const none[] = {NULL};
    ours = ours != NULL ? ours : none;
    size_t count = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        count++;
    }
    for (const char *const *entry = ours; *entry != NULL; entry++) {
        count++;
    }
    char **joined = calloc(count + 1, sizeof *joined);
    assert_non_null(joined);
    size_t used = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (!is_replaced(*entry, ours)) {
            joined[used++] = *entry;
        }
    }
    for (; *ours != NULL; ours++) {
        joined[used++] = (char *)*ours;
    }
    return joined;
}

void program_start(const struct program_spec *spec, struct program *ret_program)
{
    int in_fd = memory_file("in");
    *ret_program = (struct program){.pidfd = -1};
    ret_program->out_fd = memory_file("out");
    ret_program->err_fd = memory_file("err");
    if (spec->input_bytes > 0) {
        assert_int_equal(write(in_fd, spec->input, spec->input_bytes), (ssize_t)spec->input_bytes);
        assert_int_equal(lseek(in_fd, 0, SEEK_SET), 0);
    }
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in_fd, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ret_program->out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ret_program->err_fd, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    char **environment = join_environment(spec->environment);
    int errnum = posix_spawnp(&ret_program->pid, spec->argv[0], &actions, &attributes,
        (char *const *)spec->argv, environment);
    free(environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(in_fd);
    if (errnum != 0) {
        close(ret_program->out_fd);
        close(ret_program->err_fd);
        *ret_program = (struct program){0};
        fail_msg("cannot start %s: %s", spec->argv[0], strerror(errnum));
    }
    ret_program->pidfd = pidfd_open(ret_program->pid, 0);
    assert_true(ret_program->pidfd >= 0);
}

/* What was written so far. Reads by offset: the descriptor's own belongs to the program too. */
static char *content(int fd, size_t *ret_bytes)
{
    struct stat facts;
    assert_int_equal(fstat(fd, &facts), 0);
    size_t size = (size_t)facts.st_size;
    char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    ssize_t count = pread(fd, bytes, size, 0);
    *ret_bytes = count > 0 ? (size_t)count : 0;
    bytes[*ret_bytes] = '\0';
    return bytes;
}

static bool has_ended(const struct program *program)
{
    struct pollfd item = {.fd = program->pidfd, .events = POLLIN};
    return poll(&item, 1, 0) == 1;
}

struct text_wait {
    struct program *program;
    int fd;
    const char *text;
    bool found;
};

static bool found_or_ended(void *data)
{
    struct text_wait *wait = data;
    bool ended = has_ended(wait->program); /* asked before the last look at the output */
    size_t size = 0;
    char *bytes = content(wait->fd, &size);
    wait->found = memmem(bytes, size, wait->text, strlen(wait->text)) != NULL;
    free(bytes);
    return wait->found || ended;
}

bool program_wait_text(
    struct program *program, bool from_error, const char *text, uint64_t deadline_us)
{
    struct text_wait wait = {
        .program = program, .fd = from_error ? program->err_fd : program->out_fd, .text = text};
    test_wait(found_or_ended, &wait, deadline_us);
    return wait.found;
}

void program_signal(struct program *program, int signal)
{
    if (program->pid > 0 && signal != 0) {
        kill(program->pid, signal);
    }
}

/* False when the program still runs at the deadline. */
static bool wait_end(const struct program *program, uint64_t deadline_us)
{
    struct pollfd item = {.fd = program->pidfd, .events = POLLIN};
    struct patience patience = patience_begin(deadline_us);
    for (;;) {
        if (poll(&item, 1, LOOK_EVERY_MS) > 0) {
            return true;
        }
        if (patience_is_over(&patience)) {
            return false;
        }
    }
}

void program_finish(
    struct program *program, uint64_t deadline_us, struct program_result *ret_result)
{
    int status = 0;
    *ret_result = (struct program_result){.exit_code = -1};
    ret_result->timed_out = !wait_end(program, deadline_us);
    kill(-program->pid, SIGKILL); /* the children, and at the deadline the program itself */
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    program->pid = 0;
    if (WIFEXITED(status)) {
        ret_result->exit_code = WEXITSTATUS(status);
    } else {
        ret_result->signal = WTERMSIG(status);
    }
    ret_result->out = content(program->out_fd, &ret_result->out_bytes);
    ret_result->err = content(program->err_fd, &ret_result->err_bytes);
    program_close(program);
}

void program_close(struct program *program)
{
    if (program->pid > 0) {
        kill(-program->pid, SIGKILL);
        waitpid(program->pid, NULL, 0);
    }
    if (program->out_fd > 0) {
        close(program->pidfd);
        close(program->out_fd);
        close(program->err_fd);
    }
    *program = (struct program){0};
}

void program_run(const struct program_spec *spec, struct program_result *ret_result)
{
    struct program program;
    program_start(spec, &program);
    program_finish(&program, PROGRAM_DEADLINE_US, ret_result);
}

void program_result_free(struct program_result *result)
{
    free(result->out);
    free(result->err);
    *result = (struct program_result){0};
}
