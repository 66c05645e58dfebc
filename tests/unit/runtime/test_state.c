/* SPDX-License-Identifier: Apache-2.0
 * The state as one space of bytes, what is registered beside variables, and the text beside the
 * tensors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "training.h"
#include "worker/library/runtime/state/checkpoint/checkpointer.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/layout/state.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/variables/variable.h"

static cadre_variable *bytes_variable(cadre_strategy *strategy, const char *name, int64_t count)
{
    cadre_variable *variable;
    assert_public_ok(cadre_variable_create(strategy, name, CADRE_U8, 1, &count, NULL, &variable));
    return variable;
}

static void the_space_can_be_cut_anywhere(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    uint8_t registered[4] = {1, 2, 3, 4};
    cadre_strategy *strategy = training_strategy(2);
    bytes_variable(strategy, "a", 5);
    cadre_variable *empty = bytes_variable(strategy, "empty", 0);
    cadre_variable *words;
    assert_public_ok(cadre_variable_create(strategy, "w", CADRE_STRING, 0, NULL, NULL, &words));
    cadre_variable *b = bytes_variable(strategy, "b", 3);
    assert_public_ok(cadre_state_register(strategy, "mine", registered, sizeof registered));
    assert_int_equal(state_bytes(strategy), 12);
    struct state_tensor tensor;
    assert_true(state_tensor_at(strategy, 4, &tensor));
    assert_string_equal(tensor.name, "state/mine");
    assert_int_equal(tensor.dtype, CADRE_U8);
    assert_int_equal(tensor.dims[0], 4);
    assert_false(state_tensor_at(strategy, 5, &tensor));
    assert_non_null(empty);
    uint8_t wanted[12];
    uint8_t is[12];
    for (uint8_t i = 0; i < 12; i++) {
        wanted[i] = (uint8_t)(i + 100);
    }
    for (size_t piece = 1; piece <= 12; piece++) {
        uint8_t before[12];
        assert_ok(state_read(strategy, 0, before, 12, &error), &error);
        assert_ok(state_receive(strategy, true, true, &error), &error);
        for (size_t at = 0; at < 12; at += piece) {
            assert_ok(
                state_write(strategy, at, wanted + at, at + piece <= 12 ? piece : 12 - at, &error),
                &error);
        }
        for (size_t at = 0; at < 12; at += piece) {
            assert_ok(state_read(strategy, at, is + at, at + piece <= 12 ? piece : 12 - at, &error),
                &error);
        }
        assert_memory_equal(is, wanted, 12);
        assert_memory_equal(b->components[1].value, wanted + 5, 3);
        if (piece < 12) {
            state_undo(strategy);
            assert_ok(state_read(strategy, 0, is, 12, &error), &error);
            assert_memory_equal(is, before, 12);
        } else {
            state_commit(strategy);
        }
    }
    assert_memory_equal(registered, wanted + 8, 4);
    /* A task that was in the generation before has its own registered state. */
    memset(is, 0, sizeof is);
    assert_ok(state_receive(strategy, true, false, &error), &error);
    assert_ok(state_write(strategy, 0, is, 12, &error), &error);
    state_commit(strategy);
    assert_memory_equal(registered, wanted + 8, 4);
    assert_memory_equal(b->components[0].value, is, 3);
    cadre_strategy_release(strategy);
}

static void registering_is_checked(void **state)
{
    (void)state;
    int mine = 7;
    cadre_strategy *strategy = training_strategy(1);
    bytes_variable(strategy, "state/taken", 1);
    assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
    assert_public_error(
        cadre_state_register(strategy, "mine", &mine, sizeof mine), CADRE_ALREADY_EXISTS, "'mine'");
    assert_public_error(cadre_state_register(strategy, "taken", &mine, sizeof mine),
        CADRE_ALREADY_EXISTS, "state/taken");
    assert_public_error(
        cadre_state_register(strategy, "", &mine, sizeof mine), CADRE_INVALID_ARGUMENT, "empty");
    assert_public_error(
        cadre_state_register(strategy, "none", &mine, 0), CADRE_INVALID_ARGUMENT, "0 bytes");
    assert_public_error(
        cadre_state_register(strategy, "null", NULL, 4), CADRE_INVALID_ARGUMENT, "pointer");
    assert_public_error(
        cadre_state_register(NULL, "x", &mine, 4), CADRE_INVALID_ARGUMENT, "strategy");
    cadre_variable *other;
    assert_public_error(
        cadre_variable_create(strategy, "state/mine", CADRE_F32, 0, NULL, NULL, &other),
        CADRE_ALREADY_EXISTS, "registered state");
    assert_public_ok(cadre_run(strategy, training_nothing, NULL, NULL, 0, NULL));
    assert_public_error(cadre_state_register(strategy, "late", &mine, sizeof mine),
        CADRE_FAILED_PRECONDITION, "after the first step");
    cadre_strategy_release(strategy);
}

static void layouts_tell_programs_apart(void **state)
{
    (void)state;
    uint64_t seen[6];
    int mine = 0;
    for (int i = 0; i < 6; i++) {
        cadre_strategy *strategy = training_strategy(i == 5 ? 3 : 1);
        cadre_variable_options options = {
            .aggregation = i == 1 ? CADRE_AGGREGATION_SUM : CADRE_AGGREGATION_NONE};
        cadre_variable *variable;
        assert_public_ok(cadre_variable_create(strategy, i == 2 ? "v" : "w",
            i == 3 ? CADRE_F64 : CADRE_F32, 0, NULL, &options, &variable));
        if (i == 4) {
            assert_public_ok(cadre_state_register(strategy, "mine", &mine, sizeof mine));
        }
        seen[i] = state_layout(strategy);
        for (int before = 0; before < i; before++) {
            /* The number of replicas is no part of it. */
            assert_true((seen[before] == seen[i]) == (before == 0 && i == 5));
        }
        cadre_strategy_release(strategy);
    }
}

/* --- the text --- */

static void assign_value_text(cadre_variable *words, const cadre_string *strings)
{
    cadre_tensor *tensor;
    assert_public_ok(
        cadre_tensor_from_data(CADRE_STRING, 1, cadre_variable_dims(words), strings, &tensor));
    assert_public_ok(cadre_variable_assign(NULL, words, CADRE_ASSIGN, tensor));
    cadre_tensor_release(tensor);
}

static void a_text_brings_strings_back(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t four = 4;
    const cadre_string odd[] = {{"plain", 5}, {"", 0}, {"a\0b", 3}, {"\xff\xfe", 2}};
    const cadre_string none[] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}};
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *words;
    assert_public_ok(cadre_variable_create(strategy, "odd", CADRE_STRING, 1, &four, NULL, &words));
    assign_value_text(words, odd);
    char *text;
    size_t bytes;
    assert_ok(manifest_encode(strategy, &text, &bytes, &error), &error);
    assert_int_equal(strlen(text), bytes);
    assign_value_text(words, none);
    for (int commit = 0; commit < 2; commit++) {
        uint64_t position = 9;
        assert_ok(state_receive(strategy, true, true, &error), &error);
        assert_ok(manifest_decode(strategy, text, bytes, &position, &error), &error);
        assert_int_equal(position, 0);
        if (commit == 0) {
            state_undo(strategy);
        } else {
            state_commit(strategy);
        }
        const cadre_string *is = cadre_variable_read(NULL, words);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(is[i].size, commit == 0 ? 0 : odd[i].size);
            assert_memory_equal(is[i].bytes, odd[i].bytes, is[i].size);
        }
    }
    free(text);
    cadre_strategy_release(strategy);
}

/* The text with one part of it replaced must be refused, and change nothing. */
static void check_refused(cadre_strategy *strategy, const char *text, const char *part,
    const char *by, cadre_status wanted, const char *message)
{
    struct cadre_error error = {0};
    char changed[4096];
    uint64_t position = 77;
    const char *at = strstr(text, part);
    assert_non_null(at);
    int length = snprintf(
        changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, by, at + strlen(part));
    assert_error(manifest_decode(strategy, changed, (size_t)length, &position, &error), wanted,
        &error, message);
    assert_int_equal(position, 77);
}

static void a_text_of_any_origin_is_checked(void **state)
{
    (void)state;
    struct cadre_error error = {0};
    const int64_t two = 2;
    cadre_strategy *strategy = training_strategy(1);
    cadre_variable *words;
    cadre_distributed_dataset *distributed;
    assert_public_ok(cadre_variable_create(strategy, "words", CADRE_STRING, 1, &two, NULL, &words));
    cadre_dataset *data = cadre_dataset_batch(cadre_dataset_range(0, 8, 1), 4, false);
    assert_public_ok(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    char *text;
    size_t bytes;
    assert_ok(manifest_encode(strategy, &text, &bytes, &error), &error);
    const cadre_status bad = CADRE_INVALID_ARGUMENT;
    check_refused(strategy, text, "cadre-checkpoint", "another", bad, "\"format\"");
    check_refused(strategy, text, "\"version\":2", "\"version\":3", bad, "newer");
    check_refused(strategy, text, "\"position\":0", "\"position\":-1", bad, "\"position\"");
    check_refused(strategy, text, "\"position\":0", "\"position\":\"4611686018427387904\"", bad,
        "\"position\"");
    check_refused(strategy, text, "\"run\":\"", "\"run\":\"Z", bad, "\"run\"");
    check_refused(strategy, text, "\"restored\":false", "\"restored\":0", bad, "missing");
    check_refused(strategy, text, "\"streams\":[", "\"streams\":[1,", bad, "stream 0");
    check_refused(strategy, text, "\"epochs_begun\":0", "\"epochs_begun\":1.5", bad, "not whole");
    check_refused(strategy, text, "\"open\":false", "\"open\":1", bad, "not whole");
    check_refused(strategy, text, "\"fed\":[", "\"fed\":[\"1\",", bad, "not whole");
    check_refused(strategy, text, "\"words\":[", "\"words\":[\"x\",", bad, "3 strings of 'words'");
    check_refused(strategy, text, "\"words\":[\"\"", "\"words\":[5", bad, "string 0 of 'words'");
    check_refused(
        strategy, text, "\"words\":[\"\"", "\"words\":[{\"hex\":\"0g\"}", bad, "string 0");
    check_refused(strategy, text, "\"words\"", "\"other\"", CADRE_NOT_FOUND, "'words'");
    check_refused(strategy, text, "\"strings\":{", "\"strings\":{\"a\":1,\"a\":2,", bad, "a");
    check_refused(strategy, text, "{\"format", "{\"file\":{\"name\":\"../x\"},\"format", bad,
        "\"file\" has no");
    uint64_t position = 0;
    for (size_t cut = 0; cut < bytes; cut++) {
        assert_int_equal(
            manifest_decode(strategy, text, cut, &position, &error), CADRE_INVALID_ARGUMENT);
    }
    free(text);
    cadre_strategy_release(strategy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_space_can_be_cut_anywhere),
        cmocka_unit_test(registering_is_checked),
        cmocka_unit_test(layouts_tell_programs_apart),
        cmocka_unit_test(a_text_brings_strings_back),
        cmocka_unit_test(a_text_of_any_origin_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
