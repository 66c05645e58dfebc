/* SPDX-License-Identifier: Apache-2.0
 * Contents in an object store, which is a folder here: the index is listed by a thread, what is not
 * needed any more is removed there and here, checkpoints are read from it, and jobs are forgotten
 * whole. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/contents/content_looks.h"
#include "coordinator/daemon/contents/contents.h"
#include "coordinator/daemon/contents/quota.h"
#include "coordinator/daemon/contents/received_objects.h"
#include "coordinator/daemon/contents/recent_outputs.h"
#include "coordinator/daemon/objects/object_cache.h"
#include "coordinator/daemon/objects/object_names.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"
#include "tests/unit/coordinator_daemon/old_list.h"

static struct engine engine;
static struct daemon stand;

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open_objects(&stand, &engine);
    settle(&stand);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_close(&stand);
    return 0;
}

/* As another coordinator's upload leaves it. */
static struct sha256 put_object(const char *text)
{
    struct cadre_error error = {0};
    struct sha256 hash = hash_of_text(text);
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(stand.objects, hash.bytes);
    assert_ok(objects_put(stand.objects, path, text, strlen(text), &error), &error);
    return hash;
}

static bool is_object(const struct sha256 *hash)
{
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(stand.objects, hash->bytes);
    return access(path, F_OK) == 0;
}

static void none_is_known_before_all_are_listed(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t bytes = 0;
    struct sha256 hash = put_object("a content");
    reopen_contents(&stand);
    assert_true(contents_is_loading(stand.contents));
    assert_false(contents_find(stand.contents, &hash, NULL));
    assert_error(
        contents_check_loaded(stand.contents, &error), CADRE_UNAVAILABLE, &error, "still listing");
    settle(&stand);
    assert_ok(contents_check_loaded(stand.contents, &error), &error);
    assert_true(contents_find(stand.contents, &hash, &bytes));
    assert_int_equal(bytes, 9);
    assert_int_equal(contents_bytes(stand.contents), 9);
    assert_true(contents_is_synced(stand.contents, &hash));
}

/* Contents that a list lacks, or shows still, are looked at by their names. */
static void a_list_may_be_old(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *root = objects_path(stand.objects, "blobs");
    struct sha256 kept = put_object("kept");
    struct sha256 removed = put_object("removed");
    lists_stop(stand.objects, root);
    CADRE_FREE_AT_EXIT char *path = object_name_of_blob(stand.objects, removed.bytes);
    assert_ok(objects_remove(stand.objects, path, &error), &error);
    struct sha256 new = put_object("new one");
    reopen_contents(&stand);
    settle(&stand);
    lists_go_on();
    assert_true(contents_find(stand.contents, &removed, NULL));
    assert_false(contents_find(stand.contents, &new, NULL));
    const struct sha256 *hashes[] = {&kept, &removed, &new};
    struct content_look looks[3];
    for (size_t i = 0; i < 3; i++) {
        assert_false(contents_is_certain(stand.contents, hashes[i]));
        looks[i] = contents_begin_look(stand.contents, hashes[i]);
    }
    assert_ok(content_looks(stand.objects, looks, 3, &error), &error);
    for (size_t i = 0; i < 3; i++) {
        contents_note_look(stand.contents, &looks[i]);
    }
    assert_true(contents_is_certain(stand.contents, &kept));
    assert_true(contents_is_certain(stand.contents, &new));
    assert_false(contents_find(stand.contents, &removed, NULL));
    assert_int_equal(contents_bytes(stand.contents), 4 + 7);
    for (size_t i = 0; i < 3; i++) { /* once more changes nothing */
        contents_note_look(stand.contents, &looks[i]);
    }
    assert_int_equal(contents_bytes(stand.contents), 4 + 7);
    assert_false(contents_find(stand.contents, &removed, NULL));
}

/* It was removed after it had been looked at. */
static void an_old_look_brings_nothing_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct sha256 hash = put_object("not needed");
    reopen_contents(&stand);
    settle(&stand);
    struct content_look look = contents_begin_look(stand.contents, &hash);
    assert_ok(content_looks(stand.objects, &look, 1, &error), &error);
    assert_true(look.there);
    contents_remove(stand.contents, &hash, false);
    settle(&stand);
    contents_note_look(stand.contents, &look);
    assert_false(contents_find(stand.contents, &hash, NULL));
    assert_int_equal(contents_bytes(stand.contents), 0);
}

static void store_output(const char *name, const char *text)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = object_name_of_output(stand.objects, (struct job_id){1}, name);
    assert_ok(objects_put(stand.objects, path, text, strlen(text), &error), &error);
}

/* The list has what came while it was made, or has it not: it counts once. */
static void what_comes_while_it_is_counted_counts_once(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    (void)add_job(&engine, 1, "program");
    store_output("0/before", "123");
    store_output("0/meanwhile", "12345");
    assert_ok(quota_open(&stand, &error), &error);
    quota_output(stand.quota, (struct job_id){1}, 5);
    settle(&stand);
    assert_int_equal(quota_sizes(&stand).outputs_bytes, 8);
    store_output("0/after", "1");
    quota_output(stand.quota, (struct job_id){1}, 1);
    assert_int_equal(quota_sizes(&stand).outputs_bytes, 9);
    assert_int_equal(quota_job_bytes(stand.quota, (struct job_id){1}), 9);
}

struct seen_outputs {
    size_t count;
    uint64_t bytes;
};

static void see_output(void *user, const char *name, uint64_t bytes, bool is_reference)
{
    struct seen_outputs *seen = user;
    seen->count += strncmp(name, "0/", 2) == 0 && !is_reference ? 1 : 0;
    seen->bytes += bytes;
}

static struct seen_outputs outputs_seen(struct recent_outputs *recent, uint64_t job)
{
    struct seen_outputs seen = {0};
    recent_outputs_each(recent, (struct job_id){job}, see_output, &seen);
    return seen;
}

static void the_newest_outputs_are_known(void **state)
{
    (void)state;
    struct recent_outputs *recent = recent_outputs_open();
    assert_non_null(recent);
    recent_outputs_note(recent, (struct job_id){1}, "0/a", 1, false);
    recent_outputs_note(recent, (struct job_id){1}, "0/b", 2, false);
    recent_outputs_note(recent, (struct job_id){2}, "0/a", 4, false);
    recent_outputs_note(recent, (struct job_id){1}, "0/a", 8, false);
    assert_int_equal(outputs_seen(recent, 1).count, 2);
    assert_int_equal(outputs_seen(recent, 1).bytes, 10);
    assert_int_equal(outputs_seen(recent, 2).bytes, 4);
    for (unsigned i = 0; i < RECENT_OUTPUTS_MAX + 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "0/%u", i);
        recent_outputs_note(recent, (struct job_id){3}, name, 1, false);
    }
    assert_int_equal(outputs_seen(recent, 1).count, 0);
    assert_int_equal(outputs_seen(recent, 3).count, RECENT_OUTPUTS_MAX);
    recent_outputs_close(recent);
    assert_int_equal(outputs_seen(NULL, 1).count, 0);
}

static void note(void *user)
{
    *(bool *)user = true;
}

static void what_waits_goes_on_then(void **state)
{
    (void)state;
    bool gone = false;
    struct contents_wait wait = {.go = note, .user = &gone};
    reopen_contents(&stand);
    contents_wait(stand.contents, &wait);
    assert_false(gone);
    settle(&stand);
    assert_true(gone);
}

/* The store does not say when an upload relied on one: a new leader lets all be for an hour. */
static void what_is_not_needed_goes_after_an_hour(void **state)
{
    (void)state;
    struct sha256 hash = put_object("not needed");
    reopen_contents(&stand);
    settle(&stand);
    struct cadre_error error = {0};
    assert_ok(refresh_references(&stand, &error), &error);
    contents_collect_garbage(stand.contents, content_references_has, stand.content_references);
    settle(&stand);
    assert_true(is_object(&hash));
    contents_remove(stand.contents, &hash, true);
    settle(&stand);
    assert_true(is_object(&hash));
    contents_remove(stand.contents, &hash, false);
    settle(&stand);
    assert_false(is_object(&hash));
    assert_false(contents_find(stand.contents, &hash, NULL));
}

/* One that was replaced removes nothing. */
static void only_a_leader_removes(void **state)
{
    (void)state;
    struct sha256 hash = put_object("not needed");
    reopen_contents(&stand);
    settle(&stand);
    leading_set(&stand.leading, 0);
    contents_remove(stand.contents, &hash, false);
    settle(&stand);
    assert_true(is_object(&hash));
    assert_true(contents_find(stand.contents, &hash, NULL));
    leading_set(&stand.leading, clock_boot_us() + 60 * CADRE_US_PER_S);
    contents_remove(stand.contents, &hash, false);
    settle(&stand);
    assert_false(is_object(&hash));
}

static void count_file(void *user, const char *name, uint64_t bytes)
{
    (void)name;
    *(uint64_t *)user += bytes;
}

static void a_checkpoint_is_read_from_the_store(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const char *const blocks[] = {"block one", "block two", NULL};
    char text[2048];
    struct fake_job *job = add_job(&engine, 1, "program");
    size_t size = manifest_text(10, blocks, text);
    text[size] = '\0';
    struct sha256 hash = put_object(text);
    struct sha256 first = put_object(blocks[0]);
    struct core_checkpoint checkpoint = {
        .position = 10, .path = "c-10.json", .manifest_bytes = size};
    memcpy(checkpoint.manifest_sha256, hash.bytes, sizeof hash.bytes);
    publish(job, &checkpoint);
    reopen_contents(&stand);
    settle(&stand);
    assert_ok(refresh_references(&stand, &error), &error);
    assert_true(content_references_has(stand.content_references, &first));
    assert_false(content_references_are_incomplete(stand.content_references));
    struct artifacts artifacts;
    uint64_t bytes = 0;
    assert_ok(artifacts_of(&stand, (struct job_id){1}, &artifacts, &error), &error);
    artifacts_each(&artifacts, count_file, &bytes);
    assert_int_equal(bytes, size + 18);
    /* A copy that is damaged is fetched again. */
    CADRE_FREE_AT_EXIT char *copy = sha256_path(stand.blob_dir, hash.bytes);
    text[0] = '!';
    test_write(copy, text);
    bytes = 0;
    artifacts_each(&artifacts, count_file, &bytes);
    assert_int_equal(bytes, size + 18);
    artifacts_free(&artifacts);
}

/* What a checkpoint references is not known while the store is away: nothing of it goes, and who
 * asks is to ask again. */
static void a_manifest_that_cannot_be_read_now(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct cadre_error away = {0};
    static const char *const blocks[] = {"block one", NULL};
    char text[2048];
    struct fake_job *job = add_job(&engine, 1, "program");
    size_t size = manifest_text(10, blocks, text);
    text[size] = '\0';
    struct sha256 hash = put_object(text);
    struct sha256 block = put_object(blocks[0]);
    struct core_checkpoint checkpoint = {
        .position = 10, .path = "c-10.json", .manifest_bytes = size};
    memcpy(checkpoint.manifest_sha256, hash.bytes, sizeof hash.bytes);
    publish(job, &checkpoint);
    (void)objects_judge(
        stand.objects, cadre_error_set(&away, CADRE_UNAVAILABLE, "no answer"), &away);
    assert_error(content_references_refresh(&stand, &error), CADRE_UNAVAILABLE, &error,
        "nothing is removed");
    settle(&stand);
    assert_true(content_references_are_incomplete(stand.content_references));
    assert_true(stand.references_dropped); /* it is counted again, but not at once: */
    assert_true(stand.references_next_us > clock_monotonic_us());
    assert_false(content_references_has(stand.content_references, &block));
    assert_true(objects_wait(stand.objects));
    assert_ok(refresh_references(&stand, &error), &error);
    assert_false(content_references_are_incomplete(stand.content_references));
    assert_true(content_references_has(stand.content_references, &block));
}

static bool is_of_job(const char *name);

static uint64_t put_output(const char *name, const char *text)
{
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    uint64_t replaced = 0;
    test_write(test_path(path, stand.blob_dir, "upload-1"), text);
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    const struct received_output output = {.job = {1}, .name = name, .fd = fd};
    assert_ok(received_output_put(&stand, &output, &replaced, &error), &error);
    return replaced;
}

/* Bytes, a reference to a checkpoint's file, and bytes again. */
static void an_output_is_one_of_two(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    static const char *const blocks[] = {"block one", NULL};
    char text[2048];
    struct fake_job *job = add_job(&engine, 1, "program");
    size_t size = manifest_text(10, blocks, text);
    text[size] = '\0';
    struct sha256 hash = put_object(text);
    struct core_checkpoint checkpoint = {
        .position = 10, .path = "c-10.json", .manifest_bytes = size};
    memcpy(checkpoint.manifest_sha256, hash.bytes, sizeof hash.bytes);
    publish(job, &checkpoint);
    assert_ok(quota_open(&stand, &error), &error);
    settle(&stand);
    assert_int_equal(put_output("0/c-10.safetensors", "some bytes"), 0);
    assert_int_equal(put_output("0/c-10.safetensors", "others"), 10);
    assert_true(is_of_job("jobs/1/outputs/0/c-10.safetensors"));
    struct artifacts kept;
    uint64_t replaced = 0;
    assert_ok(artifacts_of(&stand, (struct job_id){1}, &kept, &error), &error);
    struct received_output reference = {.job = {1},
        .name = "0/c-10.safetensors",
        .fd = -1,
        .kept = &kept,
        .checkpoint = hash.bytes,
        .refers_bytes = 9};
    assert_ok(received_output_put(&stand, &reference, &replaced, &error), &error);
    assert_int_equal(replaced, 6);
    assert_false(is_of_job("jobs/1/outputs/0/c-10.safetensors"));
    assert_true(is_of_job("jobs/1/references/0/c-10.safetensors"));
    reference.refers_bytes = 8;
    assert_error(received_output_put(&stand, &reference, &replaced, &error), CADRE_NOT_FOUND,
        &error, "send the bytes");
    artifacts_free(&kept);
    assert_int_equal(put_output("0/c-10.safetensors", "bytes"), 0);
    assert_true(is_of_job("jobs/1/outputs/0/c-10.safetensors"));
    assert_false(is_of_job("jobs/1/references/0/c-10.safetensors"));
}

static void an_upload_becomes_an_object_and_a_copy(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    struct sha256 hash = hash_of_text("a content");
    CADRE_FREE_AT_EXIT char *target = sha256_path(stand.blob_dir, hash.bytes);
    test_write(test_path(path, stand.blob_dir, "upload-1"), "a content");
    CADRE_CLOSE_AT_EXIT int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_ok(received_content_put(&stand, &hash, fd, path, target, &error), &error);
    assert_true(is_object(&hash));
    assert_int_equal(access(target, F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void put_of_job(const char *name, const char *text)
{
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = objects_path(stand.objects, "jobs/%s", name);
    assert_ok(objects_put(stand.objects, path, text, strlen(text), &error), &error);
}

static bool is_of_job(const char *name)
{
    CADRE_FREE_AT_EXIT char *path = objects_path(stand.objects, "%s", name);
    return access(path, F_OK) == 0;
}

static void a_forgotten_job_leaves_nothing(void **state)
{
    (void)state;
    put_of_job("1/logs/0/x", "text");
    put_of_job("1/outputs/0/y", "text");
    put_of_job("2/outputs/0/y", "text");
    paths_remove_job(&stand, (struct job_id){1});
    settle(&stand);
    assert_false(is_of_job("jobs/1/logs/0/x"));
    assert_false(is_of_job("jobs/1/outputs/0/y"));
    assert_false(is_of_job("forgotten/1"));
    assert_true(is_of_job("jobs/2/outputs/0/y"));
}

/* A kill came in between. */
static void a_start_removes_the_rest(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    CADRE_FREE_AT_EXIT char *path = objects_path(stand.objects, "forgotten/3");
    put_of_job("3/outputs/0/y", "text");
    put_of_job("4/outputs/0/y", "text");
    assert_ok(objects_put(stand.objects, path, "", 0, &error), &error);
    paths_resume_removal(&stand);
    settle(&stand);
    assert_false(is_of_job("jobs/3/outputs/0/y"));
    assert_false(is_of_job("forgotten/3"));
    assert_true(is_of_job("jobs/4/outputs/0/y"));
}

static void what_jobs_keep_is_counted(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    add_job(&engine, 1, "program");
    add_job(&engine, 2, "program");
    put_of_job("1/logs/0/x", "12345");
    put_of_job("1/outputs/0/y", "123");
    put_of_job("1/series/z", "12");
    put_of_job("2/outputs/0/y", "1");
    put_of_job("7/outputs/0/y", "of a job that there is not");
    assert_ok(quota_open(&stand, &error), &error);
    settle(&stand);
    assert_int_equal(quota_job_bytes(stand.quota, (struct job_id){1}), 10);
    assert_int_equal(quota_job_bytes(stand.quota, (struct job_id){2}), 1);
    struct quota_sizes sizes = quota_sizes(&stand);
    assert_int_equal(sizes.logs_bytes, 7);
    assert_int_equal(sizes.outputs_bytes, 4);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(none_is_known_before_all_are_listed),
        TEST(a_list_may_be_old), TEST(an_old_look_brings_nothing_back),
        TEST(what_comes_while_it_is_counted_counts_once), TEST(the_newest_outputs_are_known),
        TEST(what_waits_goes_on_then), TEST(what_is_not_needed_goes_after_an_hour),
        TEST(only_a_leader_removes), TEST(a_checkpoint_is_read_from_the_store),
        TEST(a_manifest_that_cannot_be_read_now), TEST(an_output_is_one_of_two),
        TEST(an_upload_becomes_an_object_and_a_copy), TEST(a_forgotten_job_leaves_nothing),
        TEST(a_start_removes_the_rest), TEST(what_jobs_keep_is_counted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
