/* SPDX-License-Identifier: Apache-2.0
 * What others find: notes are read back as they were, and no damaged one does harm. */
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "fake_strategy.h"
#include "tests/lib/test.h"
#include "tests/unit/runtime/training.h"
#include "worker/library/runtime/served/served_note.h"

static cadre_variable *create(cadre_strategy *strategy, const char *name)
{
    static const int64_t dims[] = {9, 2, 5};
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_F64, 3, dims, NULL, &variable));
    return variable;
}

static void a_note_is_read_back(void **state)
{
    (void)state;
    const cadre_partitioner four = {.kind = CADRE_PARTITIONER_FIXED, .shards = 4};
    cadre_strategy *strategy = fake_begin(3, &four);
    struct cadre_error error = {0};
    cadre_variable *variable = create(strategy, "w");
    cadre_variable *read;
    void *bytes;
    size_t size;
    assert_ok(served_note_encode(variable, &bytes, &size, &error), &error);
    assert_ok(served_note_decode(variable->served->all, "w", bytes, size, &read, &error), &error);
    assert_int_equal(read->rank, 3);
    assert_memory_equal(read->dims, variable->dims, sizeof read->dims);
    assert_int_equal(read->served->row_bytes, 80);
    assert_int_equal(read->served->layout.shards, 4);
    assert_memory_equal(
        read->served->shards, variable->served->shards, 4 * sizeof read->served->shards[0]);
    variable_free(read);
    free(bytes);
    fake_end(strategy);
}

static void damaged_notes_are_reported(void **state)
{
    (void)state;
    const cadre_partitioner four = {.kind = CADRE_PARTITIONER_FIXED, .shards = 4};
    cadre_strategy *strategy = fake_begin(3, &four);
    struct cadre_error error = {0};
    cadre_variable *variable = create(strategy, "w");
    uint8_t *bytes;
    size_t size;
    assert_ok(served_note_encode(variable, (void **)&bytes, &size, &error), &error);
    for (size_t cut = 0; cut < size; cut++) {
        cadre_variable *read;
        assert_error(served_note_decode(variable->served->all, "w", bytes, cut, &read, &error),
            CADRE_DATA_LOSS, &error, "'w'");
        assert_null(read);
    }
    for (size_t at = 0; at < size; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            cadre_variable *read;
            bytes[at] ^= (uint8_t)(1u << bit);
            cadre_status status =
                served_note_decode(variable->served->all, "w", bytes, size, &read, &error);
            bytes[at] ^= (uint8_t)(1u << bit);
            assert_true((status == CADRE_OK) == (read != NULL));
            assert_true(at >= 8 || status == CADRE_DATA_LOSS);
            variable_free(read);
        }
    }
    fake_note("broken", bytes, size - 1);
    assert_public_error(
        cadre_variable_find(NULL, "broken", &variable), CADRE_DATA_LOSS, "'broken'");
    free(bytes);
    fake_end(strategy);
}

static void names_that_there_are_are_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable;
    fake_note("cadre/group", "secret", 6);
    assert_public_error(cadre_variable_find(NULL, "w", &variable), CADRE_NOT_FOUND, "none yet");
    create(strategy, "embedding");
    create(strategy, "bias");
    assert_public_error(
        cadre_variable_find(NULL, "w", &variable), CADRE_NOT_FOUND, "are 'embedding', 'bias'");
    assert_public_error(
        cadre_variable_find(NULL, "cadre/group", &variable), CADRE_NOT_FOUND, "'cadre/group'");
    char name[121];
    for (int i = 0; i < 6; i++) {
        memset(name, 'a' + i, 120);
        name[120] = '\0';
        create(strategy, name);
    }
    assert_public_error(cadre_variable_find(NULL, "w", &variable), CADRE_NOT_FOUND, "bbb', ...");
    assert_public_error(cadre_variable_find(NULL, "", &variable), CADRE_INVALID_ARGUMENT, "empty");
    fake_end(strategy);
    assert_public_error(cadre_variable_find(NULL, "w", &variable), CADRE_FAILED_PRECONDITION,
        "no parameter servers");
}

static void a_lost_server_is_reported(void **state)
{
    (void)state;
    cadre_strategy *strategy = fake_begin(2, NULL);
    cadre_variable *variable;
    create(strategy, "w");
    fake_become(ROLE_WORKER);
    fault_arm("client.call", 1);
    assert_public_error(
        cadre_variable_find(NULL, "w", &variable), CADRE_UNAVAILABLE, "ps 1 is lost");
    assert_null(variable);
    fault_arm("client.call", 2);
    assert_public_error(
        cadre_variable_find(NULL, "other", &variable), CADRE_UNAVAILABLE, "ps 1 is lost");
    assert_true(fault_disarm());
    assert_public_ok(cadre_variable_find(NULL, "w", &variable));
    fake_end(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_is_read_back),
        cmocka_unit_test(damaged_notes_are_reported),
        cmocka_unit_test(names_that_there_are_are_reported),
        cmocka_unit_test(a_lost_server_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
