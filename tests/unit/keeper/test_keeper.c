/* SPDX-License-Identifier: Apache-2.0
 * The keeper of a task, run as a program: its messages to each daemon that connects, how long it
 * waits for one, and which users it serves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "worker/host/keeper/start.h"
#include "worker/host/keeper/messages.h"

#define PATIENCE_MS 60000
#define AN_HOUR_MS  (UINT64_C(3600) * 1000)
#define OTHER_UID   65534 /* a uid that is not ours */

/* One that a test has started, and the daemon's side of its connection. */
struct kept {
    char path[TEST_PATH_BYTES];
    pid_t pid;
    pid_t task;
    bool ended; /* by its last HELLO */
    int socket; /* -1: hung up */
    int output; /* the task's */
};

static void close_fds(const int fds[KEEPER_FDS])
{
    for (size_t i = 0; i < KEEPER_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
}

/* The next word; fails the test when it is another one. */
static struct keeper_message receive(
    const struct kept *kept, uint32_t type, int ret_fds[KEEPER_FDS])
{
    struct keeper_message message = {0};
    struct pollfd wait = {.fd = kept->socket, .events = POLLIN};
    int fds[KEEPER_FDS];
    assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
    assert_int_equal(keeper_receive(kept->socket, &message, fds), 0);
    assert_int_equal(message.type, type);
    if (ret_fds != NULL) {
        memcpy(ret_fds, fds, sizeof fds);
    } else {
        close_fds(fds);
    }
    return message;
}

static void say(const struct kept *kept, uint32_t type, int64_t value)
{
    assert_int_equal(
        keeper_send(kept->socket, &(struct keeper_message){.type = type, .value = value}, NULL, 0),
        0);
}

static void receive_hello(struct kept *kept)
{
    int fds[KEEPER_FDS];
    struct keeper_message hello = receive(kept, KEEPER_HELLO, fds);
    kept->task = (pid_t)hello.value;
    kept->ended = hello.ended != 0;
    if (kept->output < 0) {
        kept->output = fds[KEEPER_FD_STDOUT];
        fds[KEEPER_FD_STDOUT] = -1;
    }
    close_fds(fds);
}

static void start_program(struct kept *kept, const char *name, char **argv, bool terminal,
    uint64_t orphan_ms, uint64_t grace_ms)
{
    struct cadre_error error = {0};
    char *environment[] = {NULL};
    *kept = (struct kept){.socket = -1, .output = -1};
    struct keeper_launch launch = {.launch = {.program = argv[0],
                                       .argv = argv,
                                       .environment = environment,
                                       .folder = "/",
                                       .inherited = -1,
                                       .terminal = terminal},
        .listen = test_path(kept->path, test_temp_dir(), name),
        .orphan_ms = orphan_ms,
        .grace_ms = grace_ms};
    char *program = keeper_program();
    assert_non_null(program);
    assert_ok(keeper_start(program, &launch, -1, "TEST=keeper", &kept->socket, &kept->pid, &error),
        &error);
    free(program);
    receive_hello(kept);
}

static void start(struct kept *kept, const char *name, const char *verb, const char *argument,
    uint64_t orphan_ms, uint64_t grace_ms)
{
    char *argv[] = {(char *)(uintptr_t)TEST_PROGRAM, (char *)(uintptr_t)verb,
        (char *)(uintptr_t)argument, NULL};
    start_program(kept, name, argv, false, orphan_ms, grace_ms);
}

static void close_connection(struct kept *kept)
{
    close(kept->socket);
    kept->socket = -1;
}

/* As the next daemon does. */
static void come(struct kept *kept)
{
    struct cadre_error error = {0};
    assert_ok(keeper_connect(kept->path, &kept->socket, &error), &error);
    receive_hello(kept);
}

/* Reads what the task prints up to this line. */
static void until_printed(const struct kept *kept, const char *line)
{
    char text[256] = "";
    size_t size = 0;
    while (strstr(text, line) == NULL) {
        struct pollfd wait = {.fd = kept->output, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
        ssize_t got = read(kept->output, text + size, sizeof text - 1 - size);
        assert_true(got > 0);
        size += (size_t)got;
    }
}

static bool is_process_gone(void *data)
{
    const struct kept *kept = data;
    return kill(kept->task, 0) != 0 && errno == ESRCH;
}

/* It goes, and its socket with it. */
static void until_keeper_gone(struct kept *kept)
{
    int status = 0;
    assert_int_equal(waitpid(kept->pid, &status, 0), kept->pid);
    assert_int_equal(status, 0);
    assert_int_not_equal(access(kept->path, F_OK), 0);
    assert_true(is_process_gone(kept));
    close(kept->output);
    if (kept->socket >= 0) {
        close(kept->socket);
    }
}

static void end(struct kept *kept)
{
    say(kept, KEEPER_END, 0);
    until_keeper_gone(kept);
}

/* Each daemon that connects receives how the task ended, also when another one has received it
 * before. */
static void each_daemon_receives_the_end(void **state)
{
    (void)state;
    struct kept kept;
    start(&kept, "reported", "end-on-term", NULL, AN_HOUR_MS, AN_HOUR_MS);
    until_printed(&kept, "ready");
    say(&kept, KEEPER_SIGNAL, SIGTERM);
    for (int i = 0; i < 3; i++) {
        struct keeper_message ended = receive(&kept, KEEPER_ENDED, NULL);
        assert_true(WIFEXITED((int)ended.value));
        assert_int_equal(WEXITSTATUS((int)ended.value), 7);
        receive(&kept, KEEPER_SWEPT, NULL);
        close_connection(&kept);
        come(&kept);
        assert_true(kept.ended);
    }
    end(&kept);
}

/* The older one is cut, and no message goes to it or comes from it. */
static void the_newest_connection_counts(void **state)
{
    (void)state;
    struct kept kept;
    struct keeper_message message;
    int fds[KEEPER_FDS];
    start(&kept, "newest", "end-on-term", NULL, AN_HOUR_MS, AN_HOUR_MS);
    until_printed(&kept, "ready");
    struct kept older = kept;
    come(&kept);
    assert_int_equal(kept.task, older.task);
    assert_false(kept.ended);
    assert_int_equal(keeper_receive(older.socket, &message, fds), EPIPE);
    close(older.socket);
    say(&kept, KEEPER_SIGNAL, SIGTERM);
    assert_int_equal(WEXITSTATUS((int)receive(&kept, KEEPER_ENDED, NULL).value), 7);
    end(&kept);
}

static void release(const char *fifo)
{
    int fd = open(fifo, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "r", 1), 1);
    close(fd);
}

static const char *make_fifo(char buffer[TEST_PATH_BYTES], const char *name)
{
    test_path(buffer, test_temp_dir(), name);
    assert_int_equal(mkfifo(buffer, 0600), 0);
    return buffer;
}

/* No daemon connects: the task gets SIGTERM, and has the whole grace for it. A daemon that
 * connects in time receives how it ended. */
static void a_task_without_a_daemon_has_its_grace(void **state)
{
    (void)state;
    struct kept kept;
    char fifo[TEST_PATH_BYTES];
    start(&kept, "grace", "end-slowly", make_fifo(fifo, "go"), 1, AN_HOUR_MS);
    until_printed(&kept, "ready");
    close_connection(&kept);
    until_printed(&kept, "term");
    come(&kept);
    release(fifo);
    struct keeper_message ended = receive(&kept, KEEPER_ENDED, NULL);
    assert_true(WIFEXITED((int)ended.value));
    assert_int_equal(WEXITSTATUS((int)ended.value), 9);
    end(&kept);
}

/* So does one whose keeper gets SIGTERM from an administrator. */
static void a_keeper_that_gets_sigterm_grants_the_grace(void **state)
{
    (void)state;
    struct kept kept;
    char fifo[TEST_PATH_BYTES];
    start(&kept, "down", "end-slowly", make_fifo(fifo, "go"), AN_HOUR_MS, AN_HOUR_MS);
    until_printed(&kept, "ready");
    close_connection(&kept);
    assert_int_equal(kill(kept.pid, SIGTERM), 0);
    until_printed(&kept, "term");
    come(&kept);
    release(fifo);
    assert_int_equal(WEXITSTATUS((int)receive(&kept, KEEPER_ENDED, NULL).value), 9);
    end(&kept);
}

#define ORPHAN_MS 200
#define GRACE_MS  300

/* One that does not heed it is killed after both times, and not before. */
static void it_is_killed_after_the_grace(void **state)
{
    (void)state;
    struct kept kept;
    start(&kept, "killed", "ignore-term", NULL, ORPHAN_MS, GRACE_MS);
    until_printed(&kept, "ready");
    uint64_t began_us = clock_monotonic_us();
    close_connection(&kept);
    assert_true(test_wait(is_process_gone, &kept, PATIENCE_MS * CADRE_US_PER_MS));
    assert_true(clock_monotonic_us() - began_us >= (ORPHAN_MS + GRACE_MS) * CADRE_US_PER_MS);
    until_keeper_gone(&kept);

    start(&kept, "killed-down", "ignore-term", NULL, AN_HOUR_MS, GRACE_MS);
    until_printed(&kept, "ready");
    began_us = clock_monotonic_us();
    assert_int_equal(kill(kept.pid, SIGTERM), 0);
    struct keeper_message ended = receive(&kept, KEEPER_ENDED, NULL);
    assert_true(clock_monotonic_us() - began_us >= GRACE_MS * CADRE_US_PER_MS);
    assert_int_equal(WTERMSIG((int)ended.value), SIGKILL);
    receive(&kept, KEEPER_SWEPT, NULL); /* it stays for the daemon that is connected */
    end(&kept);
}

/* A daemon that comes back in time ends the wait for one: what would have ended the task then does
 * end another, later. */
static void who_comes_in_time_keeps_the_task(void **state)
{
    (void)state;
    struct kept kept;
    struct kept other;
    struct keeper_message message;
    int fds[KEEPER_FDS];
    const uint64_t orphan_ms = 3000;
    start(&kept, "in-time", "end-on-term", NULL, orphan_ms, AN_HOUR_MS);
    start(&other, "too-late", "end-on-term", NULL, orphan_ms, AN_HOUR_MS);
    until_printed(&kept, "ready");
    until_printed(&other, "ready");
    close_connection(&kept);
    come(&kept);
    close_connection(&other);
    until_keeper_gone(&other);
    assert_int_equal(keeper_receive(kept.socket, &message, fds), EAGAIN);
    assert_false(is_process_gone(&kept));
    say(&kept, KEEPER_SIGNAL, SIGTERM);
    assert_int_equal(WEXITSTATUS((int)receive(&kept, KEEPER_ENDED, NULL).value), 7);
    end(&kept);
}

/* ---- other users ---- */

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path) + 1;
    assert_true(size <= sizeof address.sun_path);
    memcpy(address.sun_path, path, size);
    return address;
}

/* 0: it was let in; 1: its connection was closed without a word. */
_Noreturn static void connect_as_other_user(const char *path)
{
    struct sockaddr_un address = address_of(path);
    char bytes[sizeof(struct keeper_message)];
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (setgid(OTHER_UID) != 0 || setuid(OTHER_UID) != 0 ||
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        _exit(2);
    }
    _exit(recv(fd, bytes, sizeof bytes, 0) > 0 ? 0 : 1);
}

/* Whatever the permissions of the socket have become. */
static void another_user_is_not_let_in(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip(); /* no other user can be played */
    }
    struct kept kept;
    struct stat file;
    char folder[TEST_PATH_BYTES];
    int status = 0;
    start(&kept, "private", "end-on-term", NULL, AN_HOUR_MS, AN_HOUR_MS);
    until_printed(&kept, "ready");
    assert_int_equal(stat(kept.path, &file), 0);
    assert_int_equal(file.st_mode & 0777, 0600);
    memcpy(folder, kept.path, sizeof folder);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(chmod(kept.path, 0666), 0);
    pid_t other_user = fork();
    if (other_user == 0) {
        connect_as_other_user(kept.path);
    }
    assert_int_equal(waitpid(other_user, &status, 0), other_user);
    assert_int_equal(WEXITSTATUS(status), 1);
    say(&kept, KEEPER_SIGNAL, SIGTERM); /* the first daemon keeps its connection */
    assert_int_equal(WEXITSTATUS((int)receive(&kept, KEEPER_ENDED, NULL).value), 7);
    end(&kept);
}

/* Where a keeper is expected; it says on `ready` that it listens. 0: the peer sent nothing. */
_Noreturn static void listen_as_other_user(const char *path, int ready)
{
    struct sockaddr_un address = address_of(path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (setgid(OTHER_UID) != 0 || setuid(OTHER_UID) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0 ||
        write(ready, "r", 1) != 1) {
        _exit(2);
    }
    int came = accept(fd, NULL, NULL);
    char byte;
    _exit(came >= 0 && recv(came, &byte, 1, 0) == 0 ? 0 : 1);
}

static void a_daemon_heeds_no_keeper_of_another_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        skip();
    }
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    char byte;
    int fds[2];
    int socket = -1;
    int status = 0;
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    test_path(path, folder, "theirs");
    pid_t other_user = fork();
    if (other_user == 0) {
        listen_as_other_user(path, fds[1]);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    assert_error(keeper_connect(path, &socket, &error), CADRE_PERMISSION_DENIED, &error,
        "runs as user 65534, not as this daemon's 0");
    assert_int_equal(socket, -1);
    assert_int_equal(waitpid(other_user, &status, 0), other_user);
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* What is printed while no daemon is there is read by the next one, to the end. */
static void a_terminal_is_kept_for_the_next_daemon(void **state)
{
    (void)state;
    struct kept kept;
    char script[] = "trap 'test -t 2 && printf kept >&2; exit 7' TERM; test -t 1 && echo ready;"
                    " while :; do sleep 0.05; done";
    char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, script, NULL};
    start_program(&kept, "terminal", argv, true, AN_HOUR_MS, AN_HOUR_MS);
    until_printed(&kept, "ready\n");
    say(&kept, KEEPER_SIGNAL, SIGTERM);
    close_connection(&kept);
    close(kept.output);
    kept.output = -1;
    come(&kept);
    assert_true(isatty(kept.output));
    until_printed(&kept, "kept");
    assert_int_equal(WEXITSTATUS((int)receive(&kept, KEEPER_ENDED, NULL).value), 7);
    receive(&kept, KEEPER_SWEPT, NULL);
    char byte;
    assert_int_equal(read(kept.output, &byte, 1), -1);
    assert_int_equal(errno, EIO); /* no process has it open */
    end(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_daemon_receives_the_end),
        cmocka_unit_test(a_terminal_is_kept_for_the_next_daemon),
        cmocka_unit_test(the_newest_connection_counts),
        cmocka_unit_test(a_task_without_a_daemon_has_its_grace),
        cmocka_unit_test(a_keeper_that_gets_sigterm_grants_the_grace),
        cmocka_unit_test(it_is_killed_after_the_grace),
        cmocka_unit_test(who_comes_in_time_keeps_the_task),
        cmocka_unit_test(another_user_is_not_let_in),
        cmocka_unit_test(a_daemon_heeds_no_keeper_of_another_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
