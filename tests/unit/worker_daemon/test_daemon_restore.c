/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint comes from the coordinator to another host and is put together there. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/worker_daemon/checkpoint_fixture.h"
#include "worker/host/daemon/fetch.h"
#include "worker/host/daemon/restore_state.h"

#define READER 60827 /* not in use: neither of the default range nor of the other tests */

static void publish_for_restore(void)
{
    publish();
    assert_published(3);
    fixture->start.restores = true;
    fixture->start.checkpoint = (struct checkpoint_ref){.position = fixture->part.position,
        .path = fixture->part.path,
        .manifest_bytes = fixture->part.size_bytes};
    memcpy(fixture->start.checkpoint.manifest_sha256, fixture->part.sha256, LIMIT_SHA256_BYTES);
}

static void assert_content(const char *name, const void *wanted, size_t wanted_size)
{
    char *bytes = NULL;
    size_t size = 0;
    struct cadre_error error = {0};
    assert_ok(file_read(in(name), 1U << 26, &bytes, &size, &error), &error);
    assert_int_equal(size, wanted_size);
    assert_memory_equal(bytes, wanted, size);
    free(bytes);
}

static void assert_restored(void)
{
    if (fixture->staged != 1) {
        fail_msg("%s", fixture->text);
    }
    assert_string_equal(fixture->task.restore_path, in("restore/checkpoint.json"));
    assert_content("restore/c.safetensors", fixture->file, FILE_BYTES);
    assert_content("restore/checkpoint.json", fixture->manifest, fixture->part.size_bytes);
    assert_null(fixture->task.restore);
}

static void a_task_without_a_checkpoint_goes_on_at_once(void **state)
{
    (void)state;
    restore_start(&fixture->task, staged);
    assert_int_equal(fixture->staged, 1);
    assert_null(fixture->task.restore_path);
}

static void assert_mode(const char *name, mode_t mode)
{
    struct stat status;
    assert_int_equal(stat(in(name), &status), 0);
    assert_int_equal(status.st_mode & 0777, mode);
}

static void it_is_put_together(void **state)
{
    (void)state;
    publish_for_restore();
    mode_t before = umask(077);
    restore_start(&fixture->task, staged);
    until_done();
    umask(before);
    assert_restored();
    assert_int_equal(fixture->coordinator.gets, 4);
    assert_mode("restore", 0700);
    assert_mode("restore/c.safetensors", 0644); /* for the task's user, whose folder it is */
    assert_mode("restore/checkpoint.json", 0644);
}

/* What is reported of it: whole blocks alone, because the others come again. */
static void assert_counted(size_t blocks)
{
    struct restore *restore = fixture->task.restore;
    uint64_t done = 0;
    assert_int_equal(fixture->task.fetching.kind, FETCH_CHECKPOINT);
    assert_int_equal(restore->next, blocks);
    for (size_t i = 0; i < blocks; i++) {
        done += restore->content.blocks[i].bytes;
    }
    assert_int_equal(atomic_load(&restore->counts.done_bytes), done);
    assert_int_equal(atomic_load(&restore->counts.whole_bytes), restore->content.file_bytes);
    assert_true(restore->content.file_bytes > done);
}

static void it_waits_for_links(void **state)
{
    (void)state;
    publish_for_restore();
    fixture->coordinator.refusal = CADRE_UNAVAILABLE;
    fixture->coordinator.good_calls = 0;
    restore_start(&fixture->task, staged);
    for (unsigned good = 0; good < 3; good++) {
        until_quiet();
        fixture->coordinator.good_calls = 1;
        restore_resume(&fixture->task);
        until_quiet();
        assert_counted(good); /* and the manifest */
    }
    fixture->coordinator.refusal = CADRE_OK;
    restore_resume(&fixture->task);
    restore_resume(&fixture->task);
    until_done();
    assert_restored();
    assert_int_equal(fixture->task.fetching.kind, FETCH_NONE);
}

static void assert_fails(const char *part)
{
    restore_start(&fixture->task, staged);
    until_done();
    assert_int_equal(fixture->staged, 0);
    if (strstr(fixture->text, part) == NULL || strstr(fixture->text, "step 120") == NULL) {
        fail_msg("no \"%s\" in: %s", part, fixture->text);
    }
    assert_null(fixture->task.restore);
}

/* Both start at once; the first one's folder is the second's brother's. */
static void start_both(char second_folder[TEST_PATH_BYTES])
{
    publish_for_restore();
    fixture->second = fixture->task;
    fixture->second.folder = (char *)(uintptr_t)test_path(second_folder, fixture->folder, "second");
    make_folder("second");
    fixture->task.next = &fixture->second;
    fixture->daemon.tasks = &fixture->task;
    restore_start(&fixture->task, staged);
    restore_start(&fixture->second, staged);
}

static void tasks_of_a_host_fetch_it_once(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    start_both(folder);
    while (fixture->staged < 2) {
        until_done();
    }
    assert_int_equal(fixture->coordinator.gets, 4);
    assert_content("second/restore/c.safetensors", fixture->file, FILE_BYTES);
    assert_content("second/restore/checkpoint.json", fixture->manifest, fixture->part.size_bytes);
    assert_string_equal(fixture->second.restore_path, in("second/restore/checkpoint.json"));
    free(fixture->second.restore_path);
    fixture->daemon.tasks = NULL;
}

static void who_waited_fetches_when_the_other_goes(void **state)
{
    (void)state;
    char folder[TEST_PATH_BYTES];
    start_both(folder);
    assert_true(fixture->second.restore != NULL);
    fixture->daemon.tasks = &fixture->second; /* the first one is forgotten */
    restore_cancel(&fixture->task);
    until_done();
    assert_int_equal(fixture->staged, 1);
    assert_content("second/restore/c.safetensors", fixture->file, FILE_BYTES);
    free(fixture->second.restore_path);
    fixture->daemon.tasks = NULL;
}

static void what_does_not_match_its_hash_is_refused(void **state)
{
    (void)state;
    publish_for_restore();
    fixture->coordinator.corrupts = true;
    assert_fails("its bytes do not have its hash");
}

static void what_is_not_there_is_reported(void **state)
{
    (void)state;
    struct sha256 hash;
    publish_for_restore();
    assert_int_equal(sha256_of(fixture->file, BIG, &hash, NULL), CADRE_OK);
    coordinator_lose(&fixture->coordinator, hash.bytes);
    assert_fails("no such content");
}

static void a_longer_content_is_refused(void **state)
{
    (void)state;
    publish_for_restore();
    fixture->start.checkpoint.manifest_bytes--;
    assert_fails("more than");
}

static void a_shared_one_stays_where_it_is(void **state)
{
    (void)state;
    publish_for_restore();
    fixture->start.checkpoint.shared = true;
    fixture->start.spec.checkpoint_folder = "/shared";
    restore_start(&fixture->task, staged);
    assert_int_equal(fixture->staged, 1);
    assert_string_equal(fixture->task.restore_path, "/shared/deep/c.json");
    free(fixture->task.restore_path);
    fixture->start.checkpoint.path = "/elsewhere/c.json"; /* of another job, with another folder */
    restore_start(&fixture->task, staged);
    assert_string_equal(fixture->task.restore_path, "/elsewhere/c.json");
    assert_int_equal(fixture->coordinator.gets, 0);
}

/* A job may name a file that the daemon can read and the job's user cannot: it learns nothing. */
static void a_shared_one_is_looked_at_as_the_job_s_user(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    if (geteuid() != 0) {
        skip();
    }
    const char *folder = test_temp_dir();
    test_write(test_path(path, folder, "c.json"), "of others");
    assert_int_equal(chmod(folder, 0711) | chmod(path, 0600), 0);
    fixture->start.restores = true;
    fixture->start.checkpoint =
        (struct checkpoint_ref){.position = 1, .shared = true, .path = path};
    fixture->task.user = (struct isolation_user){.change = true, .uid = READER, .gid = READER};
    fixture->task.ref.slot = 0;
    restore_start(&fixture->task, staged);
    until_done();
    assert_int_equal(fixture->staged, 1); /* the task itself finds what it finds */
    assert_string_equal(fixture->text, "");
    free(fixture->task.restore_path);
    fixture->task.restore_path = NULL;
    fixture->done = false;
    assert_int_equal(chmod(path, 0644), 0);
    restore_start(&fixture->task, staged);
    until_done();
    assert_int_equal(fixture->staged, 1);
    assert_non_null(strstr(fixture->text, "c.json is not the one that was published"));
}

static void restoring_can_be_cancelled(void **state)
{
    (void)state;
    publish_for_restore();
    for (unsigned turns = 0; turns < 20; turns++) {
        struct cadre_error error = {0};
        assert_ok(tree_remove(in("restore"), &error), &error);
        restore_start(&fixture->task, staged);
        for (unsigned i = 0; i < turns && fixture->task.restore != NULL; i++) {
            bool never = false;
            (void)rpc_loop_run_until(fixture->daemon.loop, &never, clock_monotonic_us() + 200);
        }
        restore_cancel(&fixture->task);
        free(fixture->task.restore_path);
        fixture->task.restore_path = NULL;
        file_work_pool_wait(&fixture->daemon.store_pool);
        file_work_pool_wait(
            &fixture->daemon.file_pool); /* what a thread was writing can be removed now */
    }
    fixture->done = false;
    until_quiet();
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_task_without_a_checkpoint_goes_on_at_once),
        TEST(it_is_put_together), TEST(it_waits_for_links), TEST(tasks_of_a_host_fetch_it_once),
        TEST(who_waited_fetches_when_the_other_goes), TEST(what_does_not_match_its_hash_is_refused),
        TEST(what_is_not_there_is_reported), TEST(a_longer_content_is_refused),
        TEST(a_shared_one_stays_where_it_is), TEST(a_shared_one_is_looked_at_as_the_job_s_user),
        TEST(restoring_can_be_cancelled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
