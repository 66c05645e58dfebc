/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints in an object store: whether one is whole, and which is the newest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sha256.h"
#include "common/checkpoint/choose.h"
#include "common/checkpoint/named.h"
#include "tests/lib/test.h"
#include "tests/unit/checkpoint/memory_store.h"

#define FOLDER "s3://bucket/run 1"
#define BLOCK  LIMIT_CHECKPOINT_BLOCK_BYTES
#define BLOCKS 5

static int client_of_job; /* its address is a client's */

static const char *writer = ""; /* ".7": in the names of what is put */

static void put(const char *folder, unsigned step, const char *kind, const void *bytes, size_t size)
{
    char path[256];
    struct cadre_error error = {0};
    snprintf(path, sizeof path, "%s/checkpoint-%u%s.%s", folder, step, writer, kind);
    assert_ok(storage_put(NULL, path, bytes, size, &error), &error);
}

static void hash_of(const char *bytes, size_t size, char ret_hex[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    assert_int_equal(sha256_of(bytes, size, &hash, NULL), CADRE_OK);
    sha256_hex(&hash, ret_hex);
}

/* Tensors of five blocks, and their manifest, whose hash is returned. */
static struct sha256 put_checkpoint(const char *folder, unsigned step)
{
    char *bytes = calloc(BLOCKS, BLOCK);
    char text[4096];
    char hex[SHA256_HEX_BYTES];
    struct sha256 hash;
    assert_non_null(bytes);
    for (size_t i = 0; i < BLOCKS; i++) {
        snprintf(bytes + i * BLOCK, 64, "block %zu of %u", i, step);
    }
    hash_of(bytes, (size_t)BLOCKS * BLOCK, hex);
    int at = snprintf(text, sizeof text,
        "{\"format\": \"cadre-checkpoint\", \"version\": 1, \"position\": %u,"
        " \"file\": {\"name\": \"checkpoint-%u%s.safetensors\", \"bytes\": %d, \"sha256\": \"%s\"},"
        " \"blocks\": [",
        step, step, writer, BLOCKS * BLOCK, hex);
    for (size_t i = 0; i < BLOCKS; i++) {
        hash_of(bytes + i * BLOCK, BLOCK, hex);
        at += snprintf(text + at, sizeof text - (size_t)at,
            "%s{\"offset\": %zu, \"bytes\": %d, \"sha256\": \"%s\"}", i == 0 ? "" : ", ", i * BLOCK,
            BLOCK, hex);
    }
    at += snprintf(text + at, sizeof text - (size_t)at, "]}");
    put(folder, step, "safetensors", bytes, (size_t)BLOCKS * BLOCK);
    put(folder, step, "json", text, (size_t)at);
    assert_int_equal(sha256_of(text, (size_t)at, &hash, NULL), CADRE_OK);
    free(bytes);
    return hash;
}

static int clear(void **state)
{
    (void)state;
    memory_store_clear();
    writer = "";
    return 0;
}

static void assert_chosen(const char *folder, const char *path, const char *note)
{
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    assert_true(checkpoint_is_folder(folder));
    assert_ok(checkpoint_choose(folder, &choice, &error), &error);
    assert_string_equal(choice.path, path);
    assert_non_null(strstr(choice.note, note));
    assert_true(note[0] != '\0' || choice.note[0] == '\0');
    checkpoint_choice_free(&choice);
}

/* Its tensors are read over several connections. */
static void the_newest_whole_one_is_taken(void **state)
{
    (void)state;
    memory_store.reads_wanted = 2;
    put_checkpoint(FOLDER, 9);
    put_checkpoint(FOLDER, 100);
    put_checkpoint(FOLDER "/below", 200);
    put(FOLDER, 300, "json.bak", "mine", 4);
    assert_chosen(FOLDER, FOLDER "/checkpoint-100.json", "");
    assert_chosen(FOLDER "/", FOLDER "/checkpoint-100.json", "");
    assert_int_equal(memory_store.read_bytes / ((size_t)BLOCKS * BLOCK), 2);
    memory_store_flip(FOLDER "/checkpoint-100.safetensors", 3 * BLOCK + 1);
    assert_chosen(FOLDER, FOLDER "/checkpoint-9.json",
        "block 4 of 5 of checkpoint-100.safetensors does not have its hash): that of step 9");
}

/* A chief that came later wrote the same step: its is taken, if it is whole. */
static void two_may_have_written_one_step(void **state)
{
    (void)state;
    put_checkpoint(FOLDER, 9);
    writer = ".12";
    put_checkpoint(FOLDER, 9);
    put(FOLDER, 10, "safetensors", "half", 4);
    writer = ".3";
    put_checkpoint(FOLDER, 9);
    assert_chosen(FOLDER, FOLDER "/checkpoint-9.12.json", "checkpoint-10.12.json is missing");
    memory_store_flip(FOLDER "/checkpoint-9.12.safetensors", 0);
    assert_chosen(FOLDER, FOLDER "/checkpoint-9.3.json", "and so are 1 before it");
}

static void a_bucket_may_be_the_folder(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint64_t position = 0;
    bool exists = true;
    assert_ok(checkpoint_exists("s3://bucket", &exists, &position, &error), &error);
    assert_false(exists);
    put_checkpoint("s3://bucket", 7);
    assert_ok(checkpoint_exists("s3://bucket", &exists, &position, &error), &error);
    assert_true(exists);
    assert_int_equal(position, 7);
    memory_store.refused = "s3://bucket";
    assert_error(checkpoint_exists("s3://bucket", &exists, &position, &error),
        CADRE_PERMISSION_DENIED, &error, "s3:Any is missing");
    memory_store.refused = NULL;
    assert_chosen("s3://bucket", "s3://bucket/checkpoint-7.json", "");
}

static void a_file_is_no_folder(void **state)
{
    (void)state;
    assert_false(checkpoint_is_folder(FOLDER "/checkpoint-7.json"));
    assert_false(checkpoint_is_folder(FOLDER "/model.safetensors"));
    assert_true(checkpoint_is_folder(FOLDER "/json"));
}

static void what_may_not_be_read_is_not_damaged(void **state)
{
    (void)state;
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    put_checkpoint(FOLDER, 9);
    put_checkpoint(FOLDER, 100);
    memory_store.refused = FOLDER "/checkpoint-100.safe";
    assert_error(checkpoint_choose(FOLDER, &choice, &error), CADRE_PERMISSION_DENIED, &error,
        "the checkpoint of step 100 in " FOLDER);
}

/* Nor is what a store does not give now: an older one is not taken for it. */
static void a_store_that_is_away_is_not_damaged(void **state)
{
    (void)state;
    struct checkpoint_choice choice;
    struct cadre_error error = {0};
    put_checkpoint(FOLDER, 9);
    put_checkpoint(FOLDER, 100);
    static const char *const objects[] = {
        FOLDER "/checkpoint-100.safe", FOLDER "/checkpoint-100.json"};
    for (size_t i = 0; i < 2; i++) {
        memory_store.away = objects[i];
        assert_error(checkpoint_choose(FOLDER, &choice, &error), CADRE_UNAVAILABLE, &error,
            "the checkpoint of step 100 in " FOLDER);
    }
    memory_store.away = NULL;
    assert_chosen(FOLDER, FOLDER "/checkpoint-100.json", "");
}

static void assert_checked(const struct sha256 *hash, cadre_status status, const char *text)
{
    struct cadre_error error = {0};
    struct checkpoint_counts counts = {0};
    struct storage_client *client = (struct storage_client *)(void *)&client_of_job;
    cadre_status checked =
        checkpoint_check(client, FOLDER "/checkpoint-5.json", hash->bytes, &counts, &error);
    assert_ptr_equal(memory_store.client, client);
    if (status == CADRE_OK) {
        assert_ok(checked, &error);
        assert_int_equal(counts.done_bytes, (size_t)BLOCKS * BLOCK);
    } else {
        assert_error(checked, status, &error, text);
    }
}

static void one_is_checked_with_a_job_s_credentials(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct sha256 hash = put_checkpoint(FOLDER, 5);
    assert_checked(&hash, CADRE_OK, "");
    memory_store.refused = FOLDER;
    assert_checked(&hash, CADRE_PERMISSION_DENIED, "s3:Any is missing");
    memory_store.refused = NULL;
    memory_store_flip(FOLDER "/checkpoint-5.safetensors", 0);
    assert_checked(&hash, CADRE_DATA_LOSS, "block 1 of 5 of checkpoint-5.safetensors");
    assert_ok(storage_remove(NULL, FOLDER "/checkpoint-5.json", &error), &error);
    assert_checked(&hash, CADRE_DATA_LOSS, "checkpoint-5.json is missing");
    assert_ok(storage_remove(NULL, FOLDER "/checkpoint-5.safetensors", &error), &error);
    assert_checked(&hash, CADRE_NOT_FOUND, "checkpoint-5.json is missing");
}

static void another_one_is_named(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    put_checkpoint(FOLDER, 9);
    put_checkpoint(FOLDER, 100);
    memory_store_flip(FOLDER "/checkpoint-100.safetensors", 0);
    cadre_error_set(&error, CADRE_DATA_LOSS, "it is damaged");
    checkpoint_suggest_other(FOLDER "/checkpoint-100.json", &error);
    assert_string_equal(error.text, "it is damaged; the newest whole one beside it is " FOLDER
                                    "/checkpoint-9.json: name that, or the folder " FOLDER);
}

/* --- one that is named --- */

static void each_block(void *user)
{
    ++*(unsigned *)user;
}

static void one_is_named_and_copied(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct checkpoint_named named;
    struct storage_client *client = (struct storage_client *)(void *)&client_of_job;
    struct sha256 hash = put_checkpoint(FOLDER, 5);
    size_t size = 0;
    unsigned blocks = 0;
    assert_ok(checkpoint_named_read(client, FOLDER "/checkpoint-5.json", &named, &error), &error);
    assert_ptr_equal(memory_store.client, client);
    assert_int_equal(named.content.position, 5);
    assert_memory_equal(named.sha256, hash.bytes, sizeof named.sha256);
    assert_string_equal(named.tensors, FOLDER "/checkpoint-5.safetensors");
    assert_ok(checkpoint_named_check_size(client, &named, &error), &error);
    assert_int_equal(memory_store.read_bytes, named.text_bytes);
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_ok(
        checkpoint_named_copy_tensors(client, &named, fileno(file), each_block, &blocks, &error),
        &error);
    assert_ptr_equal(memory_store.client, client);
    assert_int_equal(blocks, BLOCKS);
    const char *wanted = memory_store_find(named.tensors, &size);
    char *got = malloc(size);
    assert_non_null(got);
    rewind(file);
    assert_int_equal(fread(got, 1, size, file), size);
    assert_memory_equal(got, wanted, size);
    memory_store_flip(named.tensors, 2 * BLOCK);
    assert_error(
        checkpoint_named_copy_tensors(client, &named, fileno(file), each_block, &blocks, &error),
        CADRE_DATA_LOSS, &error, "block 3 of 5 of " FOLDER "/checkpoint-5.safetensors");
    checkpoint_named_free(&named);
    fclose(file);
    free(got);
}

static void one_that_is_named_and_not_whole(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct checkpoint_named named;
    assert_error(checkpoint_named_read(NULL, FOLDER "/checkpoint-5.json", &named, &error),
        CADRE_NOT_FOUND, &error, FOLDER "/checkpoint-5.json");
    checkpoint_named_free(&named);
    put(FOLDER, 5, "json", "{}", 2);
    assert_error(checkpoint_named_read(NULL, FOLDER "/checkpoint-5.json", &named, &error),
        CADRE_INVALID_ARGUMENT, &error, FOLDER "/checkpoint-5.json: this is no manifest");
    checkpoint_named_free(&named);
    put_checkpoint(FOLDER, 5);
    put(FOLDER, 5, "safetensors", "x", 1);
    assert_ok(checkpoint_named_read(NULL, FOLDER "/checkpoint-5.json", &named, &error), &error);
    assert_error(checkpoint_named_check_size(NULL, &named, &error), CADRE_DATA_LOSS, &error,
        "has 1 bytes, and its manifest says 41943040");
    assert_ok(storage_remove(NULL, FOLDER "/checkpoint-5.safetensors", &error), &error);
    assert_error(checkpoint_named_check_size(NULL, &named, &error), CADRE_NOT_FOUND, &error,
        "is not beside it");
    checkpoint_named_free(&named);
}

/* The newest whose files are there; no tensors are read. */
static void one_is_chosen_by_its_size(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct checkpoint_choice choice;
    struct storage_client *client = (struct storage_client *)(void *)&client_of_job;
    put_checkpoint(FOLDER, 9);
    put_checkpoint(FOLDER, 100);
    put_checkpoint(FOLDER, 200);
    memory_store_flip(FOLDER "/checkpoint-100.safetensors", 1);
    put(FOLDER, 200, "safetensors", "x", 1);
    assert_ok(checkpoint_choose_by_size(client, FOLDER, &choice, &error), &error);
    assert_ptr_equal(memory_store.client, client);
    assert_string_equal(choice.path, FOLDER "/checkpoint-100.json");
    assert_non_null(strstr(choice.note, "that of step 100 is taken"));
    assert_true(memory_store.read_bytes < BLOCK);
    checkpoint_choice_free(&choice);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, clear)
    const struct CMUnitTest tests[] = {TEST(the_newest_whole_one_is_taken),
        TEST(two_may_have_written_one_step), TEST(a_bucket_may_be_the_folder),
        TEST(a_file_is_no_folder), TEST(what_may_not_be_read_is_not_damaged),
        TEST(a_store_that_is_away_is_not_damaged), TEST(one_is_checked_with_a_job_s_credentials),
        TEST(another_one_is_named), TEST(one_is_named_and_copied),
        TEST(one_that_is_named_and_not_whole), TEST(one_is_chosen_by_its_size)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
