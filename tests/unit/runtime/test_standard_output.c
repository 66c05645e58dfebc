/* SPDX-License-Identifier: Apache-2.0
 * How stdout is buffered after cadre_init: each case is a child of its own, whose stdout is a pipe
 * or a file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test.h"
#include "worker/library/runtime/program/standard_output.h"

enum buffering { BY_NEWLINE = 1, FULL, NONE };

static char own_buffer[65536];

/* In the child: what `prepare` does, then cadre_init's call; the exit status is the buffering. */
static void report(void (*prepare)(void))
{
    prepare();
    standard_output_begin();
    size_t pending = __fpending(stdout);
    printf("x");
    bool unbuffered = pending == 0 && __fpending(stdout) == 0;
    _exit(__flbf(stdout) != 0 ? BY_NEWLINE : unbuffered ? NONE : FULL);
}

/* Runs a case with stdout at `fd`, which it closes. */
static int buffering_on(int fd, void (*prepare)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fd, STDOUT_FILENO);
        stdout = fdopen(STDOUT_FILENO, "w"); /* a stream as at a program's start */
        report(prepare);
    }
    close(fd);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int buffering_on_pipe(void (*prepare)(void), char ret_text[64])
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    int buffering = buffering_on(ends[1], prepare);
    ssize_t got = read(ends[0], ret_text, 63);
    ret_text[got > 0 ? got : 0] = '\0';
    close(ends[0]);
    return buffering;
}

static void nothing(void)
{
}

static void print_before(void)
{
    printf("before");
}

static void choose_full(void)
{
    setvbuf(stdout, NULL, _IOFBF, 0);
}

static void choose_full_and_print(void)
{
    setvbuf(stdout, own_buffer, _IOFBF, sizeof own_buffer);
    printf("before");
}

static void choose_none(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
}

static void use_stdbuf(void)
{
    setenv("_STDBUF_O", "0", 1);
}

static void a_pipe_gets_each_line(void **state)
{
    (void)state;
    int ends[2];
    char text[64];
    assert_int_equal(buffering_on_pipe(nothing, text), BY_NEWLINE);
    assert_string_equal(text, "");
    assert_int_equal(buffering_on_pipe(print_before, text), BY_NEWLINE);
    assert_string_equal(text, "before");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(buffering_on(ends[1], nothing), BY_NEWLINE);
    close(ends[0]);
}

static void the_program_s_choice_stays(void **state)
{
    (void)state;
    char text[64];
    assert_int_equal(buffering_on_pipe(choose_full, text), FULL);
    assert_int_equal(buffering_on_pipe(choose_full_and_print, text), FULL);
    assert_string_equal(text, "");
    assert_int_equal(buffering_on_pipe(choose_none, text), NONE);
    assert_string_equal(text, "x");
    assert_int_equal(buffering_on_pipe(use_stdbuf, text), FULL); /* as it was */
}

static void a_file_stays_as_it_is(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(buffering_on(dup(fileno(file)), nothing), FULL);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipe_gets_each_line),
        cmocka_unit_test(the_program_s_choice_stays),
        cmocka_unit_test(a_file_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
