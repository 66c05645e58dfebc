/* SPDX-License-Identifier: Apache-2.0
 * Examples: bytes that Google's protobuf wrote, what protocol buffers allow besides, what is
 * refused and how, and back to bytes. */
#include "tests/unit/input/cmocka_unit.h"

#include <string.h>

#include "cadre/transformations.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/examples.h"

static void expect_refused(
    const cadre_feature *feature, cadre_string example, cadre_status code, const char *message)
{
    cadre_example_parser *parser = make_parser(feature, 1);
    cadre_element element = {.count = 9};
    cadre_status status = cadre_example_parse(parser, example.bytes, example.size, &element);
    if (status != code || strstr(cadre_error_message(), message) == NULL) {
        fail_msg("%s: %s", cadre_status_name(status), cadre_error_message());
    }
    assert_int_equal(element.count, 0);
    cadre_example_parser_release(parser);
}

static void reference_bytes(void **state)
{
    (void)state;
    const cadre_feature label = {.name = "label", .dtype = CADRE_I64};
    expect_parsed(&label, 1, &TEXT(LABEL_BYTES), 1, "7", "[7]");
    cadre_tensor *five = NULL;
    assert_int_equal(cadre_tensor_from_f32(5, &five), CADRE_OK);
    const cadre_feature features[] = {
        {.name = "x", .dtype = CADRE_F32, .rank = 1, .dims = {3}},
        {.name = "id", .dtype = CADRE_I64, .rank = 2, .dims = {2, 2}},
        {.name = "name", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
        {.name = "none", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_F32},
        {.name = "unset", .dtype = CADRE_F32, .default_value = five},
        {.name = "absent", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_I64},
    };
    /* The third name is a zero byte: text ends there. */
    expect_parsed(features, 6, &TEXT(ALL_BYTES), 1,
        "([1.5 -2.25 0.1], [[-1 300] [9223372036854775807 -9223372036854775808]], [ab  ], [], 5, "
        "[])",
        "([[1.5 -2.25 0.1]], [[[-1 300] [9223372036854775807 -9223372036854775808]]], [ab  ], "
        "[0 3], [], [0 0], [5], [[]])");
    cadre_tensor_release(five);
    cadre_example_parser *parser = make_parser(&features[2], 1);
    cadre_element element = {0};
    assert_int_equal(
        cadre_example_parse(parser, ALL_BYTES, sizeof ALL_BYTES - 1, &element), CADRE_OK);
    const cadre_string *names = cadre_tensor_const_data(element.tensors[0]);
    assert_int_equal(names[2].size, 2);
    assert_memory_equal(names[2].bytes, "\x00\xff", 2);
    cadre_element_release(&element);
    cadre_example_parser_release(parser);
}

/* What no writer of examples does, and every reader of protocol buffers takes. */
static void other_encodings(void **state)
{
    (void)state;
    const cadre_feature ints = {.name = "a", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64};
    const cadre_feature floats = {.name = "a", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_F32};
    const struct {
        const cadre_feature *feature;
        cadre_string bytes;
        const char *text;
    } cases[] = {
        {&ints, TEXT(""), "[]"},
        /* Not packed; then packed and not in one list. */
        {&ints, TEXT("\x0a\x0e\x0a\x0c\x0a\x01\x61\x12\x07\x1a\x05\x08\x05\x08\xac\x02"),
            "[5 300]"},
        {&ints, TEXT("\x0a\x0f\x0a\x0d\x0a\x01\x61\x12\x08\x1a\x06\x08\x05\x0a\x02\x06\x07"),
            "[5 6 7]"},
        {&floats, TEXT("\x0a\x0e\x0a\x0c\x0a\x01\x61\x12\x07\x12\x05\x0d\x00\x00\x80\x3f"), "[1]"},
        /* The list in two parts. */
        {&ints,
            TEXT("\x0a\x11\x0a\x0f\x0a\x01\x61\x12\x0a\x1a\x03\x0a\x01\x05\x1a\x03\x0a\x01\x06"),
            "[5 6]"},
        /* Two kinds: the last holds; back to the first: only what follows. */
        {&ints, TEXT("\x0a\x0f\x0a\x0d\x0a\x01\x61\x12\x08\x12\x01\x00\x1a\x03\x0a\x01\x06"),
            "[6]"},
        {&ints,
            TEXT("\x0a\x13\x0a\x11\x0a\x01\x61\x12\x0c\x1a\x03\x0a\x01\x05\x12\x00\x1a\x03\x0a\x01"
                 "\x06"),
            "[6]"},
        /* Value before key; the map in two parts, the last one holds; an empty Features. */
        {&ints, TEXT("\x0a\x0c\x0a\x0a\x12\x05\x1a\x03\x0a\x01\x05\x0a\x01\x61"), "[5]"},
        {&ints,
            TEXT("\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x05"
                 "\x0a\x00"
                 "\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x06"),
            "[6]"},
        /* The same key twice in one map; the last one has no value. */
        {&ints,
            TEXT("\x0a\x18\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x05"
                 "\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x06"),
            "[6]"},
        {&ints,
            TEXT("\x0a\x11\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x05\x0a\x03\x0a\x01\x61"),
            "[]"},
        /* Unknown fields of every type, at every level. */
        {&ints,
            TEXT("\x10\x96\x01\x1d\x01\x02\x03\x04\x0a\x2e\x11\x01\x02\x03\x04\x05\x06\x07\x08"
                 "\x0a\x23\x18\x01\x0a\x01\x61\x22\x01\x07\x12\x19\x25\x01\x02\x03\x04\x1a\x0e"
                 "\x12\x02\x09\x09\x18\x05\x0a\x01\x05\x0d\x01\x02\x03\x04\x22\x02\x05\x05"),
            "[5]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_example_parser *parser = make_parser(cases[i].feature, 1);
        expect_elements(
            cadre_dataset_map(dataset_of(&cases[i].bytes, 1), cadre_example_map, parser, NULL),
            cases[i].text);
        cadre_example_parser_release(parser);
    }
}

static void damaged_bytes(void **state)
{
    (void)state;
    const cadre_feature a = {.name = "a", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64};
    const cadre_feature x = {.name = "a", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_F32};
    const cadre_feature id = {.name = "id", .dtype = CADRE_I64, .rank = 1, .dims = {4}};
    expect_refused(
        &a, TEXT("\x0a\x02\x0a\x01"), CADRE_DATA_LOSS, "at byte 4 of 4 a field is longer");
    expect_refused(&a, TEXT("\x0a\x80"), CADRE_DATA_LOSS, "it ends inside a number");
    expect_refused(&a, TEXT("\x0b"), CADRE_DATA_LOSS, "at byte 0 of 1 a field has a type");
    expect_refused(&a, TEXT("\x02\x00"), CADRE_DATA_LOSS, "a field has a number");
    expect_refused(&a, TEXT("\x8a\x80\x80\x80\x10\x00"), CADRE_DATA_LOSS, "a field has a number");
    expect_refused(&a, TEXT("\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), CADRE_DATA_LOSS,
        "more than 64 bits");
    expect_refused(
        &a, TEXT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), CADRE_DATA_LOSS, "a field is longer");
    expect_refused(&a, TEXT("\x0a\x09\x0a\x07\x0a\x01\x61\x12\x00\x12\x00"), CADRE_DATA_LOSS,
        "at byte 9 of 11 an entry has two values");
    expect_refused(&x, TEXT("\x0a\x0e\x0a\x0c\x0a\x01\x61\x12\x07\x12\x05\x0a\x03\x00\x00\x80"),
        CADRE_DATA_LOSS, "feature \"a\": ");
    expect_refused(&a, TEXT("\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x85"),
        CADRE_DATA_LOSS, "feature \"a\": ");
    /* A number of 65 bits in a list that is only counted at first. */
    expect_refused(&a,
        TEXT("\x0a\x16\x0a\x14\x0a\x01\x61\x12\x0f\x1a\x0d\x0a\x0b\x05\xff\xff\xff\xff\xff"
             "\xff\xff\xff\xff\x02"),
        CADRE_DATA_LOSS, "at byte 14 of 24 a number has more than 64 bits");
    for (size_t size = 1; size < sizeof ALL_BYTES - 1; size++) {
        expect_refused(&id, (cadre_string){.bytes = ALL_BYTES, .size = size}, CADRE_DATA_LOSS,
            "this is no example: at byte ");
    }
}

static void wrong_features(void **state)
{
    (void)state;
    const cadre_string all = TEXT(ALL_BYTES);
    expect_refused(&(cadre_feature){.name = "id", .dtype = CADRE_F32, .rank = 1, .dims = {4}}, all,
        CADRE_INVALID_ARGUMENT, "feature \"id\" holds values of type i64, and f32 is wanted");
    expect_refused(&(cadre_feature){.name = "x", .dtype = CADRE_STRING}, all,
        CADRE_INVALID_ARGUMENT, "feature \"x\" holds values of type f32, and string is wanted");
    expect_refused(
        &(cadre_feature){.name = "name", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64}, all,
        CADRE_INVALID_ARGUMENT, "feature \"name\" holds values of type string, and i64 is wanted");
    expect_refused(&(cadre_feature){.name = "none", .dtype = CADRE_I64}, all,
        CADRE_INVALID_ARGUMENT, "feature \"none\" holds values of type f32, and i64 is wanted");
    expect_refused(&(cadre_feature){.name = "id", .dtype = CADRE_I64, .rank = 1, .dims = {3}}, all,
        CADRE_INVALID_ARGUMENT, "feature \"id\" has 4 values, and its shape i64 [3] needs 3");
    expect_refused(&(cadre_feature){.name = "x", .dtype = CADRE_F32, .rank = 2, .dims = {2, 2}},
        all, CADRE_INVALID_ARGUMENT,
        "feature \"x\" has 3 values, and its shape f32 [2, 2] needs 4");
    expect_refused(&(cadre_feature){.name = "none", .dtype = CADRE_F32}, all,
        CADRE_INVALID_ARGUMENT, "feature \"none\" has 0 values, and its shape f32 [] needs 1");
    expect_refused(&(cadre_feature){.name = "absent", .dtype = CADRE_F32}, all,
        CADRE_INVALID_ARGUMENT, "feature \"absent\" is missing and has no default");
    expect_refused(&(cadre_feature){.name = "unset", .dtype = CADRE_F32}, all,
        CADRE_INVALID_ARGUMENT, "feature \"unset\" is missing and has no default");
    expect_refused(&(cadre_feature){.name = "x",
                       .kind = CADRE_FEATURE_SEQUENCE,
                       .dtype = CADRE_F32,
                       .rank = 1,
                       .dims = {2}},
        all, CADRE_INVALID_ARGUMENT, "feature \"x\" has 3 values, which is no whole number");
}

static void serialized(void **state)
{
    (void)state;
    const float floats[] = {1.5F, -2.25F, 0.1F};
    const int64_t ids[] = {-1, 300, INT64_MAX, INT64_MIN};
    const cadre_string words[] = {TEXT("ab"), TEXT(""), TEXT("\x00\xff")};
    const int64_t three = 3;
    const int64_t none = 0;
    const char *const names[] = {"id", "name", "none", "x", "id"};
    cadre_tensor *tensors[] = {ints(4, ids), strings(3, words), NULL, NULL, NULL};
    assert_int_equal(cadre_tensor_create(CADRE_F32, 1, &none, &tensors[2]), CADRE_OK);
    assert_int_equal(cadre_tensor_from_data(CADRE_F32, 1, &three, floats, &tensors[3]), CADRE_OK);
    cadre_tensor *example = NULL;
    assert_int_equal(cadre_example_serialize(names, tensors, 4, &example), CADRE_OK);
    /* The reference without "unset", which is 11 bytes. */
    char expected[sizeof ALL_BYTES];
    const size_t unset = 2 + 43 + 22 + 12;
    memcpy(expected, ALL_BYTES, unset);
    memcpy(expected + unset, &ALL_BYTES[unset + 11], sizeof ALL_BYTES - unset - 11);
    expected[1] = 0x6f - 11;
    const cadre_string *text = cadre_tensor_const_data(example);
    assert_int_equal(text->size, sizeof ALL_BYTES - 1 - 11);
    assert_memory_equal(text->bytes, expected, text->size);
    cadre_tensor_release(example);
    assert_int_equal(cadre_example_serialize(NULL, NULL, 0, &example), CADRE_OK);
    assert_int_equal(((const cadre_string *)cadre_tensor_const_data(example))->size, 0);
    cadre_tensor_release(example);

    tensors[4] = cadre_tensor_retain(tensors[0]);
    assert_int_equal(cadre_example_serialize(names, tensors, 5, &example), CADRE_INVALID_ARGUMENT);
    assert_non_null(
        strstr(cadre_error_message(), "\"id\" is there twice, as number 0 and number 4"));
    assert_null(example);
    assert_int_equal(cadre_example_serialize(names, NULL, 1, &example), CADRE_INVALID_ARGUMENT);
    cadre_tensor *byte = NULL;
    assert_int_equal(cadre_tensor_create(CADRE_U8, 1, &three, &byte), CADRE_OK);
    assert_int_equal(cadre_example_serialize(names, &byte, 1, &example), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "\"id\" is a tensor of type u8"));
    cadre_tensor_release(byte);
    byte = NULL;
    assert_int_equal(cadre_example_serialize(names, &byte, 1, &example), CADRE_INVALID_ARGUMENT);
    for (size_t i = 0; i < 5; i++) {
        cadre_tensor_release(tensors[i]);
    }
}

/* Any bytes give a status and a sentence; what is accepted one by one is in a batch too. */
static void mutated_bytes(void **state)
{
    (void)state;
    cadre_tensor *zero = NULL;
    assert_int_equal(cadre_tensor_from_i64(0, &zero), CADRE_OK);
    const cadre_feature features[] = {
        {.name = "x", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_F32},
        {.name = "id", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64},
        {.name = "name", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
        {.name = "unset", .dtype = CADRE_I64, .default_value = zero},
    };
    cadre_example_parser *parser = make_parser(features, 4);
    struct prng prng = {.state = 2026};
    size_t accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char bytes[sizeof ALL_BYTES - 1];
        memcpy(bytes, ALL_BYTES, sizeof bytes);
        for (uint64_t i = 0; i <= prng_uniform(&prng, 3); i++) {
            bytes[prng_uniform(&prng, sizeof bytes)] = (char)prng_next(&prng);
        }
        cadre_element one = {0};
        cadre_element batch = {0};
        cadre_status status = cadre_example_parse(parser, bytes, sizeof bytes, &one);
        cadre_tensor *examples = strings(1, &(cadre_string){.bytes = bytes, .size = sizeof bytes});
        assert_int_equal(cadre_example_parse_batch(parser, examples, &batch), status);
        if (status != CADRE_OK) {
            assert_true(status == CADRE_DATA_LOSS || status == CADRE_INVALID_ARGUMENT);
        } else {
            assert_int_equal(batch.count, 6);
            assert_int_equal(
                cadre_tensor_count(one.tensors[1]), cadre_tensor_count(batch.tensors[1]));
            accepted++;
        }
        cadre_element_release(&one);
        cadre_element_release(&batch);
        cadre_tensor_release(examples);
    }
    assert_true(accepted > 1000 && accepted < 19000);
    cadre_tensor_release(zero);
    cadre_example_parser_release(parser);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_bytes),
        cmocka_unit_test(other_encodings),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(wrong_features),
        cmocka_unit_test(serialized),
        cmocka_unit_test(mutated_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
