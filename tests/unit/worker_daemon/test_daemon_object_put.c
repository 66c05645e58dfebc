/* SPDX-License-Identifier: Apache-2.0
 * Files that a task leaves for an object store: the daemon's side, with a store in place of
 * common/storage. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/rpc/loop.h"
#include "common/storage/writer.h"
#include "tests/lib/speed.h"
#include "tests/lib/test.h"
#include "worker/host/daemon/daemon.h"
#include "worker/host/daemon/outputs.h"
#include "worker/host/daemon/task_files.h"

/* ---- in place of common/storage ---- */

struct storage_writer {
    char path[512];
    char bytes[64];
    size_t size;
};

static struct {
    cadre_status fails; /* all that is asked */
    atomic_bool stopped;
    unsigned clients;
    char written[512]; /* "path=bytes " of each object */
    unsigned clears;
    unsigned begun;
    unsigned aborted;
} store;

static cadre_status store_fails(struct cadre_error *error)
{
    cadre_status status = store.stopped ? CADRE_CANCELLED : store.fails;
    return status == CADRE_OK ? CADRE_OK : cadre_error_set(error, status, "s3://bucket: no");
}

cadre_status storage_client_open(const struct storage_options *options,
    struct storage_client **ret_client, struct cadre_error *error)
{
    (void)error;
    assert_true(options->objects_only);
    store.clients++;
    *ret_client = (struct storage_client *)(void *)&store;
    return CADRE_OK;
}

void storage_client_stop(struct storage_client *client)
{
    assert_ptr_equal(client, &store);
    store.stopped = true;
}

void storage_client_close(struct storage_client *client)
{
    store.clients -= client != NULL ? 1 : 0;
}

char *storage_join(const char *folder, const char *name)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) >= 0 ? path : NULL;
}

cadre_status storage_writer_open(struct storage_client *client, const char *path,
    struct storage_writer **ret_writer, struct cadre_error *error)
{
    (void)client;
    (void)error;
    *ret_writer = calloc(1, sizeof **ret_writer);
    assert_non_null(*ret_writer);
    snprintf((*ret_writer)->path, sizeof(*ret_writer)->path, "%s", path);
    return CADRE_OK;
}

cadre_status storage_writer_add(
    struct storage_writer *writer, const void *bytes, size_t size, struct cadre_error *error)
{
    assert_true(writer->size + size < sizeof writer->bytes);
    memcpy(writer->bytes + writer->size, bytes, size);
    writer->size += size;
    return store_fails(error);
}

cadre_status storage_writer_finish(struct storage_writer *writer, struct cadre_error *error)
{
    cadre_status status = store_fails(error);
    if (status == CADRE_OK) {
        size_t used = strlen(store.written);
        snprintf(store.written + used, sizeof store.written - used, "%s=%s ", writer->path,
            writer->bytes);
    }
    free(writer);
    return status;
}

void storage_writer_abort(struct storage_writer *writer)
{
    free(writer);
}

cadre_status storage_uploads_clear(struct storage_client *client, const char *start,
    int64_t before_us, uint32_t *ret_count, struct cadre_error *error)
{
    (void)client;
    (void)error;
    assert_string_equal(start, "s3://bucket/runs/7/0/");
    assert_true(before_us > (int64_t)clock_wall_us());
    *ret_count = 0;
    store.clears++;
    return CADRE_OK;
}

cadre_status storage_upload_begin(struct storage_client *client, const char *path,
    struct storage_upload **ret_upload, struct cadre_error *error)
{
    (void)client;
    assert_string_equal(path, "s3://bucket/runs/7/0/writable");
    store.begun++;
    *ret_upload = (struct storage_upload *)(void *)&store;
    return store_fails(error);
}

void storage_upload_abort(struct storage_upload *upload)
{
    assert_ptr_equal(upload, &store);
    store.aborted++;
}

/* ---- tests ---- */

static struct daemon fixture;
static struct agent_start start;
static struct task_files task;
static struct cadre_error ended;
static bool is_ended;
static bool is_of_file;

static int set_up(void **state)
{
    (void)state;
    static char folder[TEST_PATH_BYTES];
    char out[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    memset(&store, 0, sizeof store);
    snprintf(folder, sizeof folder, "%s", test_temp_dir());
    assert_ok(folder_make(test_path(out, folder, "out"), 0700, &error), &error);
    fixture = (struct daemon){.linked = true};
    assert_ok(rpc_loop_open(&fixture.loop, &error), &error);
    fixture.store_pool.loop = fixture.loop;
    start.spec = (struct job_spec){.outputs_folder = "s3://bucket/runs"};
    task = (struct task_files){
        .daemon = &fixture, .ref = {{7}, 0, 1}, .spec = &start.spec, .folder = folder};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    object_put_cancel(&task);
    file_work_pool_wait(&fixture.store_pool);
    rpc_loop_close(fixture.loop);
    assert_int_equal(store.clients, 0);
    return 0;
}

static void until_ended(void)
{
    assert_int_equal(rpc_loop_run_until(fixture.loop, &is_ended,
                         clock_monotonic_us() + speed_scaled_us(30 * CADRE_US_PER_S)),
        CADRE_OK);
}

static void on_checked(struct task_files *of, const struct cadre_error *error)
{
    assert_ptr_equal(of, &task);
    assert_null(task.put);
    ended = *error;
    is_ended = true;
}

static void check_target(void)
{
    is_ended = false;
    object_put_check(&task, on_checked);
    until_ended();
}

static void the_folder_is_tried_first(void **state)
{
    (void)state;
    assert_true(object_put_is_wanted(&task));
    check_target();
    assert_int_equal(ended.code, CADRE_OK);
    assert_int_equal(store.begun, 1);
    assert_int_equal(store.aborted, 1);
    store.fails = CADRE_PERMISSION_DENIED;
    check_target();
    assert_error(ended.code, CADRE_PERMISSION_DENIED, &ended,
        "what the task leaves could not be written: s3://bucket: no");
    start.spec.outputs_folder = "";
    assert_false(object_put_is_wanted(&task));
}

static void on_put(struct task_files *of, const struct cadre_error *error, bool is_file)
{
    assert_ptr_equal(of, &task);
    ended = *error;
    is_of_file = is_file;
    is_ended = true;
}

static cadre_status put(const char *name)
{
    is_ended = false;
    object_put_start(&task, name, on_put);
    until_ended();
    return ended.code;
}

static void files_are_written_one_after_the_other(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, task.folder, "out/a b"), "one");
    test_write(test_path(path, task.folder, "out/empty"), "");
    assert_int_equal(put("a b"), CADRE_OK);
    assert_int_equal(put("empty"), CADRE_OK);
    assert_string_equal(store.written, "s3://bucket/runs/7/0/a b=one s3://bucket/runs/7/0/empty= ");
    assert_int_equal(store.clears, 1); /* once */
    assert_int_equal(put("absent"), CADRE_NOT_FOUND);
    assert_true(is_of_file);
    store.fails = CADRE_UNAVAILABLE;
    assert_int_equal(put("a b"), CADRE_UNAVAILABLE);
    assert_false(is_of_file);
    object_put_cancel(&task);
    assert_int_equal(store.clients, 0);
}

/* Its end calls no function, and frees it. */
static void one_that_is_cancelled_ends(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    test_write(test_path(path, task.folder, "out/a"), "one");
    is_ended = false;
    object_put_start(&task, "a", on_put);
    object_put_cancel(&task);
    assert_null(task.put);
    assert_true(store.stopped);
    file_work_pool_wait(&fixture.store_pool);
    assert_false(is_ended);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_folder_is_tried_first),
        TEST(files_are_written_one_after_the_other), TEST(one_that_is_cancelled_ends)};
    return cmocka_run_group_tests_name("outputs to a store", tests, NULL, NULL);
}
