/* SPDX-License-Identifier: Apache-2.0
 * Published checkpoints as files: what counts as published, what is listed, where it is found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/pure/assert.h"
#include "coordinator/daemon/contents/artifacts.h"
#include "coordinator/daemon/contents/content_references.h"
#include "coordinator/daemon/base/disk.h"
#include "coordinator/daemon/contents/worker_permissions.h"
#include "tests/unit/coordinator_daemon/fake_engine.h"

static struct engine engine;
static struct daemon stand;
static const struct job_id job_1 = {1};

static int set_up(void **state)
{
    (void)state;
    engine = (struct engine){0};
    daemon_open(&stand, &engine);
    add_job(&engine, 1, "program");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    daemon_close(&stand);
    return 0;
}

static void lose(const uint8_t *hash)
{
    CADRE_FREE_AT_EXIT char *path = path_of_blob(&stand, hash);
    assert_int_equal(unlink(path), 0);
}

static void lose_text(const char *text)
{
    struct sha256 hash = hash_of_text(text);
    lose(hash.bytes);
}

/* ---- what counts ---- */

static cadre_status check_part(const struct task_part *part, struct cadre_error *error)
{
    struct artifact_references references;
    struct checkpoint_content content;
    cadre_status status = artifacts_check_part(&stand, part, &references, &content, error);
    if (status == CADRE_OK) {
        assert_int_equal(references.bytes, part->size_bytes + content.file_bytes);
        assert_in_range(references.count, content.block_count + 1, content.block_count + 2);
    }
    free(references.hashes);
    checkpoint_content_free(&content);
    return status;
}

static void a_part_counts_when_all_of_it_is_here(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 20, (const char *const[]){"first", "second", NULL});
    struct task_part part = part_of(&checkpoint);
    assert_ok(check_part(&part, &error), &error);
    part.position = 21;
    assert_error(check_part(&part, &error), CADRE_INVALID_ARGUMENT, &error, "is of step 20");
    part.position = 20;
    part.size_bytes++;
    assert_error(check_part(&part, &error), CADRE_FAILED_PRECONDITION, &error,
        "the manifest checkpoints/c-20.json");
    part.size_bytes--;
    lose_text("second");
    assert_error(check_part(&part, &error), CADRE_FAILED_PRECONDITION, &error, "block 2 of 2");
    put_content(&stand, "second");
    struct sha256 hash = hash_of_text("second");
    CADRE_FREE_AT_EXIT char *path = path_of_blob(&stand, hash.bytes);
    test_write(path, "short");
    assert_error(
        check_part(&part, &error), CADRE_FAILED_PRECONDITION, &error, "not with its 6 bytes");
    put_content(&stand, "second");
    lose(part.sha256);
    assert_error(check_part(&part, &error), CADRE_FAILED_PRECONDITION, &error, "is not here");
}

static cadre_status check_names(
    const char *worker, const struct core_checkpoint *checkpoint, struct cadre_error *error)
{
    struct sha256 hashes[3] = {hash_of_text("mine"), hash_of_text("program")};
    memcpy(hashes[2].bytes, checkpoint->manifest_sha256, SHA256_BYTES);
    return worker_contents_check(&stand, worker, hashes, 3, error);
}

/* By naming the hash of what it does not have it would make it one of its job's. */
static void a_worker_names_only_what_it_has(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 20, (const char *const[]){"mine", "program", NULL});
    struct sha256 manifest;
    const struct sha256 mine = hash_of_text("mine");
    memcpy(manifest.bytes, checkpoint.manifest_sha256, SHA256_BYTES);
    stand.started_us = 0; /* all came after it */
    assert_ok(refresh_references(&stand, &error), &error);
    assert_error(
        check_names("w", &checkpoint, &error), CADRE_PERMISSION_DENIED, &error, "did not upload");
    worker_contents_note(&stand, "v", &manifest);
    assert_error(
        check_names("w", &checkpoint, &error), CADRE_PERMISSION_DENIED, &error, "did not upload");
    worker_contents_note(&stand, "w", &manifest);
    worker_contents_note(&stand, "w", &mine);
    assert_error(
        check_names("w", &checkpoint, &error), CADRE_PERMISSION_DENIED, &error, "did not upload");
    worker_contents_note(&stand, "of all jobs", &manifest);
    worker_contents_note(&stand, "of all jobs", &mine);
    assert_ok(check_names("of all jobs", &checkpoint, &error), &error);
    stand.started_us = clock_wall_us(); /* what was brought before is not known */
    assert_error(
        check_names("x", &checkpoint, &error), CADRE_PERMISSION_DENIED, &error, "did not upload");
    forget_job(&engine, 1);
    assert_ok(refresh_references(&stand, &error), &error);
    put_content(&stand, "program");
    stand.started_us += 10 * CADRE_US_PER_S;
    assert_ok(check_names("x", &checkpoint, &error), &error);
}

/* Whatever fails, a part that was not looked at wholly does not count, and the next time it does.
 */
static void a_part_is_not_believed_when_a_look_fails(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 20, (const char *const[]){"first", NULL});
    struct task_part part = part_of(&checkpoint);
    for (uint64_t nth = 1;; nth++) {
        fault_arm("file", nth); /* also of file_store */
        cadre_status status = check_part(&part, &error);
        bool met = fault_disarm();
        assert_int_equal(status != CADRE_OK, met);
        assert_ok(check_part(&part, &error), &error);
        if (!met) {
            assert_true(nth > 3);
            break;
        }
    }
}

/* ---- listing ---- */

struct listed {
    char text[1024];
};

static void list_one(void *user, const char *name, uint64_t bytes)
{
    struct listed *listed = user;
    size_t at = strlen(listed->text);
    snprintf(
        listed->text + at, sizeof listed->text - at, "%s %llu\n", name, (unsigned long long)bytes);
}

static void assert_listed(const char *expected)
{
    struct cadre_error error = {0};
    struct listed listed = {""};
    struct artifacts artifacts;
    assert_ok(artifacts_of(&stand, job_1, &artifacts, &error), &error);
    artifacts_each(&artifacts, list_one, &listed);
    artifacts_free(&artifacts);
    assert_string_equal(listed.text, expected);
}

static void each_kept_one_is_two_files(void **state)
{
    (void)state;
    assert_listed("");
    struct core_checkpoint first = put_checkpoint(&stand, 5, (const char *const[]){"abc", NULL});
    struct core_checkpoint second =
        put_checkpoint(&stand, 10, (const char *const[]){"abc", "defg", NULL});
    publish(&engine.jobs[0], &first);
    publish(&engine.jobs[0], &second);
    char expected[256];
    snprintf(expected, sizeof expected,
        "c-5.json %u\nc-5.safetensors 3\nc-10.json %u\n"
        "c-10.safetensors 7\n",
        (unsigned)first.manifest_bytes, (unsigned)second.manifest_bytes);
    assert_listed(expected);
    lose(first.manifest_sha256); /* that one cannot be read any more */
    snprintf(expected, sizeof expected, "c-10.json %u\nc-10.safetensors 7\n",
        (unsigned)second.manifest_bytes);
    assert_listed(expected);
}

static cadre_status find_file(
    struct job_id job, const char *name, struct artifact_file *ret_file, struct cadre_error *error)
{
    struct artifacts artifacts;
    assert_ok(artifacts_of(&stand, job, &artifacts, error), error);
    cadre_status status = artifacts_find(&artifacts, name, ret_file, error);
    artifacts_free(&artifacts);
    return status;
}

static void they_are_found_by_name(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct artifact_file file;
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 10, (const char *const[]){"abc", "defg", NULL});
    publish(&engine.jobs[0], &checkpoint);
    assert_ok(find_file(job_1, "c-10.json", &file, &error), &error);
    assert_int_equal(file.bytes, checkpoint.manifest_bytes);
    assert_memory_equal(file.sha256, checkpoint.manifest_sha256, sizeof file.sha256);
    assert_int_equal(access(file.path, R_OK), 0);
    artifact_file_free(&file);
    assert_ok(find_file(job_1, "c-10.safetensors", &file, &error), &error);
    struct sha256 whole = hash_of_text("abcdefg");
    assert_int_equal(file.bytes, 7);
    assert_memory_equal(file.sha256, whole.bytes, sizeof file.sha256);
    assert_null(file.path);
    assert_int_equal(file.content.block_count, 2);
    artifact_file_free(&file);
    assert_error(find_file(job_1, "c-11.json", &file, &error), CADRE_NOT_FOUND, &error,
        "keeps no checkpoint file c-11.json");
    assert_error(find_file((struct job_id){9}, "c-10.json", &file, &error), CADRE_NOT_FOUND, &error,
        "job 9");
}

/* ---- a shared folder ---- */

static struct core_checkpoint put_shared(const char *folder)
{
    char path[TEST_PATH_BYTES];
    char text[2048];
    struct core_checkpoint checkpoint = {.position = 10, .shared = true, .path = "c-10.json"};
    checkpoint.manifest_bytes = manifest_text(10, (const char *const[]){"abc", NULL}, text);
    struct sha256 hash = hash_of_text(text);
    memcpy(checkpoint.manifest_sha256, hash.bytes, sizeof hash.bytes);
    test_write(test_path(path, folder, "c-10.json"), text);
    test_write(test_path(path, folder, "c-10.safetensors"), "abc");
    return checkpoint;
}

static void a_shared_one_is_listed_where_it_can_be_read(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct artifact_file file;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    struct core_checkpoint checkpoint = put_shared(folder);
    publish(&engine.jobs[0], &checkpoint);
    engine.jobs[0].spec.checkpoint_folder = folder;
    char expected[128];
    snprintf(expected, sizeof expected, "c-10.json %u\nc-10.safetensors 3\n",
        (unsigned)checkpoint.manifest_bytes);
    assert_listed(expected);
    assert_ok(find_file(job_1, "c-10.safetensors", &file, &error), &error);
    assert_string_equal(file.path, test_path(path, folder, "c-10.safetensors"));
    artifact_file_free(&file);
    engine.jobs[0].spec.checkpoint_folder = "/not/mounted/here";
    assert_listed("");
    assert_error(find_file(job_1, "c-10.json", &file, &error), CADRE_FAILED_PRECONDITION, &error,
        "/not/mounted/here");
    engine.jobs[0].spec.checkpoint_folder = folder;
    test_write(test_path(path, folder, "c-10.json"), "of another job");
    assert_listed("");
    assert_error(find_file(job_1, "c-10.json", &file, &error), CADRE_FAILED_PRECONDITION, &error,
        "was changed since");
}

/* The coordinator has no credentials of a job. */
static void one_in_an_object_store_is_named_by_its_place(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct artifact_file file;
    struct core_checkpoint checkpoint = put_shared(test_temp_dir());
    publish(&engine.jobs[0], &checkpoint);
    engine.jobs[0].spec.checkpoint_folder = "s3://bucket/run 1";
    assert_listed("");
    const char *const wanted[] = {"c-10.json", "c-10.safetensors", "checkpoints", "other"};
    for (size_t i = 0; i < CADRE_COUNT_OF(wanted); i++) {
        assert_error(find_file(job_1, wanted[i], &file, &error), CADRE_FAILED_PRECONDITION, &error,
            "the checkpoints of job 1 lie in the object store, at s3://bucket/run 1, for which the "
            "coordinator has no credentials: `cadre get` reads them with yours; or copy them from "
            "there");
    }
}

/* ---- references ---- */

static cadre_status refer(
    const uint8_t *hash, uint64_t bytes, const char *path, struct cadre_error *error)
{
    struct artifacts artifacts;
    char temporary[TEST_PATH_BYTES];
    assert_ok(artifacts_of(&stand, job_1, &artifacts, error), error);
    cadre_status status = artifacts_link(
        &artifacts, hash, bytes, test_path(temporary, stand.blob_dir, "upload-1"), path, error);
    artifacts_free(&artifacts);
    return status;
}

static void an_output_may_refer_to_a_kept_one(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    char name[64];
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 10, (const char *const[]){"abc", NULL});
    publish(&engine.jobs[0], &checkpoint);
    const uint8_t *hash = checkpoint.manifest_sha256;
    test_path(path, stand.job_dir, "c-10.safetensors");
    assert_ok(refer(hash, 3, path, &error), &error);
    CADRE_FREE_AT_EXIT char *target = artifacts_link_target(path);
    assert_string_equal(target, "c-10.safetensors");
    assert_ok(refer(hash, 3, path, &error), &error); /* repeated */
    assert_error(refer(hash, 4, path, &error), CADRE_NOT_FOUND, &error, "send the bytes");
    test_path(path, stand.job_dir, "c-10.json");
    assert_ok(refer(hash, checkpoint.manifest_bytes, path, &error), &error);
    test_path(path, stand.job_dir, "mine");
    assert_error(refer(hash, 3, path, &error), CADRE_NOT_FOUND, &error, "mine");
    assert_int_not_equal(access(path, F_OK), 0);
    uint8_t other[LIMIT_SHA256_BYTES] = {1};
    test_path(path, stand.job_dir, "c-10.safetensors");
    assert_error(
        refer(other, 3, path, &error), CADRE_NOT_FOUND, &error, "keeps no such checkpoint");
    /* Nothing else is taken for one. */
    snprintf(name, sizeof name, "plain");
    test_write(test_path(path, stand.job_dir, name), "a file");
    assert_null(artifacts_link_target(path));
    assert_int_equal(symlink("/etc/passwd", test_path(path, stand.job_dir, "link")), 0);
    assert_null(artifacts_link_target(path));
    assert_int_equal(symlink("checkpoints/", test_path(path, stand.job_dir, "empty")), 0);
    assert_null(artifacts_link_target(path));
    assert_null(artifacts_link_target(test_path(path, stand.job_dir, "missing")));
}

/* It is made as a whole or not at all, and leaves nothing behind. */
static void a_reference_that_fails_is_not_there(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    struct core_checkpoint checkpoint =
        put_checkpoint(&stand, 10, (const char *const[]){"abc", NULL});
    publish(&engine.jobs[0], &checkpoint);
    test_path(path, stand.job_dir, "c-10.safetensors");
    fault_arm("artifacts.", 1);
    cadre_status status = refer(checkpoint.manifest_sha256, 3, path, &error);
    assert_true(fault_disarm());
    assert_int_not_equal(status, CADRE_OK);
    assert_null(artifacts_link_target(path));
    char temporary[TEST_PATH_BYTES];
    assert_int_not_equal(access(test_path(temporary, stand.blob_dir, "upload-1"), F_OK), 0);
    assert_ok(refer(checkpoint.manifest_sha256, 3, path, &error), &error);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(a_part_counts_when_all_of_it_is_here),
        TEST(a_worker_names_only_what_it_has), TEST(a_part_is_not_believed_when_a_look_fails),
        TEST(each_kept_one_is_two_files), TEST(they_are_found_by_name),
        TEST(a_shared_one_is_listed_where_it_can_be_read),
        TEST(one_in_an_object_store_is_named_by_its_place), TEST(an_output_may_refer_to_a_kept_one),
        TEST(a_reference_that_fails_is_not_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
