/* SPDX-License-Identifier: Apache-2.0
 * The final checkpoint, its format, and reading it back. digits_test.py opens one with a reader of
 * its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/model/task_message.h"
#include "training.h"
#include "worker/runtime/checkpoint.h"
#include "worker/runtime/safetensors.h"

static cadre_variable *number(
    cadre_strategy *strategy, const char *name, cadre_dtype dtype, int64_t count, double value)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value}};
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 1, &count, &options, &variable));
    return variable;
}

static cadre_status nothing(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)inputs;
    (void)outputs;
    (void)user;
    return CADRE_OK;
}

static void finish_writes_what_can_be_read_back(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(2);
    number(strategy, "bytes", CADRE_I8, 3, -7);
    number(strategy, "weights", CADRE_F32, 5, 0.5);
    number(strategy, "wide", CADRE_F64, 2, 3);
    number(strategy, "none", CADRE_F32, 0, 3);
    for (int i = 0; i < 3; i++) {
        assert_public_ok(cadre_run(strategy, nothing, NULL, 0, NULL, NULL));
    }
    assert_int_equal(cadre_finish(strategy), 0);
    test_path(path, training_folder(), "checkpoint-3.safetensors");

    strategy = training_strategy(4);
    cadre_variable *bytes = number(strategy, "bytes", CADRE_I8, 3, 0);
    cadre_variable *weights = number(strategy, "weights", CADRE_F32, 5, 0);
    uint64_t position;
    assert_ok(checkpoint_read(strategy, path, &position, &error), &error);
    assert_int_equal(position, 3);
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[2], -7);
    assert_true(((const float *)cadre_variable_read(NULL, weights))[4] == 0.5f);
    number(strategy, "more", CADRE_F32, 1, 0);
    assert_error(
        checkpoint_read(strategy, path, &position, &error), CADRE_NOT_FOUND, &error, "'more'");
    cadre_strategy_release(strategy);
    strategy = training_strategy(1);
    number(strategy, "weights", CADRE_F32, 4, 0);
    assert_error(checkpoint_read(strategy, path, &position, &error), CADRE_INVALID_ARGUMENT, &error,
        "f32 [5]");
    cadre_strategy_release(strategy);
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    cadre_strategy *strategy = training_strategy(1);
    number(strategy, "w", CADRE_F32, 1, 0);
    assert_error(checkpoint_write(strategy, "/nonexistent/folder", &error), CADRE_NOT_FOUND, &error,
        "/nonexistent/folder/checkpoint-0.safetensors");
    cadre_strategy_release(strategy);
}

static void data_are_aligned_and_equal_entries_give_equal_bytes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const uint8_t data[64] = {1, 2, 3};
    struct safetensors_entry entries[] = {
        {.name = "a", .dtype = CADRE_U8, .rank = 1, .dims = {3}, .data = data, .bytes = 3},
        {.name = "b", .dtype = CADRE_F64, .rank = 0, .data = data, .bytes = 8},
        {.name = "c", .dtype = CADRE_F32, .rank = 2, .dims = {1, 3}, .data = data, .bytes = 12},
        {.name = "d", .dtype = CADRE_BF16, .rank = 1, .dims = {1}, .data = data, .bytes = 2},
    };
    void *first;
    void *second;
    size_t size;
    size_t again;
    assert_ok(safetensors_encode(entries, 4, 9, &first, &size, &error), &error);
    assert_ok(safetensors_encode(entries, 4, 9, &second, &again, &error), &error);
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    struct safetensors_entry *decoded;
    size_t count;
    uint64_t position;
    assert_ok(safetensors_decode(first, size, &decoded, &count, &position, &error), &error);
    assert_int_equal(count, 4);
    assert_int_equal(position, 9);
    for (size_t i = 0; i < count; i++) {
        size_t offset = (size_t)((const uint8_t *)decoded[i].data - (const uint8_t *)first);
        assert_int_equal(offset % cadre_dtype_bytes(decoded[i].dtype), 0);
        assert_memory_equal(decoded[i].data, data, decoded[i].bytes);
    }
    free(decoded);
    free(first);
    free(second);
}

static void check_damaged(const char *header, size_t data_bytes, const char *part)
{
    struct cadre_error error = {0};
    uint8_t file[512] = {0};
    size_t length = strlen(header);
    file[0] = (uint8_t)length;
    memcpy(file + 8, header, length);
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    assert_error(
        safetensors_decode(file, 8 + length + data_bytes, &entries, &count, &position, &error),
        CADRE_DATA_LOSS, &error, part);
    assert_null(entries);
}

static void damaged_files_are_told(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    for (size_t size = 0; size < 9; size++) {
        assert_error(
            safetensors_decode("\xff\0\0\0\0\0\0\0{", size, &entries, &count, &position, &error),
            CADRE_DATA_LOSS, &error, "cut short");
    }
    check_damaged("[]", 0, "not a JSON object");
    check_damaged("{\"a\":", 0, "not a JSON object");
    check_damaged("{\"a\":{}}", 0, "not whole");
    check_damaged("{\"a\":{\"dtype\":\"F99\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, "F99");
    check_damaged("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 4, "not its");
    check_damaged("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 8, "not its");
    check_damaged(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 8, "not its");
    check_damaged(
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 8, "not its");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finish_writes_what_can_be_read_back),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_an_error),
        cmocka_unit_test(data_are_aligned_and_equal_entries_give_equal_bytes),
        cmocka_unit_test(damaged_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
