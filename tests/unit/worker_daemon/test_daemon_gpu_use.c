/* SPDX-License-Identifier: Apache-2.0
 * The states of the child that answers for GPUs: scripts answer well, wrongly, too much, late or
 * never, and exit; what is known follows, nothing waits, and no second child runs beside the first.
 */
#include "worker/host/daemon/gpu_use.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/probe/slot_gpus.h"

#define LOOP_TURN_US (5 * CADRE_US_PER_MS)

static struct daemon fixture;
static struct slot_gpus gpus;
static struct gpu_use *use;
static char starts[TEST_PATH_BYTES]; /* a file to which each child appends a byte when it begins */
static const struct gpus_range both = {.first = 0, .end = 2};

/* Opens it with a script of this body: `serve ANSWER` answers every request. */
static void open_use(const char *body)
{
    char path[TEST_PATH_BYTES];
    char content[1024];
    const char *folder = test_temp_dir();
    struct cadre_error error = {0};
    test_path(starts, folder, "starts");
    snprintf(content, sizeof content,
        "#!/bin/sh\nprintf x >>%s\nserve() { while read -r request; do echo \"$1\"; done; }\n%s\n",
        starts, body);
    test_write(starts, "");
    test_write(test_path(path, folder, "cadre-devices"), content);
    assert_int_equal(chmod(path, 0755), 0);
    setenv("CADRE_DEVICES_PROGRAM", path, 1);
    gpus.host = (struct host_gpus){.count = 2, .usable = 2};
    for (int i = 0; i < 2; i++) {
        snprintf(gpus.host.devices[i].uuid, LIMIT_NAME_BYTES, "GPU-%d", i);
    }
    fixture = (struct daemon){.gpus = &gpus, .options = {.gpu_timeout_us = 600 * CADRE_US_PER_S}};
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    assert_ok(gpu_use_open(&fixture, &use, &error), &error);
}

static void close_use(void)
{
    gpu_use_close(use);
    rpc_loop_close(fixture.loop);
    gpu_use_free(use);
    while (waitpid(-1, NULL, 0) > 0) { /* killed, and not waited for by any agent here */
    }
    assert_int_equal(errno, ECHILD);
}

static void turn_loop(void)
{
    static bool never;
    (void)rpc_loop_run_until(fixture.loop, &never, clock_monotonic_us() + LOOP_TURN_US);
}

static struct resource_usage usage_now(struct gpus_range range)
{
    struct resource_usage usage = {.has_memory = true, .memory_bytes = 5};
    gpu_use_add(use, range, &usage);
    assert_true(usage.has_memory && usage.memory_bytes == 5); /* others' values stay */
    return usage;
}

static size_t start_count(void)
{
    struct stat found;
    assert_int_equal(stat(starts, &found), 0);
    return (size_t)found.st_size;
}

static bool wanted; /* whether a task has a GPU, while a test waits */

static bool is_known(void *data)
{
    (void)data;
    gpu_use_turn(use, wanted);
    turn_loop();
    return usage_now(both).has_gpu;
}

static bool is_unknown(void *data)
{
    return !is_known(data);
}

static bool has_started(void *data)
{
    (void)is_known(NULL);
    return start_count() >= *(const size_t *)data;
}

static bool no_child_is_left(void *data)
{
    (void)is_known(data);
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void wait_for(bool (*condition)(void *data), void *data)
{
    assert_true(test_wait(condition, data, 60 * CADRE_US_PER_S));
}

static void values_are_the_mean_and_the_sum(void **state)
{
    (void)state;
    open_use("serve '97,1000 10,24'");
    struct resource_usage usage = usage_now(both);
    assert_false(usage.has_gpu || usage.has_gpu_memory); /* nothing was asked yet */
    for (int i = 0; i < 5; i++) {
        gpu_use_turn(use, false); /* no task has a GPU: no child */
        turn_loop();
    }
    assert_int_equal(start_count(), 0);
    wanted = true;
    wait_for(is_known, NULL);
    usage = usage_now(both);
    assert_true(usage.has_gpu && usage.has_gpu_memory);
    assert_int_equal(usage.gpu_percent, 54); /* 53.5 */
    assert_int_equal(usage.gpu_memory_bytes, 1024);
    usage = usage_now((struct gpus_range){.first = 1, .end = 2});
    assert_int_equal(usage.gpu_percent, 10);
    assert_int_equal(usage.gpu_memory_bytes, 24);
    usage = usage_now((struct gpus_range){.first = 1, .end = 1}); /* a task that has none */
    assert_false(usage.has_gpu || usage.has_gpu_memory);
    usage = usage_now((struct gpus_range){.first = 1, .end = 3}); /* more than there are */
    assert_false(usage.has_gpu || usage.has_gpu_memory);
    assert_int_equal(start_count(), 1);
    wanted = false; /* its tasks ended: so does the child, at the end of its input */
    wait_for(no_child_is_left, NULL);
    assert_true(is_unknown(NULL));
    wanted = true; /* the next one is not a failure's: it starts without a pause */
    size_t two = 2;
    wait_for(has_started, &two);
    wait_for(is_known, NULL);
    close_use();
}

static void what_is_not_known_is_not_0(void **state)
{
    (void)state;
    open_use("serve '-,7 50,9223372036854775807'");
    wanted = true;
    const struct gpus_range second = {.first = 1, .end = 2};
    struct resource_usage usage = usage_now(second);
    for (struct patience patience = patience_begin(60 * CADRE_US_PER_S); !usage.has_gpu;) {
        assert_false(patience_is_over(&patience));
        (void)is_known(NULL);
        usage = usage_now(second);
    }
    assert_int_equal(usage.gpu_percent, 50);
    assert_true(usage.has_gpu_memory);
    usage = usage_now(both); /* of one it is not known, and the sum is too large */
    assert_false(usage.has_gpu || usage.has_gpu_memory);
    assert_true(usage.gpu_percent == 0 && usage.gpu_memory_bytes == 0);
    usage = usage_now((struct gpus_range){.first = 0, .end = 1});
    assert_true(!usage.has_gpu && usage.has_gpu_memory && usage.gpu_memory_bytes == 7);
    close_use();
}

/* Of each the child ends, also one that ignores the end of its input; after the pause a second
 * one is started. */
static void one_that_fails_is_replaced(void **state)
{
    (void)state;
    static const char *const bodies[] = {"exit 3", "kill -SEGV $$", "serve 'Driver mismatch'",
        "serve '1,2'", "serve '1,2 3,4 5,6'", "serve '101,2 3,4'", "exec yes",
        "read -r request; head -c 5000 /dev/zero | tr '\\0' 1; exec sleep 600",
        "exec <&- >&-; exec sleep 600", "read -r request; sleep 600 & exit 0",
        "read -r request; printf '1,2 3,4\\n1,2 3,4\\n'; exec sleep 600"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        open_use(bodies[i]);
        wanted = true;
        size_t two = 2;
        wait_for(has_started, &two);
        wanted = false;
        fixture.options.gpu_timeout_us = 10 * CADRE_US_PER_MS;
        wait_for(no_child_is_left, NULL);
        assert_true(is_unknown(NULL));
        close_use();
    }
}

/* The pauses grow: 1 s, 2 s, ..., so that a broken driver is not asked all the time. */
static void pauses_grow(void **state)
{
    (void)state;
    open_use("exit 1");
    wanted = true;
    uint64_t begun_us = clock_monotonic_us();
    size_t three = 3;
    wait_for(has_started, &three);
    assert_true(clock_monotonic_us() - begun_us >= 3 * CADRE_US_PER_S);
    close_use();
}

static void one_that_is_silent_is_killed(void **state)
{
    (void)state;
    open_use("trap '' TERM HUP\nread -r request; echo '1,2 3,4'\nwhile :; do sleep 600; done");
    wanted = true;
    wait_for(is_known, NULL);
    fixture.options.gpu_timeout_us = 10 * CADRE_US_PER_MS;
    wait_for(is_unknown, NULL); /* nothing that is old is shown */
    size_t two = 2;
    wait_for(has_started, &two);
    close_use();
}

/* Its input has ended, it runs on: then it is killed. */
static void one_that_does_not_end_is_killed(void **state)
{
    (void)state;
    open_use("trap '' TERM HUP\nread -r request; echo '1,2 3,4'\nwhile :; do sleep 600; done");
    wanted = true;
    wait_for(is_known, NULL);
    wanted = false;
    for (int i = 0; i < 5; i++) {
        assert_true(is_unknown(NULL));
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), 0); /* it still runs, and no time is up */
    wanted = true;
    for (int i = 0; i < 5; i++) {
        assert_true(is_unknown(NULL));
    }
    assert_int_equal(start_count(), 1); /* no second one beside it */
    wanted = false;
    fixture.options.gpu_timeout_us = 10 * CADRE_US_PER_MS;
    wait_for(no_child_is_left, NULL);
    close_use();
}

/* An answer that takes several turns is awaited. */
static void a_slow_answer_counts(void **state)
{
    (void)state;
    open_use("while read -r request; do printf '1,2 '; sleep 0.3; echo '3,4'; done");
    wanted = true;
    wait_for(is_known, NULL);
    assert_int_equal(usage_now(both).gpu_memory_bytes, 6);
    assert_int_equal(start_count(), 1);
    close_use();
}

static void one_that_cannot_start(void **state)
{
    (void)state;
    open_use("exit 0");
    setenv("CADRE_DEVICES_PROGRAM", "/nonexistent/cadre-devices", 1);
    wanted = true;
    for (int i = 0; i < 5; i++) {
        assert_true(is_unknown(NULL));
    }
    close_use();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_the_mean_and_the_sum),
        cmocka_unit_test(what_is_not_known_is_not_0), cmocka_unit_test(one_that_fails_is_replaced),
        cmocka_unit_test(pauses_grow), cmocka_unit_test(one_that_is_silent_is_killed),
        cmocka_unit_test(one_that_does_not_end_is_killed), cmocka_unit_test(a_slow_answer_counts),
        cmocka_unit_test(one_that_cannot_start)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
