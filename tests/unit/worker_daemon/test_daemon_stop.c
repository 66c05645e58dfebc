/* SPDX-License-Identifier: Apache-2.0
 * A task that is stopped while its files or its checkpoint are still on their way, or are being
 * placed, is collected at once: nothing waits for what is not needed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/lib/speed.h"
#include "tests/unit/worker_daemon/fake_coordinator.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/link.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/task_files.h"
#include "worker/host/daemon/tasks.h"

struct fixture {
    struct coordinator coordinator;
    struct daemon daemon;
    struct agent_start start;
    char folder[TEST_PATH_BYTES];
    char blobs[TEST_PATH_BYTES];
    char tasks[TEST_PATH_BYTES];
    bool done;
    unsigned collected;
    unsigned prepared;
    unsigned failed;
};

static struct fixture *fixture;

static const struct task_ref ref = {.job = {7}, .slot = 1, .incarnation = 2};

/* ---- the agent and the link ---- */

void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    assert_null(agent);
    assert_true(task_ref_equal(task, ref));
    if (code != CADRE_OK) {
        fail_msg("%s", text);
    }
    fixture->collected++;
    fixture->done = true;
}

void agent_set_output_paused(struct agent *agent, struct task_ref task, bool held)
{
    (void)agent;
    (void)task;
    (void)held;
}

void agent_task_prepared(
    struct agent *agent, struct task_ref task, const struct agent_launch *launch)
{
    (void)agent;
    (void)task;
    close(launch->listener);
    fixture->prepared++;
    fixture->done = true;
}

void agent_task_failed(
    struct agent *agent, struct task_ref task, int exit_code, const struct cadre_error *cause)
{
    (void)agent;
    (void)task;
    (void)exit_code;
    (void)cause;
    fixture->failed++;
    fixture->done = true;
}

void agent_task_published(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    (void)agent;
    (void)task;
    (void)code;
    (void)text;
    fail();
}

void link_send(struct daemon *daemon, const struct agent_up *up)
{
    (void)daemon;
    assert_int_equal(up->type, AGENT_UP_HEARTBEAT); /* a fetch took longer than a moment */
}

/* ---- the fixture ---- */

static int set_up(void **state)
{
    (void)state;
    static unsigned count;
    static const char *base;
    struct cadre_error error = {0};
    base = base != NULL ? base : test_temp_dir();
    fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "%s/%u", base, count++);
    test_path(fixture->blobs, fixture->folder, "blobs");
    test_path(fixture->tasks, fixture->folder, "tasks");
    assert_ok(folder_make(fixture->blobs, 0700, &error), &error);
    assert_ok(folder_make(fixture->tasks, 0711, &error), &error);
    assert_ok(rpc_loop_open(&fixture->daemon.loop, &error), &error);
    fixture->daemon.file_pool.loop = fixture->daemon.loop;
    fixture->daemon.store_pool.loop = fixture->daemon.loop;
    fetch_report_open(&fixture->daemon);
    retry_open(&fixture->daemon, tasks_retry);
    coordinator_open(&fixture->coordinator, fixture->daemon.loop);
    assert_ok(rpc_channel_open(fixture->daemon.loop, fixture->coordinator.address, NULL,
                  &fixture->daemon.channel, &error),
        &error);
    fixture->daemon.arena = wire_arena_new(LIMIT_UNPACK_BYTES);
    fixture->daemon.linked = true;
    fixture->daemon.blob_dir = fixture->blobs;
    fixture->daemon.task_dir = fixture->tasks;
    coordinator_put(&fixture->coordinator, "#!/bin/sh", 9);
    fixture->start = (struct agent_start){.task = ref,
        .task_count = 1,
        .spec = {.program = {.name = "program", .size_bytes = 9}, .workers = 1}};
    memcpy(
        fixture->start.spec.program.sha256, fixture->coordinator.blobs[0].hash.bytes, SHA256_BYTES);
    return 0;
}

static bool run_for(bool *flag, uint64_t us)
{
    return rpc_loop_run_until(fixture->daemon.loop, flag, clock_monotonic_us() + us) == CADRE_OK;
}

static void until_nothing_works(void)
{
    file_work_pool_wait(&fixture->daemon.file_pool);
}

static int tear_down(void **state)
{
    (void)state;
    tasks_free_all(&fixture->daemon);
    rpc_channel_close(fixture->daemon.channel);
    until_nothing_works();
    coordinator_close(&fixture->coordinator);
    fetch_report_close(&fixture->daemon);
    retry_close(&fixture->daemon);
    rpc_loop_close(fixture->daemon.loop);
    wire_arena_free(fixture->daemon.arena);
    wire_buffer_free(&fixture->daemon.packed);
    free(fixture);
    return 0;
}

static void until_done(void)
{
    assert_true(run_for(&fixture->done, speed_scaled_us(30 * CADRE_US_PER_S)));
    fixture->done = false;
}

static void until_quiet(void)
{
    bool never = false;
    (void)run_for(&never, 100 * CADRE_US_PER_MS);
}

/* One that goes on from a checkpoint of step 120. */
static void restores(void)
{
    fixture->start.restores = true;
    fixture->start.checkpoint =
        (struct checkpoint_ref){.position = 120, .path = "c.json", .manifest_bytes = 300};
}

static void prepare(void)
{
    worker_agent_callbacks.prepare(&fixture->daemon, &fixture->start);
}

static void assert_collected_and_quiet(void)
{
    until_quiet();
    worker_link_callbacks.linked(&fixture->daemon); /* nothing is taken up again */
    until_quiet();
    assert_int_equal(fixture->collected, 1);
    assert_int_equal(fixture->prepared, 0);
    assert_int_equal(fixture->failed, 0);
    worker_agent_callbacks.forget(&fixture->daemon, ref);
    until_nothing_works();
    char path[TEST_PATH_BYTES];
    assert_int_not_equal(access(test_path(path, fixture->tasks, "7.1.2"), F_OK), 0);
}

/* ---- the tests ---- */

static void one_that_is_left_alone_is_prepared(void **state)
{
    (void)state;
    prepare();
    until_done();
    assert_int_equal(fixture->prepared, 1);
    assert_int_equal(fixture->collected, 0);
}

static void it_does_not_wait_for_its_program(void **state)
{
    (void)state;
    fixture->coordinator.hangs = true;
    prepare();
    until_quiet();
    assert_int_equal(fixture->coordinator.gets, 1);
    worker_agent_callbacks.collect(&fixture->daemon, ref);
    until_done();
    assert_int_equal(fixture->collected, 1);
    assert_collected_and_quiet();
    assert_int_equal(fixture->coordinator.cancels, 1);
}

static void it_does_not_wait_for_its_checkpoint(void **state)
{
    (void)state;
    restores();
    prepare();
    while (fixture->coordinator.gets == 0) { /* the program */
        bool never = false;
        (void)run_for(&never, 100);
    }
    fixture->coordinator.hangs = true;
    until_quiet();
    assert_int_equal(fixture->coordinator.gets, 2);
    assert_int_equal(fixture->coordinator.cancels, 0);
    worker_agent_callbacks.collect(&fixture->daemon, ref);
    until_done();
    assert_int_equal(fixture->collected, 1);
    assert_collected_and_quiet();
    assert_int_equal(fixture->coordinator.cancels, 1);
}

/* Without a link there is nothing to cancel, and what it left cannot be sent: there is none. */
static void it_does_not_wait_for_a_link(void **state)
{
    (void)state;
    restores();
    fixture->coordinator.refusal = CADRE_UNAVAILABLE;
    prepare();
    until_quiet();
    fixture->daemon.linked = false;
    worker_agent_callbacks.collect(&fixture->daemon, ref);
    until_done();
    assert_int_equal(fixture->collected, 1);
    fixture->coordinator.refusal = CADRE_OK;
    fixture->daemon.linked = true;
    assert_collected_and_quiet();
}

/* The thread that makes its folders is let finish, or never begins. */
static void it_waits_only_for_the_thread_that_places_it(void **state)
{
    (void)state;
    prepare();
    struct task_files *task = tasks_find(&fixture->daemon, ref);
    assert_non_null(task);
    while (!task->staging_in && !task->ready && !task->failed) {
        bool never = false;
        (void)run_for(&never, 100);
    }
    if (!task->staging_in) {
        until_done(); /* one turn of the loop held its beginning and its end: collected after it */
        fixture->prepared = 0;
    }
    worker_agent_callbacks.collect(&fixture->daemon, ref);
    until_done();
    assert_collected_and_quiet();
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(one_that_is_left_alone_is_prepared),
        TEST(it_does_not_wait_for_its_program), TEST(it_does_not_wait_for_its_checkpoint),
        TEST(it_does_not_wait_for_a_link), TEST(it_waits_only_for_the_thread_that_places_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
