/* SPDX-License-Identifier: Apache-2.0
 * Parameters in checkpoints: one logical tensor each, beside variables, whatever the shards were
 * and are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/files.h"
#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/state/checkpoint/checkpoint.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/state/layout/state_part.h"
#include "worker/library/runtime/strategy/strategy.h"

static const cadre_optimizer_options adam = {.kind = CADRE_OPTIMIZER_ADAM, .rate = 0.5};
static const cadre_optimizer_options momentum = {.kind = CADRE_OPTIMIZER_MOMENTUM, .rate = 1};

static cadre_strategy *begin(uint32_t servers, uint64_t shards, const char *folder)
{
    const cadre_partitioner fixed = {.kind = CADRE_PARTITIONER_FIXED, .shards = shards};
    cadre_strategy *strategy = fake_begin(servers, &fixed);
    strategy->state_part->checkpointer->folder = folder;
    return strategy;
}

/* From here on the strategy goes on from that checkpoint. */
static void go_on(
    cadre_strategy *strategy, struct environment *environment, const char *folder, const char *name)
{
    char path[TEST_PATH_BYTES];
    *environment = *strategy->environment;
    snprintf(environment->restore_path, sizeof environment->restore_path, "%s",
        test_path(path, folder, name));
    strategy->environment = environment;
    strategy->roster.resume = 1;
    strategy->state = STATE_RESTORES;
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

static cadre_variable *create(cadre_strategy *strategy, const char *name, cadre_dtype dtype,
    uint32_t rank, const int64_t *dims, const cadre_variable_options *options)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, dtype, rank, dims, options, &variable));
    return variable;
}

static cadre_variable *own(cadre_strategy *strategy, const char *name, double value)
{
    const cadre_variable_options options = {.placement = CADRE_PLACEMENT_REPLICAS,
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = value}};
    const int64_t three = 3;
    cadre_variable *made;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_F32, 1, &three, &options, &made));
    return made;
}

/* "w" of 10 rows of 2, by Adam. */
static cadre_variable *create_w(cadre_strategy *strategy)
{
    static const int64_t dims[] = {10, 2};
    cadre_variable *variable = create(strategy, "w", CADRE_F64, 2, dims, NULL);
    assert_public_ok(memory_train(strategy, variable, &adam));
    return variable;
}

/* "w" of 10 rows of 2, each number and each of its optimizer's another one. */
static cadre_variable *trained(cadre_strategy *strategy)
{
    cadre_variable *variable = create_w(strategy);
    for (uint32_t i = 0; i < cadre_variable_components(variable); i++) {
        int64_t first;
        int64_t rows;
        uint32_t server;
        assert_public_ok(cadre_variable_component_rows(variable, i, &first, &rows));
        server = memory_server(variable, i);
        uint32_t number = i / 3; /* of three servers */
        for (int64_t at = 0; at < 2 * rows; at++) {
            ((double *)fake_rows(server, number))[at] = (double)(2 * first + at);
            fake_slot(server, number, 0)[at] = 100 + (double)(2 * first + at);
            fake_slot(server, number, 1)[at] = 200 + (double)(2 * first + at);
        }
        *fake_updates(server, number) = 10 + i;
        *fake_steps(server, number) = 20 + i;
    }
    return variable;
}

static void check_trained(cadre_variable *variable, const uint64_t *updates)
{
    double values[20];
    assert_public_ok(memory_pull(variable, values));
    for (int64_t at = 0; at < 20; at++) {
        assert_true(values[at] == (double)at);
    }
    for (uint32_t i = 0; i < cadre_variable_components(variable); i++) {
        int64_t first;
        int64_t rows;
        uint32_t server;
        assert_public_ok(cadre_variable_component_rows(variable, i, &first, &rows));
        server = memory_server(variable, i);
        for (int64_t at = 0; at < 2 * rows; at++) {
            assert_true(fake_slot(server, 0, 0)[at] == 100 + (double)(2 * first + at));
            assert_true(fake_slot(server, 0, 1)[at] == 200 + (double)(2 * first + at));
        }
        assert_int_equal(*fake_updates(server, 0), updates[i]);
        assert_int_equal(*fake_steps(server, 0), updates[i] + 10);
    }
}

static void save_trained(const char *folder)
{
    cadre_strategy *strategy = begin(3, 4, folder);
    own(strategy, "v", 7);
    trained(strategy);
    create(strategy, "flag", CADRE_BOOL, 0, NULL, NULL);
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
    fake_end(strategy);
}

static void any_number_of_shards_restores_it(void **state)
{
    (void)state;
    /* 10 rows in 4 shards: 3, 3, 2, 2, of 10 to 13 updates. */
    static const struct {
        uint64_t shards;
        uint64_t updates[4];
    } rows[] = {{1, {13}}, {2, {11, 13}}, {3, {11, 12, 13}}, {4, {10, 11, 12, 13}}};
    const char *folder = test_temp_dir();
    save_trained(folder);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct environment environment;
        struct cadre_error error = {0};
        uint64_t position;
        cadre_strategy *strategy = begin(4, rows[i].shards, test_temp_dir());
        go_on(strategy, &environment, folder, "checkpoint-1.json");
        cadre_variable *variable = create_w(strategy);
        assert_int_equal(cadre_variable_components(variable), rows[i].shards);
        check_trained(variable, rows[i].updates);
        cadre_variable *v = own(strategy, "v", 0);
        assert_ok(checkpoint_load(strategy, environment.restore_path, &position, &error), &error);
        strategy->state = STATE_PRESENT;
        assert_true(((const float *)cadre_variable_read(NULL, v))[2] == 7);
        fake_end(strategy);
    }
}

/* What other programs find. */
static void it_is_one_file_of_whole_tensors(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    char *bytes;
    size_t size;
    struct safetensors_entry *entries;
    size_t count;
    uint64_t position;
    save_trained(folder);
    assert_ok(file_read(test_path(path, folder, "checkpoint-1.safetensors"), 1 << 20, &bytes, &size,
                  &error),
        &error);
    assert_ok(safetensors_decode(bytes, size, &entries, &count, &position, &error), &error);
    static const char *const names[] = {
        "w", "w/m", "w/v", "w/updates", "w/steps", "v", "flag/steps", "flag"};
    assert_int_equal(count, 8);
    assert_int_equal(position, 1);
    for (size_t i = 0; i < 8; i++) {
        const struct safetensors_entry *entry = NULL;
        for (size_t at = 0; at < count; at++) {
            entry = strcmp(entries[at].name, names[i]) == 0 ? &entries[at] : entry;
        }
        assert_non_null(entry);
        assert_int_equal(entry->rank, i < 3 ? 2 : i == 7 ? 0 : 1);
        if (i < 3) {
            assert_true(((const double *)entry->data)[19] == 19 + 100 * (double)i);
        } else if (i == 3 || i == 4) {
            assert_int_equal(((const int64_t *)entry->data)[3], i == 3 ? 13 : 23);
        }
    }
    free(entries);
    free(bytes);
}

/* --- from one placement to another --- */

/* A mirrored strategy of two replicas, whose checkpoints go there. */
static cadre_strategy *mirrored(const char *folder)
{
    cadre_strategy *strategy = training_strategy(2);
    strategy->state_part->checkpointer->folder = folder;
    return strategy;
}

/* Element i of "w" and of what an optimizer remembers of it is i, 100 + i, 200 + i. */
static void create_counted(cadre_strategy *strategy, const char *name, double first)
{
    static const int64_t dims[] = {10, 2};
    double values[20];
    cadre_tensor *value;
    cadre_variable *variable = create(strategy, name, CADRE_F64, 2, dims, NULL);
    for (int i = 0; i < 20; i++) {
        values[i] = first + i;
    }
    assert_public_ok(cadre_tensor_from_data(CADRE_F64, 2, dims, values, &value));
    assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN, value));
    cadre_tensor_release(value);
}

static void assert_counted(cadre_variable *variable)
{
    cadre_tensor *value;
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &value));
    for (int i = 0; i < 20; i++) {
        assert_true(((const double *)cadre_tensor_const_data(value))[i] == i);
    }
    cadre_tensor_release(value);
}

static void step_and_save(cadre_strategy *strategy)
{
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
}

static void save_mirrored(const char *folder)
{
    const int64_t one = 1;
    const cadre_variable_options seven = {
        .initializer = {.kind = CADRE_INITIALIZER_CONSTANT, .value = 7}};
    cadre_strategy *strategy = mirrored(folder);
    create_counted(strategy, "w", 0);
    create_counted(strategy, "w/m", 100);
    create_counted(strategy, "w/v", 200);
    create(strategy, "w/updates", CADRE_I64, 1, &one, &seven);
    step_and_save(strategy);
    cadre_strategy_release(strategy);
}

/* A job goes on where another one stood whose variables lay elsewhere: of the same names. */
static void a_job_goes_on_in_another_placement(void **state)
{
    (void)state;
    static const int64_t dims[] = {10, 2};
    const char *there = test_temp_dir();
    const char *back = test_temp_dir();
    struct environment environment;
    struct cadre_error error = {0};
    uint64_t position;
    save_mirrored(there);
    /* Mirrored to servers, with what an optimizer remembers. */
    cadre_strategy *strategy = begin(3, 4, back);
    go_on(strategy, &environment, there, "checkpoint-1.json");
    cadre_variable *variable = create_w(strategy);
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_SERVED);
    assert_ok(checkpoint_load(strategy, environment.restore_path, &position, &error), &error);
    strategy->state = STATE_PRESENT;
    assert_counted(variable);
    for (uint32_t i = 0; i < cadre_variable_components(variable); i++) {
        int64_t first;
        int64_t rows;
        assert_public_ok(cadre_variable_component_rows(variable, i, &first, &rows));
        uint32_t server = memory_server(variable, i);
        assert_true(fake_slot(server, i / 3, 0)[0] == (double)(100 + 2 * first));
        assert_true(fake_slot(server, i / 3, 1)[1] == (double)(201 + 2 * first));
        assert_int_equal(*fake_updates(server, i / 3), 7);
    }
    step_and_save(strategy);
    fake_end(strategy);
    /* And back; what the program does not create itself is there for an optimizer's first apply. */
    strategy = mirrored(test_temp_dir());
    go_on(strategy, &environment, back, "checkpoint-1.json");
    variable = create(strategy, "w", CADRE_F64, 2, dims, NULL);
    assert_int_equal(cadre_variable_kind(variable), CADRE_VARIABLE_MIRRORED);
    cadre_variable *slot = create(strategy, "w/v", CADRE_F64, 2, dims, NULL);
    cadre_variable *found;
    assert_ok(checkpoint_load(strategy, environment.restore_path, &position, &error), &error);
    strategy->state = STATE_PRESENT;
    assert_counted(variable);
    assert_true(((const double *)cadre_variable_read(NULL, slot))[19] == 219);
    assert_public_ok(cadre_variable_find(strategy, "w/m", &found));
    assert_true(((const double *)cadre_variable_read(NULL, found))[0] == 100);
    assert_public_ok(cadre_variable_find(strategy, "w/updates", &found));
    assert_int_equal(cadre_variable_count(found), 1);
    assert_int_equal(*(const int64_t *)cadre_variable_read(NULL, found), 7);
    assert_public_error(
        cadre_variable_find(strategy, "w/steps", &found), CADRE_NOT_FOUND, "w/steps");
    cadre_strategy_release(strategy);
}

/* The values alone, into variables that are there or come later. */
static void values_move_between_placements(void **state)
{
    (void)state;
    static const int64_t dims[] = {10, 2};
    char path[TEST_PATH_BYTES];
    const char *there = test_temp_dir();
    const char *back = test_temp_dir();
    save_mirrored(there);
    test_path(path, there, "checkpoint-1.json");
    cadre_strategy *strategy = begin(3, 4, back);
    cadre_variable *variable = create_w(strategy);
    assert_public_ok(cadre_restore(strategy, path, NULL));
    assert_counted(variable);
    assert_int_equal(*fake_updates(memory_server(variable, 0), 0), 7);
    step_and_save(strategy);
    fake_end(strategy);
    test_path(path, back, "checkpoint-1.json");
    for (int later = 0; later < 2; later++) {
        strategy = mirrored(test_temp_dir());
        variable = later ? NULL : create(strategy, "w", CADRE_F64, 2, dims, NULL);
        assert_public_ok(cadre_restore(strategy, path, NULL));
        variable = later ? create(strategy, "w", CADRE_F64, 2, dims, NULL) : variable;
        assert_counted(variable);
        cadre_strategy_release(strategy);
    }
}

/* Several pieces, several blocks; never more than one piece is asked for. */
static void large_ones_are_streamed(void **state)
{
    (void)state;
    static const int64_t dims[] = {1301, 1777};
    const cadre_variable_options random = {
        .initializer = {.kind = CADRE_INITIALIZER_NORMAL, .stddev = 1, .seed = 3}};
    const char *folder = test_temp_dir();
    struct environment environment;
    cadre_tensor *value;
    cadre_tensor *restored;
    cadre_strategy *strategy = begin(3, 3, folder);
    own(strategy, "v", 1);
    cadre_variable *variable = create(strategy, "w", CADRE_F32, 2, dims, &random);
    assert_public_ok(memory_train(strategy, variable, &momentum));
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
    assert_true(fake_counts().largest <= (size_t)4 << 20);
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &value));
    fake_end(strategy);
    strategy = begin(2, 2, test_temp_dir());
    go_on(strategy, &environment, folder, "checkpoint-1.json");
    variable = create(strategy, "w", CADRE_F32, 2, dims, &random);
    assert_public_ok(memory_train(strategy, variable, &momentum));
    assert_true(fake_counts().largest <= (size_t)4 << 20);
    assert_public_ok(cadre_variable_value(NULL, variable, NULL, &restored));
    assert_memory_equal(cadre_tensor_const_data(restored), cadre_tensor_const_data(value),
        cadre_tensor_bytes(value));
    cadre_tensor_release(restored);
    cadre_tensor_release(value);
    strategy->state = STATE_PRESENT;
    fake_end(strategy);
}

static void what_it_does_not_hold_is_refused(void **state)
{
    (void)state;
    static const int64_t dims[] = {10, 2};
    static const int64_t other[] = {2, 10};
    const char *folder = test_temp_dir();
    struct environment environment;
    cadre_variable *variable;
    save_trained(folder);
    cadre_strategy *strategy = begin(1, 1, test_temp_dir());
    go_on(strategy, &environment, folder, "checkpoint-1.json");
    assert_public_error(
        cadre_variable_create(strategy, "more", CADRE_F64, 2, dims, NULL, &variable),
        CADRE_NOT_FOUND, "it holds no 'more'");
    assert_public_error(cadre_variable_create(strategy, "w", CADRE_F64, 2, other, NULL, &variable),
        CADRE_INVALID_ARGUMENT, "as f64 [10, 2], and the program creates it as f64 [2, 10]");
    fake_end(strategy);
    strategy = begin(1, 1, test_temp_dir());
    go_on(strategy, &environment, folder, "checkpoint-1.json");
    variable = create(strategy, "w", CADRE_F64, 2, dims, NULL);
    assert_public_error(
        memory_train(strategy, variable, &momentum), CADRE_NOT_FOUND, "it holds no 'w/momentum'");
    strategy->state =
        STATE_PRESENT; /* after the first step: a new one begins with initial values */
    variable = create(strategy, "late", CADRE_F64, 2, dims, NULL);
    fake_end(strategy);
    strategy = begin(1, 1, test_temp_dir());
    go_on(strategy, &environment, folder, "checkpoint-2.json");
    assert_public_error(cadre_variable_create(strategy, "w", CADRE_F64, 2, dims, NULL, &variable),
        CADRE_NOT_FOUND, "checkpoint-2.json");
    fake_end(strategy);
}

/* Each byte of the file, changed, is noticed before it is pushed anywhere. */
static void damage_is_reported(void **state)
{
    (void)state;
    static const int64_t dims[] = {10, 2};
    struct cadre_error error = {0};
    struct environment environment;
    char path[TEST_PATH_BYTES];
    const char *folder = test_temp_dir();
    char *bytes;
    size_t size;
    save_trained(folder);
    test_path(path, folder, "checkpoint-1.safetensors");
    assert_ok(file_read(path, 1 << 20, &bytes, &size, &error), &error);
    const char *here = test_temp_dir();
    for (size_t at = 0; at < size; at += 13) {
        cadre_variable *variable;
        bytes[at] ^= 0x10;
        assert_ok(file_write_atomic(path, bytes, size, 0644, &error), &error);
        cadre_strategy *strategy = begin(1, 1, here);
        go_on(strategy, &environment, folder, "checkpoint-1.json");
        assert_public_error(
            cadre_variable_create(strategy, "w", CADRE_F64, 2, dims, NULL, &variable),
            CADRE_DATA_LOSS, "is damaged");
        fake_end(strategy);
        bytes[at] ^= 0x10;
    }
    free(bytes);
}

/* Whichever call fails, the checkpoint that was there stays whole, and the next one is. */
static void a_lost_server_costs_one_checkpoint(void **state)
{
    (void)state;
    const char *folder = test_temp_dir();
    cadre_strategy *strategy = begin(3, 4, folder);
    cadre_variable *variable = trained(strategy);
    cadre_tensor *one;
    const double ones[20] = {1};
    static const int64_t dims[] = {10, 2};
    assert_public_ok(cadre_tensor_from_data(CADRE_F64, 2, dims, ones, &one));
    assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
    assert_public_ok(cadre_save(strategy, true));
    bool met = true;
    uint64_t nth = 1;
    for (; met; nth++) {
        assert_public_ok(cadre_run(strategy, nothing, NULL, NULL, 0, NULL));
        fault_arm("client.", nth);
        cadre_status status = cadre_save(strategy, true);
        met = fault_disarm();
        /* The first call only asks for versions, and can be done without. */
        assert_int_equal(status, met && nth > 1 ? CADRE_UNAVAILABLE : CADRE_OK);
        assert_true(status == CADRE_OK || strstr(cadre_error_message(), "'w': ps 1") != NULL);
    }
    assert_true(nth > 4);
    /* Where nothing has changed nothing is written again; a push is a change. */
    uint64_t calls = fake_counts().calls;
    assert_public_ok(cadre_save(strategy, true));
    assert_int_equal(fake_counts().calls, calls + 1);
    assert_public_ok(cadre_variable_assign(NULL, variable, CADRE_ASSIGN_ADD, one));
    assert_public_ok(cadre_save(strategy, true));
    assert_true(fake_counts().calls > calls + 4);
    cadre_tensor_release(one);
    fake_end(strategy);
}

/* Created again, it is all there: value, memory and counts. */
static void a_restore_that_fails_can_be_made_again(void **state)
{
    (void)state;
    static const int64_t dims[] = {10, 2};
    static const uint64_t updates[] = {11, 12, 13};
    const char *folder = test_temp_dir();
    const char *here = test_temp_dir();
    bool met = true;
    uint64_t nth = 1;
    save_trained(folder);
    for (; met; nth++) {
        struct environment environment;
        cadre_variable *variable;
        cadre_strategy *strategy = begin(4, 3, here);
        go_on(strategy, &environment, folder, "checkpoint-1.json");
        fault_arm("client.", nth);
        cadre_status status =
            cadre_variable_create(strategy, "w", CADRE_F64, 2, dims, NULL, &variable);
        bool created = status == CADRE_OK;
        status = created ? memory_train(strategy, variable, &adam) : status;
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_UNAVAILABLE : CADRE_OK);
        if (!created) {
            variable = create_w(strategy);
        } else if (met) {
            assert_public_ok(memory_train(strategy, variable, &adam));
        }
        check_trained(variable, updates);
        fake_end(strategy);
    }
    assert_true(nth > 7); /* create, value, two slots, counts, steps, note */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_shards_restores_it),
        cmocka_unit_test(it_is_one_file_of_whole_tensors),
        cmocka_unit_test(a_job_goes_on_in_another_placement),
        cmocka_unit_test(values_move_between_placements),
        cmocka_unit_test(large_ones_are_streamed),
        cmocka_unit_test(what_it_does_not_hold_is_refused),
        cmocka_unit_test(damage_is_reported),
        cmocka_unit_test(a_lost_server_costs_one_checkpoint),
        cmocka_unit_test(a_restore_that_fails_can_be_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
