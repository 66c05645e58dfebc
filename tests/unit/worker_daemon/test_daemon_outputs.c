/* SPDX-License-Identifier: Apache-2.0
 * What a task left goes to the coordinator: each file as bytes, but the files of a checkpoint that
 * is there already, as long as they are what was published. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "tests/lib/speed.h"
#include "tests/unit/worker_daemon/fake_coordinator.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/retry.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/publish.h"
#include "worker/host/daemon/task_files.h"

struct fixture {
    struct coordinator coordinator;
    struct daemon daemon;
    struct task_files task;
    char folder[TEST_PATH_BYTES];
    char path[TEST_PATH_BYTES];
    bool collected;
    cadre_status code;
    char text[LIMIT_TEXT_BYTES];
};

static struct fixture *fixture;

static const uint8_t manifest[LIMIT_SHA256_BYTES] = {7, 8, 9};

void retry_arm(struct daemon *daemon)
{
    (void)daemon; /* the test resumes it */
}

void agent_task_collected(
    struct agent *agent, struct task_ref task, cadre_status code, const char *text)
{
    assert_null(agent);
    assert_int_equal(task.job.n, 7);
    fixture->code = code;
    snprintf(fixture->text, sizeof fixture->text, "%s", text);
    fixture->collected = true;
}

static const char *in(const char *name)
{
    return test_path(fixture->path, fixture->folder, name);
}

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
    assert_ok(folder_make(in("out"), 0755, &error), &error);
    assert_ok(rpc_loop_open(&fixture->daemon.loop, &error), &error);
    fixture->daemon.file_pool.loop = fixture->daemon.loop;
    coordinator_open(&fixture->coordinator, fixture->daemon.loop);
    assert_ok(rpc_channel_open(fixture->daemon.loop, fixture->coordinator.address, NULL,
                  &fixture->daemon.channel, &error),
        &error);
    fixture->daemon.linked = true;
    fixture->task = (struct task_files){.daemon = &fixture->daemon,
        .ref = {.job = {7}, .slot = 1, .incarnation = 2},
        .folder = fixture->folder,
        .collecting = true};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    outputs_cancel(&fixture->task);
    published_free(fixture->task.published);
    rpc_channel_close(fixture->daemon.channel);
    coordinator_close(&fixture->coordinator);
    rpc_loop_close(fixture->daemon.loop);
    wire_buffer_free(&fixture->daemon.packed);
    free(fixture);
    return 0;
}

static void until_collected(void)
{
    assert_int_equal(rpc_loop_run_until(fixture->daemon.loop, &fixture->collected,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

static void until_quiet(void)
{
    bool never = false;
    (void)rpc_loop_run_until(
        fixture->daemon.loop, &never, clock_monotonic_us() + 50 * CADRE_US_PER_MS);
}

static void assert_all_collected(void)
{
    until_collected();
    if (fixture->code != CADRE_OK) {
        fail_msg("%s", fixture->text);
    }
}

/* A checkpoint of step 5, and a file of the program's own. */
static void leave_a_checkpoint(void)
{
    struct stat files[PUBLISHED_FILES];
    test_write(in("out/c-5.json"), "manifest");
    assert_int_equal(stat(in("out/c-5.json"), &files[0]), 0);
    test_write(in("out/c-5.safetensors"), "many tensors");
    assert_int_equal(stat(in("out/c-5.safetensors"), &files[1]), 0);
    published_add(&fixture->task.published, manifest, files);
    test_write(in("out/notes"), "of the program");
}

/* The newest that came under this path. */
static const struct output *came(const char *path)
{
    const struct output *found = NULL;
    for (unsigned i = 0; i < fixture->coordinator.output_count; i++) {
        const struct output *output = &fixture->coordinator.outputs[i];
        found = strcmp(output->path, path) == 0 ? output : found;
    }
    assert_non_null(found);
    assert_true(found->ended);
    return found;
}

static void assert_came(const char *path, bool referred, uint64_t size)
{
    const struct output *output = came(path);
    assert_int_equal(output->size_bytes, size);
    assert_int_equal(output->referred, referred);
    assert_int_equal(output->got_bytes, referred ? 0 : size);
    if (referred) {
        assert_memory_equal(output->checkpoint, manifest, sizeof manifest);
    }
}

static void published_files_are_only_referred_to(void **state)
{
    (void)state;
    leave_a_checkpoint();
    outputs_start(&fixture->task);
    assert_all_collected();
    assert_int_equal(fixture->coordinator.output_count, 3);
    assert_came("c-5.json", true, 8);
    assert_came("c-5.safetensors", true, 12);
    assert_came("notes", false, 14);
}

static void what_the_coordinator_does_not_keep_is_sent(void **state)
{
    (void)state;
    leave_a_checkpoint();
    fixture->coordinator.forgets = 2;
    outputs_start(&fixture->task);
    assert_all_collected();
    assert_int_equal(fixture->coordinator.output_count, 5);
    assert_came("c-5.json", false, 8);
    assert_came("c-5.safetensors", false, 12);
    assert_came("notes", false, 14);
}

static void a_refused_reference_is_of_one_file(void **state)
{
    (void)state;
    leave_a_checkpoint();
    fixture->coordinator.forgets = 1;
    outputs_start(&fixture->task);
    assert_all_collected();
    assert_int_equal(fixture->coordinator.output_count, 4);
    unsigned referred = came("c-5.json")->referred + came("c-5.safetensors")->referred;
    assert_int_equal(referred, 1);
}

/* The program wrote to one of them, and put another in the place of the other. */
static void what_was_changed_since_is_sent(void **state)
{
    (void)state;
    leave_a_checkpoint();
    assert_int_equal(chmod(in("out/c-5.json"), 0600), 0);
    char other[TEST_PATH_BYTES];
    test_write(test_path(other, fixture->folder, "out/other"), "other tensor");
    assert_int_equal(rename(other, in("out/c-5.safetensors")), 0);
    outputs_start(&fixture->task);
    assert_all_collected();
    assert_came("c-5.json", false, 8);
    assert_came("c-5.safetensors", false, 12);
}

static void a_broken_link_loses_nothing(void **state)
{
    (void)state;
    for (unsigned good = 0; good < 3; good++) {
        leave_a_checkpoint();
        fixture->coordinator.output_count = 0;
        fixture->coordinator.refusal = CADRE_UNAVAILABLE;
        fixture->coordinator.good_calls = good;
        fixture->collected = false;
        fixture->task.collecting = true;
        outputs_start(&fixture->task);
        until_quiet();
        assert_false(fixture->collected);
        fixture->coordinator.refusal = CADRE_OK;
        outputs_resume(&fixture->task);
        assert_all_collected();
        assert_came("c-5.json", true, 8);
        assert_came("c-5.safetensors", true, 12);
        assert_came("notes", false, 14);
    }
}

/* As many as a job can keep. */
static void the_oldest_are_not_remembered(void **state)
{
    (void)state;
    struct stat files[PUBLISHED_FILES];
    memset(files, 0, sizeof files);
    for (unsigned i = 0; i <= LIMIT_CHECKPOINTS_KEPT; i++) {
        files[1].st_ino = i + 1;
        published_add(&fixture->task.published, manifest, files);
    }
    files[1].st_ino = 1;
    assert_null(published_find(fixture->task.published, &files[1]));
    files[1].st_ino = 2;
    assert_non_null(published_find(fixture->task.published, &files[1]));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(published_files_are_only_referred_to),
        TEST(what_the_coordinator_does_not_keep_is_sent), TEST(a_refused_reference_is_of_one_file),
        TEST(what_was_changed_since_is_sent), TEST(a_broken_link_loses_nothing),
        TEST(the_oldest_are_not_remembered)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
