/* SPDX-License-Identifier: Apache-2.0
 * What a task left goes to the coordinator: each file as bytes, but the files of a checkpoint that
 * is there already, as long as they are what was published; or to an object store, and what that
 * refuses to the coordinator after all. */
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
    /* of the object store: */
    bool to_store;
    char written[256]; /* names of files, in order, with a space behind each */
    bool writes;
    void (*ended)(struct task_files *task, const struct cadre_error *error, bool is_file);
    unsigned cancels;
    unsigned retries;
};

static struct fixture *fixture;

bool object_put_is_wanted(const struct task_files *task)
{
    assert_ptr_equal(task, &fixture->task);
    return fixture->to_store;
}

void object_put_start(struct task_files *task, const char *name,
    void (*ended)(struct task_files *task, const struct cadre_error *error, bool is_file))
{
    assert_ptr_equal(task, &fixture->task);
    assert_false(fixture->writes);
    size_t used = strlen(fixture->written);
    snprintf(fixture->written + used, sizeof fixture->written - used, "%s ", name);
    fixture->ended = ended;
    fixture->writes = true;
}

void object_put_cancel(struct task_files *task)
{
    assert_ptr_equal(task, &fixture->task);
    fixture->cancels++;
}

static const uint8_t manifest[LIMIT_SHA256_BYTES] = {7, 8, 9};

void retry_arm(struct daemon *daemon)
{
    (void)daemon; /* the test resumes it */
    fixture->retries++;
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

/* ---- to an object store ---- */

/* How the file that is on its way ends. */
static void end_write(cadre_status status, bool is_file)
{
    struct cadre_error error = {0};
    assert_int_equal(rpc_loop_run_until(fixture->daemon.loop, &fixture->writes,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
    fixture->writes = false;
    if (status != CADRE_OK) {
        cadre_error_set(&error, status, "s3://bucket/runs: no");
    }
    fixture->ended(&fixture->task, &error, is_file);
}

static void begin_to_store(void)
{
    test_write(in("out/a"), "one");
    test_write(in("out/b"), "other");
    fixture->to_store = true;
    outputs_start(&fixture->task);
}

static void what_a_store_takes_is_not_sent(void **state)
{
    (void)state;
    begin_to_store();
    end_write(CADRE_OK, false);
    assert_false(fixture->collected);
    end_write(CADRE_OK, false);
    assert_all_collected();
    assert_true(strcmp(fixture->written, "a b ") == 0 || strcmp(fixture->written, "b a ") == 0);
    assert_int_equal(fixture->coordinator.output_count, 0);
    assert_int_equal(fixture->cancels, 1); /* its connections are closed */
}

/* All from the refused one on, and the coordinator learns why. */
static void what_a_store_refuses_is_sent(void **state)
{
    (void)state;
    begin_to_store();
    end_write(CADRE_PERMISSION_DENIED, false);
    until_collected();
    assert_int_equal(fixture->code, CADRE_PERMISSION_DENIED);
    assert_non_null(strstr(fixture->text, " on it is at the coordinator (cadre get 7), because "
                                          "s3://bucket/runs: no"));
    assert_came("a", false, 3);
    assert_came("b", false, 5);
    assert_false(fixture->writes);
}

/* For a day, by tries of a minute. */
static void a_store_that_is_away_is_tried_again(void **state)
{
    (void)state;
    begin_to_store();
    for (unsigned i = 1; i < 24 * 60; i++) {
        end_write(CADRE_UNAVAILABLE, false);
        assert_int_equal(fixture->retries, i);
        assert_false(fixture->writes);
        outputs_resume(&fixture->task);
    }
    end_write(CADRE_OK, false);
    for (unsigned i = 1; i < 24 * 60; i++) { /* of the next file they are counted from the start */
        end_write(CADRE_UNAVAILABLE, false);
        outputs_resume(&fixture->task);
    }
    assert_int_equal(fixture->coordinator.output_count, 0);
    end_write(CADRE_UNAVAILABLE, false);
    until_collected();
    assert_int_equal(fixture->code, CADRE_UNAVAILABLE);
    assert_int_equal(fixture->coordinator.output_count, 1);
}

static void a_file_that_cannot_be_read_is_left_out(void **state)
{
    (void)state;
    begin_to_store();
    end_write(CADRE_DATA_LOSS, true);
    end_write(CADRE_OK, false);
    until_collected();
    assert_int_equal(fixture->code, CADRE_DATA_LOSS);
    assert_int_equal(fixture->coordinator.output_count, 0);
}

static void without_a_link_nothing_is_written(void **state)
{
    (void)state;
    fixture->daemon.linked = false;
    begin_to_store();
    until_quiet();
    assert_false(fixture->writes);
    fixture->daemon.linked = true;
    outputs_resume(&fixture->task);
    end_write(CADRE_OK, false);
    fixture->daemon.linked = false;
    assert_true(fixture->writes); /* that was begun */
    end_write(CADRE_OK, false);
    assert_all_collected();
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
        TEST(the_oldest_are_not_remembered), TEST(what_a_store_takes_is_not_sent),
        TEST(what_a_store_refuses_is_sent), TEST(a_store_that_is_away_is_tried_again),
        TEST(a_file_that_cannot_be_read_is_left_out), TEST(without_a_link_nothing_is_written)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
