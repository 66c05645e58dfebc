/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: when they are taken, what is on disk, what is loaded and what is refused. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "common/model/limits.h"
#include "common/model/task_message.h"
#include "common/pure/assert.h"
#include "training.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_variable *number(
    cadre_strategy *strategy, const char *name, cadre_dtype dtype, int64_t count, double value)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value}};
    assert_public_ok(cadre_variable_create(strategy, name, dtype, 1, &count, &options, &variable));
    return variable;
}

static cadre_variable *summed(cadre_strategy *strategy, const char *name)
{
    cadre_variable *variable;
    cadre_variable_options options = {
        .synchronization = CADRE_SYNC_ON_READ, .aggregation = CADRE_AGGREGATION_SUM};
    assert_public_ok(
        cadre_variable_create(strategy, name, CADRE_F32, 0, NULL, &options, &variable));
    return variable;
}

/* Adds 1 to the first byte of the variable "bytes", if there is one. */
static cadre_status count_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    cadre_variable *bytes = training_find(cadre_replica_strategy(replica), "bytes");
    int8_t *value = bytes == NULL ? NULL : cadre_variable_write(replica, bytes);
    if (value != NULL) {
        value[0]++;
    }
    return CADRE_OK;
}

static void run_steps(cadre_strategy *strategy, int count)
{
    for (int i = 0; i < count; i++) {
        assert_public_ok(cadre_run(strategy, count_step, NULL, NULL, 0, NULL));
    }
}

/* Each strategy writes to a folder of its own. */
static cadre_strategy *fresh(uint32_t replicas, uint64_t every, const char **ret_folder)
{
    cadre_strategy *strategy = training_strategy(replicas);
    *ret_folder = test_temp_dir();
    strategy->state_part->checkpointer->folder = *ret_folder;
    strategy->state_part->checkpointer->every = every;
    return strategy;
}

static cadre_status load(cadre_strategy *strategy, const char *folder, const char *name,
    uint64_t *ret_position, struct cadre_error *error)
{
    char path[TEST_PATH_BYTES];
    strategy->state = STATE_RESTORES;
    cadre_status status =
        checkpoint_load(strategy, test_path(path, folder, name), ret_position, error);
    strategy->state = STATE_PRESENT;
    return status;
}

/* The names in the folder, in order, separated by blanks. */
static const char *names_in(const char *folder, char text[1024])
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, versionsort);
    assert_true(count >= 2);
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (strcmp(entries[i]->d_name, ".") != 0 && strcmp(entries[i]->d_name, "..") != 0) {
            used += (size_t)snprintf(
                text + used, 1024 - used, "%s%s", used == 0 ? "" : " ", entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    return text;
}

static void a_checkpoint_is_read_back_at_another_number_of_replicas(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder;
    char names[1024];
    char mine[5] = "mine";
    cadre_strategy *strategy = fresh(2, 0, &folder);
    number(strategy, "bytes", CADRE_I8, 3, -7);
    number(strategy, "weights", CADRE_F32, 5, 0.5);
    number(strategy, "wide", CADRE_F64, 2, 3);
    number(strategy, "none", CADRE_F32, 0, 3);
    cadre_variable *sum = summed(strategy, "sum");
    cadre_tensor *twelve;
    assert_public_ok(cadre_tensor_from_f32(12, &twelve));
    assert_public_ok(cadre_variable_assign(NULL, sum, CADRE_ASSIGN, twelve));
    cadre_tensor_release(twelve);
    assert_public_ok(cadre_state_register(strategy, "mine", mine, sizeof mine));
    run_steps(strategy, 3);
    assert_int_equal(cadre_checkpoint_latest(strategy), CADRE_POSITION_NONE);
    assert_public_ok(cadre_save(strategy, true));
    assert_int_equal(cadre_checkpoint_latest(strategy), 3);
    assert_string_equal(names_in(folder, names), "checkpoint-3.json checkpoint-3.safetensors");
    cadre_strategy_release(strategy);

    memcpy(mine, "else", sizeof mine);
    const char *other;
    strategy = fresh(4, 0, &other);
    cadre_variable *weights = number(strategy, "weights", CADRE_F32, 5, 0);
    cadre_variable *bytes = number(strategy, "bytes", CADRE_I8, 3, 0);
    sum = summed(strategy, "sum");
    assert_public_ok(cadre_state_register(strategy, "mine", mine, sizeof mine));
    uint64_t position;
    assert_ok(load(strategy, folder, "checkpoint-3.json", &position, &error), &error);
    assert_int_equal(position, 3);
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[0], -4);
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[2], -7);
    assert_true(((const float *)weights->components[3].value)[4] == 0.5f);
    assert_true(*(const float *)cadre_variable_read(NULL, sum) == 12);
    assert_true(*(const float *)sum->components[3].value == 3);
    assert_string_equal(mine, "mine");
    number(strategy, "more", CADRE_F32, 1, 0);
    ((int8_t *)bytes->components[0].value)[0] = 99;
    assert_error(load(strategy, folder, "checkpoint-3.json", &position, &error), CADRE_NOT_FOUND,
        &error, "'more'");
    assert_int_equal(((const int8_t *)cadre_variable_read(NULL, bytes))[0], 99);
    cadre_strategy_release(strategy);
    strategy = fresh(1, 0, &other);
    number(strategy, "weights", CADRE_F32, 4, 0);
    assert_error(load(strategy, folder, "checkpoint-3.json", &position, &error),
        CADRE_INVALID_ARGUMENT, &error, "f32 [5]");
    assert_error(load(strategy, folder, "checkpoint-3.safetensors", &position, &error),
        CADRE_INVALID_ARGUMENT, &error, "what is missing is the manifest");
    assert_error(load(strategy, folder, "checkpoint-4.json", &position, &error), CADRE_NOT_FOUND,
        &error, "checkpoint-4.json");
    cadre_strategy_release(strategy);
}

static void equal_states_give_equal_bytes(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char *bytes[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        const char *folder;
        char path[TEST_PATH_BYTES];
        cadre_strategy *strategy = fresh(i == 0 ? 1 : 3, i == 0 ? 2 : 0, &folder);
        number(strategy, "bytes", CADRE_I8, 3, 1);
        number(strategy, "w", CADRE_F64, 3, 2);
        run_steps(strategy, 5);
        assert_public_ok(cadre_save(strategy, true));
        test_path(path, folder, "checkpoint-5.safetensors");
        assert_ok(file_read(path, 4096, &bytes[i], &sizes[i], &error), &error);
        cadre_strategy_release(strategy);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* Each byte of both files, changed, must be noticed or not matter; none may crash. */
static void damage_is_reported(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder;
    const char *other;
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy = fresh(1, 0, &folder);
    cadre_variable *w = number(strategy, "w", CADRE_F64, 3, 2);
    run_steps(strategy, 1);
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    strategy = fresh(1, 0, &other);
    w = number(strategy, "w", CADRE_F64, 3, 0);
    static const char *const names[] = {"checkpoint-1.safetensors", "checkpoint-1.json"};
    uint64_t position;
    for (int i = 0; i < 2; i++) {
        char *bytes;
        size_t size;
        test_path(path, folder, names[i]);
        assert_ok(file_read(path, 65536, &bytes, &size, &error), &error);
        for (size_t at = 0; at < size; at++) {
            bytes[at] ^= 0x10;
            assert_ok(file_write_atomic(path, bytes, size, 0644, &error), &error);
            cadre_status status = load(strategy, folder, names[1], &position, &error);
            bytes[at] ^= 0x10;
            if (i == 0) {
                assert_int_equal(status, CADRE_DATA_LOSS);
                assert_non_null(strstr(error.text, "block 0"));
                assert_non_null(strstr(error.text, "from offset 0"));
                assert_non_null(strstr(error.text, names[0]));
            }
        }
        for (size_t cut = 0; cut < size; cut += 7) {
            assert_ok(file_write_atomic(path, bytes, cut, 0644, &error), &error);
            assert_int_equal(load(strategy, folder, names[1], &position, &error),
                i == 0 ? CADRE_DATA_LOSS : CADRE_INVALID_ARGUMENT);
        }
        assert_ok(file_write_atomic(path, bytes, size, 0644, &error), &error);
        free(bytes);
    }
    assert_ok(load(strategy, folder, names[1], &position, &error), &error);
    assert_true(((const double *)cadre_variable_read(NULL, w))[2] == 2);
    cadre_strategy_release(strategy);
}

static void flip(const char *path, off_t at)
{
    uint8_t byte;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0x10;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Also in one that holds nothing that is needed, and in the last, which is not full. */
static void damage_in_any_block_is_reported(void **state)
{
    (void)state;
    enum { COUNT = LIMIT_CHECKPOINT_BLOCK_BYTES * 3 / 2 / sizeof(double) };
    static const char *const asked[] = {"a", "b"};
    struct cadre_error error = {0};
    struct stat file;
    const char *folder;
    const char *other;
    char path[TEST_PATH_BYTES];
    char part[64];
    uint64_t position;
    cadre_strategy *strategy = fresh(1, 0, &folder);
    number(strategy, "a", CADRE_F64, COUNT, 2);
    number(strategy, "b", CADRE_F64, COUNT, 3);
    run_steps(strategy, 1);
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
    test_path(path, folder, "checkpoint-1.safetensors");
    assert_int_equal(stat(path, &file), 0);
    const off_t block = LIMIT_CHECKPOINT_BLOCK_BYTES;
    const off_t places[] = {
        0, block - 1, block, 2 * block - 1, 2 * block, 3 * block - 1, 3 * block, file.st_size - 1};
    assert_true(file.st_size > 3 * block && file.st_size < 4 * block);
    for (size_t i = 0; i < CADRE_COUNT_OF(asked); i++) {
        strategy = fresh(1, 0, &other);
        number(strategy, asked[i], CADRE_F64, COUNT, 0);
        for (size_t k = 0; k < CADRE_COUNT_OF(places); k++) {
            flip(path, places[k]);
            snprintf(part, sizeof part, "block %d, ", (int)(places[k] / block));
            assert_error(load(strategy, folder, "checkpoint-1.json", &position, &error),
                CADRE_DATA_LOSS, &error, part);
            flip(path, places[k]);
        }
        assert_ok(load(strategy, folder, "checkpoint-1.json", &position, &error), &error);
        cadre_strategy_release(strategy);
    }
}

static void old_ones_are_deleted_and_nothing_else(void **state)
{
    (void)state;
    const char *folder;
    char names[1024];
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy = fresh(1, 2, &folder);
    strategy->state_part->checkpointer->kept = 2;
    test_write(
        test_path(path, folder, "checkpoint-1.json"), "{\"run\":\"another\",\"position\":1}");
    test_write(test_path(path, folder, "checkpoint-1.safetensors"), "another run's");
    test_write(test_path(path, folder, ".checkpoint-9.safetensors.abcdef"), "a dead writer's");
    test_write(test_path(path, folder, ".checkpoint-9.safetensors.abc"), "another program's");
    number(strategy, "bytes", CADRE_I8, 1, 0);
    for (int i = 0; i < 5; i++) { /* at 2, 4, 6, 8 by themselves */
        run_steps(strategy, 2);
        assert_public_ok(cadre_save(strategy, true));
    }
    cadre_strategy_release(strategy);
    assert_string_equal(names_in(folder, names),
        ".checkpoint-9.safetensors.abc checkpoint-1.json checkpoint-1.safetensors "
        "checkpoint-8.json checkpoint-8.safetensors checkpoint-10.json checkpoint-10.safetensors");
}

static void they_are_taken_on_the_way(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder;
    char path[TEST_PATH_BYTES];
    cadre_strategy *strategy = fresh(2, 3, &folder);
    cadre_variable *bytes = number(strategy, "bytes", CADRE_I8, 1, 0);
    run_steps(strategy, 4); /* the fourth begins where three are applied */
    assert_public_ok(cadre_save(strategy, true));
    assert_int_equal(access(test_path(path, folder, "checkpoint-3.json"), F_OK), 0);
    uint64_t position;
    assert_ok(load(strategy, folder, "checkpoint-3.json", &position, &error), &error);
    assert_int_equal(position, 3);
    assert_int_equal(*(const int8_t *)cadre_variable_read(NULL, bytes), 3);
    cadre_strategy_release(strategy);
}

/* Whatever fails, the training goes on, what was published stays, and no temporary file does. */
static void a_full_disk_is_reported(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder;
    char names[1024];
    cadre_strategy *strategy = fresh(1, 0, &folder);
    cadre_variable *bytes = number(strategy, "bytes", CADRE_I8, 1, 0);
    run_steps(strategy, 1);
    assert_public_ok(cadre_save(strategy, true));
    bool met = true;
    uint64_t nth = 1;
    for (; met; nth++) {
        run_steps(strategy, 1);
        fault_arm("checkpoint.", nth);
        cadre_status status = cadre_save(strategy, true);
        met = fault_disarm();
        if (met && status != CADRE_OK) {
            assert_int_equal(status, CADRE_RESOURCE_EXHAUSTED);
            assert_non_null(strstr(cadre_error_message(), "No space left"));
        }
        assert_true(met || status == CADRE_OK);
        assert_null(strstr(names_in(folder, names), ".checkpoint-"));
        uint64_t position;
        char newest[64];
        snprintf(newest, sizeof newest, "checkpoint-%llu.json",
            (unsigned long long)cadre_checkpoint_latest(strategy));
        int8_t now = *(const int8_t *)cadre_variable_read(NULL, bytes);
        assert_ok(load(strategy, folder, newest, &position, &error), &error);
        assert_int_equal(*(const int8_t *)cadre_variable_read(NULL, bytes), (int8_t)position);
        *(int8_t *)bytes->components[0].value = now;
        strategy->state_part->checkpointer->restored_at = POSITION_NONE;
    }
    assert_true(nth > 9);
    /* There was no wait: the next call returns it. */
    run_steps(strategy, 1);
    fault_arm("checkpoint.write", 1);
    assert_public_ok(cadre_save(strategy, false));
    assert_public_error(cadre_save(strategy, false), CADRE_RESOURCE_EXHAUSTED, "is missing");
    assert_true(fault_disarm());
    assert_public_ok(cadre_save(strategy, true));
    cadre_strategy_release(strategy);
}

/* Saved once more where it was saved already, with something else: until the new tensors are on the
 * disk, the old checkpoint is whole. */
static void a_full_disk_leaves_the_one_that_is_there(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const char *folder;
    uint64_t position;
    cadre_strategy *strategy = fresh(1, 0, &folder);
    cadre_variable *bytes = number(strategy, "bytes", CADRE_I8, 1, 0);
    run_steps(strategy, 1);
    assert_public_ok(cadre_save(strategy, true));
    static const char *const points[] = {
        "checkpoint.create", "checkpoint.write", "checkpoint.fsync"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        *(int8_t *)bytes->components[0].value = (int8_t)(50 + i);
        fault_arm(points[i], 1);
        assert_public_error(cadre_save(strategy, true), CADRE_RESOURCE_EXHAUSTED, "is missing");
        assert_true(fault_disarm());
        assert_ok(load(strategy, folder, "checkpoint-1.json", &position, &error), &error);
        assert_int_equal(*(const int8_t *)cadre_variable_read(NULL, bytes), 1);
        strategy->state_part->checkpointer->restored_at = POSITION_NONE;
    }
    cadre_strategy_release(strategy);
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *variable;
    strategy->state_part->checkpointer->folder = "/nonexistent/folder";
    assert_public_error(cadre_variable_create(strategy, "w", CADRE_F32, 0, NULL, NULL, &variable),
        CADRE_NOT_FOUND, "/nonexistent/folder");
    cadre_strategy_release(strategy);
}

static void finish_writes_the_last_one(void **state)
{
    (void)state;
    char path[TEST_PATH_BYTES];
    char mine[4] = "abc";
    const char *shared;
    cadre_strategy *strategy = fresh(2, 0, &shared);
    strategy->state_part->checkpointer->shared = true;
    number(strategy, "bytes", CADRE_I8, 1, 0);
    assert_public_ok(cadre_state_register(strategy, "mine", mine, sizeof mine));
    run_steps(strategy, 2);
    assert_int_equal(cadre_finish(strategy), 0);
    assert_int_equal(access(test_path(path, shared, "checkpoint-2.json"), F_OK), 0);
    assert_int_equal(
        access(test_path(path, training_folder(), "checkpoint-2.safetensors"), F_OK), 0);
}

static cadre_status save_in_step(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)inputs;
    (void)outputs;
    (void)user;
    return cadre_save(cadre_replica_strategy(replica), false);
}

static void misuse_is_reported(void **state)
{
    (void)state;
    assert_public_error(cadre_save(NULL, true), CADRE_INVALID_ARGUMENT, "strategy");
    assert_int_equal(cadre_checkpoint_latest(NULL), CADRE_POSITION_NONE);
    const char *folder;
    char names[1024];
    cadre_strategy *strategy = fresh(1, 0, &folder);
    number(strategy, "w", CADRE_F32, 1, 0);
    assert_public_error(cadre_run(strategy, save_in_step, NULL, NULL, 0, NULL),
        CADRE_FAILED_PRECONDITION, "inside a replica function");
    assert_string_equal(names_in(folder, names), "");
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_checkpoint_is_read_back_at_another_number_of_replicas),
        cmocka_unit_test(equal_states_give_equal_bytes),
        cmocka_unit_test(damage_is_reported),
        cmocka_unit_test(damage_in_any_block_is_reported),
        cmocka_unit_test(old_ones_are_deleted_and_nothing_else),
        cmocka_unit_test(they_are_taken_on_the_way),
        cmocka_unit_test(a_full_disk_is_reported),
        cmocka_unit_test(a_full_disk_leaves_the_one_that_is_there),
        cmocka_unit_test(a_folder_that_cannot_be_written_is_an_error),
        cmocka_unit_test(finish_writes_the_last_one),
        cmocka_unit_test(misuse_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
