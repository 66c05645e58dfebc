/* SPDX-License-Identifier: Apache-2.0
 * What a child says of the use of GPUs: each fault of an answer, and any bytes; and how such a
 * child is started. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "tests/lib/test.h"
#include "worker/host/probe/use_child.h"

#define COUNT 3

static struct gpu_sample samples[LIMIT_GPUS_PER_WORKER];
static struct host_gpus gpus;
static struct cadre_error error;

static cadre_status read_text(const char *text)
{
    memset(samples, 0xee, sizeof samples);
    return use_answer_read(text, strlen(text), samples, COUNT, &error);
}

static void what_is_known_is_read(void **state)
{
    (void)state;
    assert_ok(read_text("97,75161927680 -,- 0,0"), &error);
    assert_true(samples[0].has_percent && samples[0].has_memory);
    assert_int_equal(samples[0].percent, 97);
    assert_int_equal(samples[0].memory_bytes, 75161927680);
    assert_false(samples[1].has_percent || samples[1].has_memory);
    assert_int_equal(samples[1].percent, 0);
    assert_int_equal(samples[1].memory_bytes, 0);
    assert_true(samples[2].has_percent && samples[2].has_memory); /* 0 is known, too */
    assert_ok(read_text("100,- -,9223372036854775807 007,01"), &error);
    assert_true(samples[0].has_percent && !samples[0].has_memory);
    assert_int_equal(samples[1].memory_bytes, INT64_MAX);
    assert_ok(use_answer_read("", 0, samples, 0, &error), &error);
}

static void each_fault_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {{"", "GPU 0 of 3 has no PERCENT,BYTES at byte 0"},
        {"1,2", "GPU 1 of 3 has no PERCENT,BYTES at byte 3"}, {"1,2 3,4", "GPU 2 of 3 has no"},
        {"1,2 3,4 ", "GPU 2 of 3 has no"}, {"1,2 3,4 5,6 7,8", "more follows the values of 3 GPUs"},
        {"1,2 3,4 5,6 ", "more follows"}, {"1,2 3,4 5,6\r", "more follows"},
        {"101,2 3,4 5,6", "GPU 0 of 3"}, {"1,9223372036854775808 3,4 5,6", "GPU 0 of 3"},
        {"1,99999999999999999999999999 3,4 5,6", "GPU 0 of 3"},
        {"4294967297,1 3,4 5,6", "GPU 0 of 3"}, {"-1,2 3,4 5,6", "GPU 0 of 3"},
        {"+1,2 3,4 5,6", "GPU 0 of 3"}, {"1,-2 3,4 5,6", "GPU 1 of 3"},
        {"1, 2 3,4 5,6", "GPU 0 of 3"}, {"1,2  3,4 5,6", "GPU 1 of 3"},
        {" 1,2 3,4 5,6", "GPU 0 of 3"}, {"1;2 3,4 5,6", "GPU 0 of 3"},
        {"1.5,2 3,4 5,6", "GPU 0 of 3"}, {"nan,2 3,4 5,6", "GPU 0 of 3"},
        {"Driver/library version mismatch", "GPU 0 of 3"}, {",2 3,4 5,6", "GPU 0 of 3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_error(read_text(cases[i].text), CADRE_INVALID_ARGUMENT, &error, cases[i].message);
    }
    assert_error(use_answer_read("1,2\0003,4 5,6", 11, samples, COUNT, &error),
        CADRE_INVALID_ARGUMENT, &error, "GPU 1 of 3");
}

/* Changed bytes, and cut: what is accepted is within its limits. The bytes end where their memory
 * does, for the sanitizer. */
static void any_bytes(void **state)
{
    (void)state;
    static const char whole[] = "97,75161927680 -,- 100,9223372036854775807";
    static const char alphabet[] = "0123456789-, \n\0\377";
    struct prng prng = {.state = 25};
    unsigned accepted = 0;
    for (int turn = 0; turn < 20000; turn++) {
        size_t size = (size_t)prng_uniform(&prng, sizeof whole);
        size = turn % 3 == 0 ? size : sizeof whole - 1;
        char *bytes = malloc(size + 1);
        memcpy(bytes + 1, whole, size);
        for (uint64_t changes = prng_uniform(&prng, 4); changes > 0 && size > 0; changes--) {
            bytes[1 + prng_uniform(&prng, size)] =
                alphabet[prng_uniform(&prng, sizeof alphabet - 1)];
        }
        if (use_answer_read(bytes + 1, size, samples, COUNT, &error) == CADRE_OK) {
            accepted++;
            for (int i = 0; i < COUNT; i++) {
                assert_true(samples[i].percent <= 100 && samples[i].memory_bytes <= INT64_MAX);
                assert_true(samples[i].has_percent || samples[i].percent == 0);
                assert_true(samples[i].has_memory || samples[i].memory_bytes == 0);
            }
        }
        free(bytes);
    }
    assert_in_range(accepted, 100, 19000);
}

static void the_longest_answer_fits(void **state)
{
    (void)state;
    char text[USE_ANSWER_BYTES_MAX + 1];
    size_t size = 0;
    for (int i = 0; i < LIMIT_GPUS_PER_WORKER; i++) {
        size += (size_t)snprintf(
            text + size, sizeof text - size, "%s100,9223372036854775807", i > 0 ? " " : "");
    }
    assert_in_range(size + 1, 1, USE_ANSWER_BYTES_MAX); /* with its newline */
    assert_ok(use_answer_read(text, size, samples, LIMIT_GPUS_PER_WORKER, &error), &error);
}

/* ---- the child ---- */

static void set_program(const char *name, const char *content)
{
    char path[TEST_PATH_BYTES];
    test_path(path, test_temp_dir(), name);
    if (content != NULL) {
        test_write(path, content);
        assert_int_equal(chmod(path, 0755), 0);
    }
    setenv("CADRE_DEVICES_PROGRAM", path, 1);
}

static size_t read_to_newline(int socket, char *text, size_t room)
{
    size_t size = 0;
    while (size < room && (size == 0 || text[size - 1] != '\n')) {
        struct pollfd wait = {.fd = socket, .events = POLLIN};
        assert_int_equal(poll(&wait, 1, 60000), 1);
        ssize_t got = recv(socket, text + size, room - size, 0);
        assert_true(got > 0);
        size += (size_t)got;
    }
    text[size - 1] = '\0';
    return size;
}

static void a_child_gets_names_and_requests(void **state)
{
    (void)state;
    gpus = (struct host_gpus){.count = 4, .usable = 3};
    snprintf(gpus.devices[0].uuid, LIMIT_NAME_BYTES, "GPU-1");
    snprintf(gpus.devices[0].visible, LIMIT_NAME_BYTES, "GPU-1");
    snprintf(gpus.devices[1].uuid, LIMIT_NAME_BYTES, "GPU-2");
    snprintf(gpus.devices[1].visible, LIMIT_NAME_BYTES, "MIG-3");
    snprintf(gpus.devices[3].uuid, LIMIT_NAME_BYTES, "GPU-4"); /* no task gets it */
    set_program("names", "#!/bin/sh\nwhile read -r request; do echo \"$* [$request]\"; done\n"
                         "echo over\nexit 7\n");
    const struct use_child_setup setup = {.gpus = &gpus, .environment = environ};
    struct use_child child;
    char text[256];
    assert_ok(use_child_start(&setup, &child, &error), &error);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(send(child.socket, "\n", 1, MSG_NOSIGNAL), 1);
        (void)read_to_newline(child.socket, text, sizeof text);
        assert_string_equal(text, "--use -- GPU-1 MIG-3 - []");
    }
    assert_int_equal(shutdown(child.socket, SHUT_WR), 0);
    (void)read_to_newline(child.socket, text, sizeof text);
    assert_string_equal(text, "over");
    int status = 0;
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    struct pollfd ended = {.fd = child.process, .events = POLLIN};
    assert_int_equal(poll(&ended, 1, 0), 1);
    close(child.process);
    close(child.socket);
}

static void a_child_that_cannot_start(void **state)
{
    (void)state;
    const struct use_child_setup setup = {.gpus = &gpus, .environment = environ};
    struct use_child child;
    set_program("absent", NULL);
    assert_error(use_child_start(&setup, &child, &error), CADRE_NOT_FOUND, &error, "absent --use");
    set_program("broken", "#!/nonexistent/shell\n");
    assert_error(use_child_start(&setup, &child, &error), CADRE_NOT_FOUND, &error, "broken --use");
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_known_is_read),
        cmocka_unit_test(each_fault_is_named), cmocka_unit_test(any_bytes),
        cmocka_unit_test(the_longest_answer_fits),
        cmocka_unit_test(a_child_gets_names_and_requests),
        cmocka_unit_test(a_child_that_cannot_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
