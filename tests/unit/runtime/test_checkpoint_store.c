/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints in an object store, here one in memory: the same bytes as in files, seen whole or not
 * at all, whatever becomes of their writer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/base/sha256.h"
#include "common/checkpoint/content.h"
#include "common/model/limits.h"
#include "common/pure/assert.h"
#include "common/storage/writer.h"
#include "training.h"
#include "tests/unit/checkpoint/memory_store.h"
#include "worker/library/runtime/program/checkpoints.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

#define FOLDER "s3://bucket/run"
#define LARGE  (LIMIT_CHECKPOINT_BLOCK_BYTES * 5 + 8) /* more than two parts of an upload */

static int clear(void **state)
{
    (void)state;
    memory_store_clear();
    return 0;
}

static cadre_variable *bytes_variable(cadre_strategy *strategy, int64_t count)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 3}};
    assert_public_ok(
        cadre_variable_create(strategy, "bytes", CADRE_I8, 1, &count, &options, &variable));
    return variable;
}

/* Adds 1 to the last byte of the variable "bytes". */
static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    const cadre_variable *bytes = user;
    int8_t *value = cadre_variable_write(replica, user);
    if (value == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    value[bytes->count - 1]++;
    return CADRE_OK;
}

static void run_steps(cadre_strategy *strategy, cadre_variable *bytes, int count)
{
    for (int i = 0; i < count; i++) {
        assert_public_ok(cadre_run(strategy, count_step, bytes, NULL, 0, NULL));
    }
}

static cadre_strategy *fresh(const char *folder)
{
    cadre_strategy *strategy = training_strategy(1);
    strategy->state_part->checkpointer->folder = folder;
    strategy->state_part->checkpointer->every = 0;
    return strategy;
}

static cadre_status load(cadre_strategy *strategy, const char *path, struct cadre_error *error)
{
    uint64_t position;
    strategy->state = STATE_RESTORES;
    cadre_status status = checkpoint_load(strategy, path, &position, error);
    strategy->state = STATE_PRESENT;
    return status;
}

static bool exists(const char *name)
{
    char path[256];
    size_t bytes;
    snprintf(path, sizeof path, FOLDER "/%s", name);
    return memory_store_find(path, &bytes) != NULL;
}

/* A training of three steps that leaves a checkpoint in the folder. */
static void train(const char *folder)
{
    cadre_strategy *strategy = fresh(folder);
    cadre_variable *bytes = bytes_variable(strategy, LARGE);
    run_steps(strategy, bytes, 3);
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
}

static void it_is_that_of_files(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    char *written;
    size_t size;
    size_t stored;
    const char *folder = test_temp_dir();
    train(folder);
    train(FOLDER);
    test_path(path, folder, "checkpoint-3.safetensors");
    assert_ok(file_read(path, 2 * LARGE, &written, &size, &error), &error);
    const char *object = memory_store_find(FOLDER "/checkpoint-3.safetensors", &stored);
    assert_int_equal(stored, size);
    assert_memory_equal(object, written, size);
    free(written);
    assert_true(exists("checkpoint-3.json"));
    assert_int_equal(memory_store.uploads, 0);

    cadre_strategy *strategy = fresh(FOLDER);
    cadre_variable *bytes = bytes_variable(strategy, LARGE);
    memory_store.reads_wanted = 2;
    memory_store.read_bytes = 0;
    assert_ok(load(strategy, FOLDER "/checkpoint-3.json", &error), &error);
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[LARGE - 1], 6);
    assert_in_range(memory_store.read_bytes, size, size + ((size_t)1 << 20));
    cadre_strategy_release(strategy);
}

/* The manifest's blocks are those of the object, whatever the parts in which it was sent. */
static void check_blocks(void)
{
    struct cadre_error error = {0};
    struct checkpoint_content content;
    size_t text_size;
    size_t size;
    const char *text = memory_store_find(FOLDER "/checkpoint-3.json", &text_size);
    const char *bytes = memory_store_find(FOLDER "/checkpoint-3.safetensors", &size);
    assert_ok(checkpoint_content_read(text, text_size, &content, &error), &error);
    assert_int_equal(content.file_bytes, size);
    assert_false(content.has_file_hash);
    for (size_t i = 0; i < content.block_count; i++) {
        const struct checkpoint_block *block = &content.blocks[i];
        struct sha256 hash;
        assert_true(block->bytes == LIMIT_CHECKPOINT_BLOCK_BYTES || i + 1 == content.block_count);
        assert_ok(sha256_of(bytes + block->offset, (size_t)block->bytes, &hash, &error), &error);
        assert_memory_equal(hash.bytes, block->sha256, sizeof block->sha256);
    }
    checkpoint_content_free(&content);
}

static void its_blocks_are_hashed_as_they_are_sent(void **state)
{
    (void)state;
    train(FOLDER);
    check_blocks();
    storage_writer_grow_after(1); /* parts of 1, 2 and 4 blocks */
    train(FOLDER);
    storage_writer_grow_after(0);
    check_blocks();
    struct cadre_error error = {0};
    cadre_strategy *strategy = fresh(FOLDER);
    bytes_variable(strategy, LARGE);
    assert_ok(load(strategy, FOLDER "/checkpoint-3.json", &error), &error);
    cadre_strategy_release(strategy);
}

static void damage_is_found(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    train(FOLDER);
    cadre_strategy *strategy = fresh(FOLDER);
    bytes_variable(strategy, LARGE);
    memory_store_flip(FOLDER "/checkpoint-3.safetensors", 4 * LIMIT_CHECKPOINT_BLOCK_BYTES);
    assert_error(load(strategy, FOLDER "/checkpoint-3.json", &error), CADRE_DATA_LOSS, &error,
        FOLDER "/checkpoint-3.safetensors is damaged: block 4, ");
    assert_error(load(strategy, FOLDER "/checkpoint-4.json", &error), CADRE_NOT_FOUND, &error,
        FOLDER "/checkpoint-4.json");
    cadre_strategy_release(strategy);
}

static void old_ones_are_deleted_and_nothing_else(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *another = "{\"run\":\"another\",\"position\":1}";
    assert_ok(
        storage_put(NULL, FOLDER "/checkpoint-1.json", another, strlen(another), &error), &error);
    cadre_strategy *strategy = fresh(FOLDER "/"); /* one slash before a name */
    strategy->state_part->checkpointer->kept = 2;
    cadre_variable *bytes = bytes_variable(strategy, 8);
    for (int i = 0; i < 5; i++) {
        run_steps(strategy, bytes, 2);
        assert_public_ok(cadre_save(strategy, true));
    }
    cadre_strategy_release(strategy);
    static const char *const stay[] = {"checkpoint-1.json", "checkpoint-8.json",
        "checkpoint-8.safetensors", "checkpoint-10.json", "checkpoint-10.safetensors"};
    for (size_t i = 0; i < CADRE_COUNT_OF(stay); i++) {
        assert_true(exists(stay[i]));
    }
    assert_false(exists("checkpoint-6.json"));
    assert_false(exists("checkpoint-6.safetensors"));
}

/* ---- writers that die, and that go on ---- */

static void begin(struct checkpoint_file *file)
{
    struct cadre_error error = {0};
    assert_ok(checkpoint_file_begin(file, FOLDER, "checkpoint-3.safetensors", &error), &error);
}

static cadre_status add_bytes(struct checkpoint_file *file, char byte)
{
    static char bytes[LARGE];
    struct cadre_error error = {0};
    memset(bytes, byte, sizeof bytes);
    return checkpoint_file_add(file, bytes, sizeof bytes, &error);
}

/* It was killed in the middle: its upload stays, unseen, until the same is written. */
static void what_a_dead_writer_left_is_cleared(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct storage_upload *dead;
    assert_ok(
        storage_upload_begin(NULL, FOLDER "/checkpoint-3.safetensors", &dead, &error), &error);
    assert_ok(storage_upload_part(dead, 1, "half", 4, &error), &error);
    assert_int_equal(memory_store.uploads, 1);
    assert_false(exists("checkpoint-3.safetensors"));
    uint64_t *positions;
    size_t count;
    assert_ok(checkpoint_folder_list(FOLDER, "run", 100, &positions, &count, &error), &error);
    assert_int_equal(count, 0);
    free(positions);
    train(FOLDER);
    assert_int_equal(memory_store.uploads, 0);
    assert_true(exists("checkpoint-3.safetensors"));
    storage_upload_abort(dead);
}

static void a_replaced_writer_cannot_end(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct checkpoint_file old;
    struct checkpoint_file new;
    size_t size;
    begin(&old);
    assert_int_equal(add_bytes(&old, 'o'), CADRE_OK);
    assert_int_equal(memory_store.uploads, 1);
    begin(&new);
    assert_int_equal(add_bytes(&new, 'n'), CADRE_OK);
    assert_int_equal(memory_store.uploads, 1);
    (void)add_bytes(&old, 'o'); /* it fails here, or at the end */
    assert_ok(checkpoint_file_settle(&new, &error), &error);
    assert_ok(checkpoint_file_end(&new, &error), &error);
    assert_int_not_equal(checkpoint_file_end(&old, &error), CADRE_OK);
    checkpoint_file_drop(&old);
    checkpoint_file_drop(&new);
    assert_int_equal(memory_store_find(FOLDER "/checkpoint-3.safetensors", &size)[LARGE - 1], 'n');
    assert_int_equal(size, LARGE);
}

/* A training of three steps, of a task that writes under this name. */
static cadre_strategy *training_of(uint64_t writer, int64_t count, cadre_variable **ret_bytes)
{
    cadre_strategy *strategy = fresh(FOLDER);
    struct checkpointer *checkpointer = strategy->state_part->checkpointer;
    checkpointer->writer = writer;
    checkpointer->kept = 1;
    snprintf(checkpointer->run, sizeof checkpointer->run, "one run");
    *ret_bytes = bytes_variable(strategy, count);
    run_steps(strategy, *ret_bytes, 3);
    return strategy;
}

/* The caller's to free. */
static char *copy_of(const char *name, size_t *ret_size)
{
    char path[256];
    snprintf(path, sizeof path, FOLDER "%s", name);
    const char *bytes = memory_store_find(path, ret_size);
    assert_non_null(bytes);
    char *copy = malloc(*ret_size);
    assert_non_null(copy);
    memcpy(copy, bytes, *ret_size);
    return copy;
}

/* Under another name than that of the one that goes on. */
static void what_an_earlier_writer_left_is_cleared(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct storage_upload *dead[3];
    static const char *const paths[] = {FOLDER "/checkpoint-3.safetensors",
        FOLDER "/checkpoint-3.5.safetensors", FOLDER "/checkpoint-30.safetensors"};
    for (size_t i = 0; i < CADRE_COUNT_OF(paths); i++) {
        assert_ok(storage_upload_begin(NULL, paths[i], &dead[i], &error), &error);
    }
    cadre_variable *bytes;
    cadre_strategy *strategy = training_of(7, LARGE, &bytes);
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    assert_true(exists("checkpoint-3.7.safetensors"));
    assert_int_equal(memory_store.uploads, 1); /* of another step */
    for (size_t i = 0; i < CADRE_COUNT_OF(paths); i++) {
        storage_upload_abort(dead[i]);
    }
}

/* It was replaced, does not know that, and comes to the same step with another state. */
static void a_replaced_writer_writes_over_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"/checkpoint-3.7.safetensors", "/checkpoint-3.7.json"};
    char *published[CADRE_COUNT_OF(names)];
    size_t sizes[CADRE_COUNT_OF(names)];
    cadre_variable *bytes;
    cadre_variable *others;
    cadre_strategy *new = training_of(7, 8, &bytes);
    assert_public_ok(cadre_save(new, true));
    for (size_t i = 0; i < CADRE_COUNT_OF(names); i++) {
        published[i] = copy_of(names[i], &sizes[i]);
    }
    cadre_strategy *old = training_of(0, 16, &others);
    assert_public_ok(cadre_save(old, true));
    assert_true(exists("checkpoint-3.json"));
    for (size_t i = 0; i < CADRE_COUNT_OF(names); i++) {
        size_t size;
        char *now = copy_of(names[i], &size);
        assert_int_equal(size, sizes[i]);
        assert_memory_equal(now, published[i], size);
        free(now);
        free(published[i]);
    }
    run_steps(new, bytes, 1);
    assert_public_ok(cadre_save(new, true));
    cadre_strategy_release(old);
    cadre_strategy_release(new); /* what is old has gone by then */
    assert_true(exists("checkpoint-4.7.json"));
    assert_false(exists("checkpoint-3.7.json"));
    assert_false(exists("checkpoint-3.7.safetensors"));
    assert_false(exists("checkpoint-3.json"));
    assert_false(exists("checkpoint-3.safetensors"));
}

static void put_text(const char *name, const char *text)
{
    char path[256];
    struct cadre_error error = {0};
    snprintf(path, sizeof path, FOLDER "/%s", name);
    assert_ok(storage_put(NULL, path, text, strlen(text), &error), &error);
}

/* Tensors without a manifest, of a writer that died between the two. */
static void what_another_writer_has_written_since_goes(void **state)
{
    (void)state;
    cadre_variable *bytes;
    put_text("checkpoint-2.safetensors", "of no one that wrote it again");
    put_text("checkpoint-3.safetensors", "of the first writer");
    put_text("checkpoint-3.5.safetensors", "of another run");
    put_text("checkpoint-3.5.json", "{\"run\":\"another\",\"position\":3}");
    cadre_strategy *strategy = training_of(7, 8, &bytes);
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    assert_false(exists("checkpoint-3.safetensors"));
    assert_true(exists("checkpoint-2.safetensors"));
    assert_true(exists("checkpoint-3.5.safetensors"));
    assert_true(exists("checkpoint-3.7.safetensors"));
}

static void one_that_gives_up_leaves_nothing(void **state)
{
    (void)state;
    struct checkpoint_file file;
    begin(&file);
    assert_int_equal(add_bytes(&file, 'x'), CADRE_OK);
    assert_int_equal(memory_store.uploads, 1);
    checkpoint_file_drop(&file);
    assert_int_equal(memory_store.uploads, 0);
    assert_false(exists("checkpoint-3.safetensors"));
    cadre_strategy *strategy = fresh(FOLDER);
    cadre_variable *bytes = bytes_variable(strategy, LARGE);
    run_steps(strategy, bytes, 1);
    fault_arm("checkpoint.write", 4);
    assert_public_error(cadre_save(strategy, true), CADRE_RESOURCE_EXHAUSTED, "is missing");
    assert_true(fault_disarm());
    assert_false(exists("checkpoint-1.safetensors"));
    assert_int_equal(memory_store.uploads, 0);
    assert_public_ok(cadre_save(strategy, true)); /* the training goes on */
    assert_true(exists("checkpoint-1.json"));
    cadre_strategy_release(strategy);
}

/* Where it may not list uploads it writes all the same. */
static void one_that_may_not_list_uploads_writes(void **state)
{
    (void)state;
    memory_store.uploads_are_not_listed = true;
    train(FOLDER);
    assert_true(exists("checkpoint-3.json"));
}

/* ---- before the training ---- */

static void a_store_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    cadre_strategy *strategy = fresh(FOLDER);
    cadre_variable *variable;
    strategy->state_part->checkpointer->shared = true;
    memory_store.refused = FOLDER;
    assert_public_error(cadre_variable_create(strategy, "w", CADRE_F32, 0, NULL, NULL, &variable),
        CADRE_PERMISSION_DENIED, "no checkpoint can be written to " FOLDER);
    cadre_strategy_release(strategy);
}

static void a_token_proves_that_it_is_the_same(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    assert_int_equal(checkpoint_token_find(FOLDER, "abc", &error), CADRE_NOT_FOUND);
    assert_ok(checkpoint_token_write(FOLDER, "abc", &error), &error);
    assert_ok(checkpoint_token_find(FOLDER "/", "abc", &error), &error);
    assert_int_equal(checkpoint_token_find(FOLDER, "abd", &error), CADRE_NOT_FOUND);
    memory_store.refused = FOLDER;
    assert_int_equal(checkpoint_token_find(FOLDER, "abc", &error), CADRE_PERMISSION_DENIED);
    memory_store.refused = NULL;
    checkpoint_token_remove(FOLDER, "abc");
    assert_int_equal(checkpoint_token_find(FOLDER, "abc", &error), CADRE_NOT_FOUND);
}

/* ---- a program's own settings ---- */

static cadre_status apply(
    struct environment *environment, const char *directory, bool goes_on, struct cadre_error *error)
{
    const cadre_checkpoint_options options = {
        .directory = directory, .restore_or_initialize = goes_on};
    *environment = (struct environment){.by_hand = true, .output_folder = "."};
    return checkpoint_settings_apply(environment, false, &options, error);
}

/* A store that does not answer is no store without checkpoints: to begin there again would write
 * over them. */
static void a_program_goes_on_from_there(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct environment environment;
    assert_ok(apply(&environment, FOLDER "/", true, &error), &error);
    assert_string_equal(environment.checkpoint_folder, FOLDER);
    assert_string_equal(environment.restore_path, "");
    train(FOLDER);
    assert_ok(apply(&environment, FOLDER "/", true, &error), &error);
    assert_string_equal(environment.restore_path, FOLDER);
    assert_error(apply(&environment, FOLDER, false, &error), CADRE_FAILED_PRECONDITION, &error,
        "holds checkpoints already, the newest of step 3");
    memory_store.refused = FOLDER;
    assert_error(
        apply(&environment, FOLDER, true, &error), CADRE_PERMISSION_DENIED, &error, FOLDER);
    assert_error(apply(&environment, "s3://b", true, &error), CADRE_INVALID_ARGUMENT, &error,
        "the directory 's3://b' for checkpoints has a bucket");
}

/* ---- files for other programs ---- */

static void values_go_there_and_come_back(void **state)
{
    (void)state;
    size_t size;
    cadre_strategy *strategy = fresh(FOLDER);
    cadre_variable *bytes = bytes_variable(strategy, 8);
    run_steps(strategy, bytes, 2);
    assert_public_ok(cadre_export(strategy, "s3://bucket/model.safetensors", NULL, 0));
    assert_non_null(memory_store_find("s3://bucket/model.safetensors", &size));
    run_steps(strategy, bytes, 2);
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[7], 7);
    assert_public_error(cadre_export(strategy, "s3://B/model.safetensors", NULL, 0),
        CADRE_INVALID_ARGUMENT, "bucket");
    cadre_strategy_release(strategy);
    strategy = fresh(FOLDER);
    bytes = bytes_variable(strategy, 8);
    assert_public_ok(cadre_restore(strategy, "s3://bucket/model.safetensors", NULL));
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[7], 5);
    cadre_strategy_release(strategy);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, clear, clear)
    const struct CMUnitTest tests[] = {
        TEST(it_is_that_of_files),
        TEST(its_blocks_are_hashed_as_they_are_sent),
        TEST(damage_is_found),
        TEST(old_ones_are_deleted_and_nothing_else),
        TEST(what_a_dead_writer_left_is_cleared),
        TEST(a_replaced_writer_cannot_end),
        TEST(what_an_earlier_writer_left_is_cleared),
        TEST(a_replaced_writer_writes_over_nothing),
        TEST(what_another_writer_has_written_since_goes),
        TEST(one_that_gives_up_leaves_nothing),
        TEST(one_that_may_not_list_uploads_writes),
        TEST(a_store_that_cannot_be_written_is_an_error),
        TEST(a_token_proves_that_it_is_the_same),
        TEST(a_program_goes_on_from_there),
        TEST(values_go_there_and_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
