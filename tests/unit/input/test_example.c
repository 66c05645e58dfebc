/* SPDX-License-Identifier: Apache-2.0
 * Examples: bytes that Google's protobuf 4.21 wrote, what protocol buffers allow besides, what is
 * refused and how, one by one and in batches, and back to bytes. */
#include "tests/unit/input/cmocka_unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cadre/example.h"
#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/elements.h"

/* Example(features={label: int64_list [7]}), SerializeToString of protobuf 4.21.12. */
static const char label_bytes[] = "\x0a\x10\x0a\x0e\x0a\x05label\x12\x05\x1a\x03\x0a\x01\x07";

/* The same of {id: int64 [-1, 300, 2^63 - 1, -2^63], name: bytes [ab, "", "\0\xff"], none: an empty
 * float_list, unset: a Feature of no kind, x: float [1.5, -2.25, 0.1]}, deterministic. */
static const char all_bytes[] =
    "\x0a\x6f"
    "\x0a\x29\x0a\x02id\x12\x23\x1a\x21\x0a\x1f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\xac\x02"
    "\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"
    "\x0a\x14\x0a\x04name\x12\x0c\x0a\x0a\x0a\x02"
    "ab\x0a\x00\x0a\x02\x00\xff"
    "\x0a\x0a\x0a\x04none\x12\x02\x12\x00"
    "\x0a\x09\x0a\x05unset\x12\x00"
    "\x0a\x15\x0a\x01x\x12\x10\x12\x0e\x0a\x0c\x00\x00\xc0\x3f\x00\x00\x10\xc0\xcd\xcc\xcc\x3d";

#define TEXT(literal) ((cadre_string){.bytes = (literal), .size = sizeof(literal) - 1})

static cadre_example_parser *make_parser(const cadre_feature features[], size_t count)
{
    cadre_example_parser *parser = NULL;
    if (cadre_example_parser_create(features, count, &parser) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    return parser;
}

static cadre_dataset *dataset_of(const cadre_string examples[], int64_t count)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, &count, examples, &tensor), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

/* The examples parsed one by one, as text; and in one batch. */
static void expect_parsed(const cadre_feature features[], size_t feature_count,
    const cadre_string examples[], int64_t count, const char *singles, const char *batch)
{
    cadre_example_parser *parser = make_parser(features, feature_count);
    cadre_element_spec spec = {0};
    cadre_map_options options = {.output = &spec};
    assert_int_equal(cadre_example_parser_spec(parser, &spec), CADRE_OK);
    expect_elements(
        cadre_dataset_map(dataset_of(examples, count), cadre_example_map, parser, &options),
        singles);
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_OK);
    expect_elements(
        cadre_dataset_map(cadre_dataset_batch(dataset_of(examples, count), count, false),
            cadre_example_map, parser, &options),
        batch);
    cadre_example_parser_free(parser);
}

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
    cadre_example_parser_free(parser);
}

static void reference_bytes(void **state)
{
    (void)state;
    const cadre_feature label = {.name = "label", .dtype = CADRE_I64};
    expect_parsed(&label, 1, &TEXT(label_bytes), 1, "7", "[7]");
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
    expect_parsed(features, 6, &TEXT(all_bytes), 1,
        "([1.5 -2.25 0.1], [[-1 300] [9223372036854775807 -9223372036854775808]], [ab  ], [], 5, "
        "[])",
        "([[1.5 -2.25 0.1]], [[[-1 300] [9223372036854775807 -9223372036854775808]]], [ab  ], [3], "
        "[], [0], [5], [[]])");
    cadre_tensor_release(five);
    cadre_example_parser *parser = make_parser(&features[2], 1);
    cadre_element element = {0};
    assert_int_equal(
        cadre_example_parse(parser, all_bytes, sizeof all_bytes - 1, &element), CADRE_OK);
    const cadre_string *names = cadre_tensor_const_data(element.tensors[0]);
    assert_int_equal(names[2].size, 2);
    assert_memory_equal(names[2].bytes, "\x00\xff", 2);
    cadre_element_clear(&element);
    cadre_example_parser_free(parser);
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
        cadre_example_parser_free(parser);
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
    for (size_t size = 1; size < sizeof all_bytes - 1; size++) {
        expect_refused(&id, (cadre_string){.bytes = all_bytes, .size = size}, CADRE_DATA_LOSS,
            "this is no example: at byte ");
    }
}

static void wrong_features(void **state)
{
    (void)state;
    const cadre_string all = TEXT(all_bytes);
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

static void wrong_descriptions(void **state)
{
    (void)state;
    cadre_tensor *two = NULL;
    cadre_tensor *word = NULL;
    const int64_t dims[] = {2};
    assert_int_equal(cadre_tensor_create(CADRE_I64, 1, dims, &two), CADRE_OK);
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &TEXT("w"), &word), CADRE_OK);
    const struct {
        cadre_feature features[2];
        size_t count;
        const char *message;
    } cases[] = {
        {{{.name = "a", .dtype = CADRE_I64}}, 0, "1 to 32 can be had"},
        {{{.name = "a", .dtype = CADRE_I64}}, 33, "1 to 32 can be had"},
        {{{.dtype = CADRE_I64}}, 1, "feature 0 has no name"},
        {{{.name = "a"}}, 1, "is wanted as none"},
        {{{.name = "a", .dtype = CADRE_U8}}, 1, "is wanted as u8"},
        {{{.name = "a", .dtype = CADRE_I64, .kind = 3}}, 1, "3 is no kind"},
        {{{.name = "a", .dtype = CADRE_I64, .rank = CADRE_RANK_MAX}}, 1, "has at most 7"},
        {{{.name = "a", .dtype = CADRE_I64, .kind = 2, .rank = 1}}, 1, "has at most 0"},
        {{{.name = "a", .dtype = CADRE_I64, .kind = 1, .rank = 7}}, 1, "has at most 6"},
        {{{.name = "a", .dtype = CADRE_I64, .rank = 1, .dims = {-1}}}, 1,
            "feature \"a\": dimension"},
        {{{.name = "a", .dtype = CADRE_I64, .kind = 1, .rank = 1, .dims = {0}}}, 1,
            "values without elements"},
        {{{.name = "a", .dtype = CADRE_I64}, {.name = "a", .dtype = CADRE_F32}}, 2,
            "described twice, as number 0 and number 1"},
        {{{.name = "a", .dtype = CADRE_I64, .default_value = two}}, 1,
            "the default is i64 [2]; 1 "},
        {{{.name = "a", .dtype = CADRE_I64, .default_value = word}}, 1, "the default is string []"},
        {{{.name = "a", .dtype = CADRE_STRING, .kind = 2, .default_value = word}}, 1,
            "is VARYING and has a default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cadre_example_parser *parser = (cadre_example_parser *)&two;
        cadre_status status =
            cadre_example_parser_create(cases[i].features, cases[i].count, &parser);
        if (status != CADRE_INVALID_ARGUMENT ||
            strstr(cadre_error_message(), cases[i].message) == NULL) {
            fail_msg("case %zu: %s", i, cadre_error_message());
        }
        assert_null(parser);
    }
    assert_int_equal(cadre_example_parser_create(NULL, 1, NULL), CADRE_INVALID_ARGUMENT);
    cadre_tensor_release(two);
    cadre_tensor_release(word);
    cadre_example_parser_free(NULL);
}

/* Many names that hash alike; all are found, others are not. */
static void many_features(void **state)
{
    (void)state;
    char names[CADRE_ELEMENT_TENSORS_MAX][8];
    const char *named[CADRE_ELEMENT_TENSORS_MAX];
    cadre_tensor *tensors[CADRE_ELEMENT_TENSORS_MAX];
    cadre_feature features[CADRE_ELEMENT_TENSORS_MAX] = {{0}};
    cadre_tensor *example = NULL;
    cadre_element element = {0};
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "x%c%cxxxx", 'a' + i % 26, 'a' + i / 26);
        named[i] = names[i];
        features[i] = (cadre_feature){.name = names[i], .dtype = CADRE_I64};
        assert_int_equal(cadre_tensor_from_i64(i, &tensors[i]), CADRE_OK);
    }
    assert_int_equal(cadre_example_serialize(named, tensors, 31, &example), CADRE_OK);
    cadre_example_parser *parser = make_parser(features, 31);
    const cadre_string *text = cadre_tensor_const_data(example);
    assert_int_equal(cadre_example_parse(parser, text->bytes, text->size, &element), CADRE_OK);
    assert_int_equal(element.count, 31);
    for (int i = 0; i < 31; i++) {
        assert_int_equal(*(const int64_t *)cadre_tensor_const_data(element.tensors[i]), i);
    }
    cadre_element_clear(&element);
    cadre_example_parser_free(parser);
    parser = make_parser(features, 32);
    assert_int_equal(
        cadre_example_parse(parser, text->bytes, text->size, &element), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), names[31]));
    cadre_example_parser_free(parser);
    cadre_tensor_release(example);
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        cadre_tensor_release(tensors[i]);
    }
}

static cadre_tensor *ints(int64_t count, const int64_t *values)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_I64, 1, &count, values, &tensor), CADRE_OK);
    return tensor;
}

static cadre_tensor *strings(int64_t count, const cadre_string *values)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, &count, values, &tensor), CADRE_OK);
    return tensor;
}

/* {v: the first `count` of 1, 2, ...; s: as many of "a", "bb", ...; k: count, unless it is 0} */
static cadre_tensor *make_example(int64_t count)
{
    const int64_t numbers[] = {1, 2, 3, 4};
    const cadre_string words[] = {TEXT("a"), TEXT("bb"), TEXT("ccc"), TEXT("dddd")};
    const char *const names[] = {"v", "s", "k"};
    cadre_tensor *tensors[] = {ints(count, numbers), strings(count, words), ints(1, &count)};
    cadre_tensor *example = NULL;
    assert_int_equal(
        cadre_example_serialize(names, tensors, count > 0 ? 3 : 2, &example), CADRE_OK);
    for (size_t i = 0; i < 3; i++) {
        cadre_tensor_release(tensors[i]);
    }
    return example;
}

/* Different lengths: padded, ragged, and what is not there. */
static void batches(void **state)
{
    (void)state;
    cadre_tensor *made[] = {make_example(2), make_example(0), make_example(4)};
    cadre_string examples[3];
    cadre_tensor *minus = NULL;
    cadre_tensor *dash = NULL;
    for (size_t i = 0; i < 3; i++) {
        examples[i] = *(const cadre_string *)cadre_tensor_const_data(made[i]);
    }
    assert_int_equal(cadre_tensor_from_i64(-1, &minus), CADRE_OK);
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 0, NULL, &TEXT("-"), &dash), CADRE_OK);
    const cadre_feature features[] = {
        {.name = "v", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_I64},
        {.name = "s", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_STRING, .default_value = dash},
        {.name = "k", .dtype = CADRE_I64, .default_value = minus},
    };
    expect_parsed(features, 3, examples, 3,
        "([1 2], [a bb], 2) ([], [], -1) ([1 2 3 4], [a bb ccc dddd], 4)",
        "([[1 2 0 0] [0 0 0 0] [1 2 3 4]], [[a bb - -] [- - - -] [a bb ccc dddd]], [2 -1 4])");
    const cadre_feature others[] = {
        {.name = "v",
            .kind = CADRE_FEATURE_SEQUENCE,
            .dtype = CADRE_I64,
            .rank = 1,
            .dims = {2},
            .default_value = minus},
        {.name = "s", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
        {.name = "v2", .dtype = CADRE_STRING, .default_value = dash},
    };
    expect_parsed(others, 3, examples, 3,
        "([[1 2]], [a bb], -) ([], [], -) ([[1 2] [3 4]], [a bb ccc dddd], -)",
        "([[[1 2] [-1 -1]] [[-1 -1] [-1 -1]] [[1 2] [3 4]]], [a bb a bb ccc dddd], [2 0 4], "
        "[- - -])");
    for (size_t i = 0; i < 3; i++) {
        cadre_tensor_release(made[i]);
    }
    cadre_tensor_release(minus);
    cadre_tensor_release(dash);
}

static void specs(void **state)
{
    (void)state;
    const cadre_feature features[] = {
        {.name = "f", .dtype = CADRE_F32, .rank = 2, .dims = {2, 3}},
        {.name = "s", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_I64, .rank = 1, .dims = {4}},
        {.name = "v", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
    };
    cadre_example_parser *parser = make_parser(features, 3);
    cadre_element_spec spec = {0};
    cadre_map_options options = {.output = &spec};
    assert_int_equal(cadre_example_parser_spec(parser, &spec), CADRE_OK);
    cadre_dataset *data = dataset_of(&TEXT(label_bytes), 1);
    data = cadre_dataset_map(data, cadre_example_map, parser, &options);
    expect_spec(data, "f32 [2, 3] i64 [?, 4] string [?]");
    cadre_dataset_release(data);
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_OK);
    data = cadre_dataset_batch(dataset_of(&TEXT(label_bytes), 1), 8, false);
    data = cadre_dataset_map(data, cadre_example_map, parser, &options);
    expect_spec(data, "f32 [?, 2, 3] i64 [?, ?, 4] string [?] i64 [?]");
    cadre_dataset_release(data);
    cadre_example_parser_free(parser);
    cadre_feature many[CADRE_ELEMENT_TENSORS_MAX] = {{0}};
    char names[CADRE_ELEMENT_TENSORS_MAX][8];
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        many[i] =
            (cadre_feature){.name = names[i], .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_F32};
    }
    parser = make_parser(many, CADRE_ELEMENT_TENSORS_MAX);
    assert_int_equal(cadre_example_parser_spec(parser, &spec), CADRE_OK);
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "64 components"));
    cadre_example_parser_free(parser);
}

/* What a reader of a pipeline is told. */
static void failures_in_a_pipeline(void **state)
{
    (void)state;
    const cadre_feature label = {.name = "label", .dtype = CADRE_I64};
    const cadre_string examples[] = {TEXT(label_bytes), TEXT(label_bytes), TEXT("")};
    cadre_example_parser *parser = make_parser(&label, 1);
    expect_failure(cadre_dataset_map(dataset_of(examples, 3), cadre_example_map, parser, NULL),
        CADRE_INVALID_ARGUMENT, "an example: feature \"label\" is missing");
    expect_failure(cadre_dataset_map(cadre_dataset_batch(dataset_of(examples, 3), 3, false),
                       cadre_example_map, parser, NULL),
        CADRE_INVALID_ARGUMENT, "example 2 of a batch of 3 (from 0): feature \"label\" is missing");
    expect_failure(cadre_dataset_map(cadre_dataset_range(0, 3, 1), cadre_example_map, parser, NULL),
        CADRE_INVALID_ARGUMENT, "examples are string [] or [?], and here is i64 []");
    cadre_dataset *data = cadre_dataset_batch(dataset_of(examples, 2), 2, false);
    expect_failure(
        cadre_dataset_map(cadre_dataset_batch(data, 1, false), cadre_example_map, parser, NULL),
        CADRE_INVALID_ARGUMENT, "and here is string [1, 2]");
    cadre_dataset *const sides[] = {dataset_of(examples, 2), dataset_of(examples, 2)};
    data = cadre_dataset_zip(sides, 2);
    expect_failure(cadre_dataset_map(data, cadre_example_map, parser, NULL), CADRE_INVALID_ARGUMENT,
        "of one component, and this one has 2");
    cadre_element element = {0};
    cadre_tensor *scalar = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 0, NULL, examples, &scalar), CADRE_OK);
    assert_int_equal(cadre_example_parse_batch(parser, scalar, &element), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_example_parse_batch(parser, NULL, &element), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_example_parse(parser, NULL, 3, &element), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_example_parse(NULL, "", 0, &element), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_example_parse(parser, "", 0, NULL), CADRE_INVALID_ARGUMENT);
    cadre_tensor_release(scalar);
    cadre_example_parser_free(parser);
}

static void empty_batch(void **state)
{
    (void)state;
    const cadre_feature features[] = {
        {.name = "f", .dtype = CADRE_STRING, .rank = 1, .dims = {2}},
        {.name = "s", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_STRING},
        {.name = "v", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64},
    };
    cadre_example_parser *parser = make_parser(features, 3);
    const int64_t none = 0;
    cadre_tensor *examples = NULL;
    cadre_element element = {0};
    assert_int_equal(cadre_tensor_create(CADRE_STRING, 1, &none, &examples), CADRE_OK);
    assert_int_equal(cadre_example_parse_batch(parser, examples, &element), CADRE_OK);
    assert_int_equal(element.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(cadre_tensor_dim(element.tensors[i], 0), 0);
    }
    cadre_element_clear(&element);
    cadre_tensor_release(examples);
    cadre_example_parser_free(parser);
}

/* Long strings stay where the examples lie, and live on with them; short ones are copied. */
static void strings_outlive_the_examples(void **state)
{
    (void)state;
    char long_text[1000];
    memset(long_text, 'x', sizeof long_text);
    const char *const names[] = {"long", "short"};
    cadre_tensor *tensors[] = {
        strings(1, &(cadre_string){.bytes = long_text, .size = sizeof long_text}),
        strings(1, &TEXT("word"))};
    cadre_tensor *example = NULL;
    assert_int_equal(cadre_example_serialize(names, tensors, 2, &example), CADRE_OK);
    const cadre_feature features[] = {
        {.name = "long", .dtype = CADRE_STRING}, {.name = "short", .dtype = CADRE_STRING}};
    cadre_example_parser *parser = make_parser(features, 2);
    cadre_element in = {.count = 1, .tensors = {example}};
    cadre_element out = {0};
    assert_int_equal(cadre_example_map(&in, &out, parser), CADRE_OK);
    const cadre_string *text = cadre_tensor_const_data(example);
    const cadre_string *parsed = cadre_tensor_const_data(out.tensors[0]);
    const cadre_string *word = cadre_tensor_const_data(out.tensors[1]);
    assert_true(parsed->bytes > text->bytes && parsed->bytes < text->bytes + text->size);
    assert_false(word->bytes > text->bytes && word->bytes < text->bytes + text->size);
    cadre_tensor_release(example);
    cadre_example_parser_free(parser);
    assert_int_equal(parsed->size, sizeof long_text);
    assert_memory_equal(parsed->bytes, long_text, sizeof long_text);
    assert_memory_equal(word->bytes, "word", 4);
    cadre_element_clear(&out);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
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
    char expected[sizeof all_bytes];
    const size_t unset = 2 + 43 + 22 + 12;
    memcpy(expected, all_bytes, unset);
    memcpy(expected + unset, all_bytes + unset + 11, sizeof all_bytes - unset - 11);
    expected[1] = 0x6f - 11;
    const cadre_string *text = cadre_tensor_const_data(example);
    assert_int_equal(text->size, sizeof all_bytes - 1 - 11);
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
        char bytes[sizeof all_bytes - 1];
        memcpy(bytes, all_bytes, sizeof bytes);
        for (uint64_t i = 0; i <= prng_below(&prng, 3); i++) {
            bytes[prng_below(&prng, sizeof bytes)] = (char)prng_next(&prng);
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
        cadre_element_clear(&one);
        cadre_element_clear(&batch);
        cadre_tensor_release(examples);
    }
    assert_true(accepted > 1000 && accepted < 19000);
    cadre_tensor_release(zero);
    cadre_example_parser_free(parser);
}

/* Every allocation that can be made to fail gives an error and leaves nothing behind. */
static void without_memory(void **state)
{
    (void)state;
    const cadre_feature features[] = {
        {.name = "name", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_STRING},
        {.name = "absent", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
    };
    cadre_tensor *examples = strings(1, &TEXT(all_bytes));
    bool met = true;
    for (uint64_t nth = 1; met; nth++) {
        cadre_example_parser *parser = NULL;
        cadre_element element = {0};
        fault_arm("input.example", nth);
        cadre_status status = cadre_example_parser_create(features, 2, &parser);
        if (status == CADRE_OK) {
            status = cadre_example_parse_batch(parser, examples, &element);
        }
        met = fault_disarm();
        assert_int_equal(status, met ? CADRE_RESOURCE_EXHAUSTED : CADRE_OK);
        assert_int_equal(element.count, met ? 0 : 3);
        assert_true(met || nth > 6);
        cadre_element_clear(&element);
        cadre_example_parser_free(parser);
    }
    cadre_tensor_release(examples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reference_bytes),
        cmocka_unit_test(other_encodings),
        cmocka_unit_test(damaged_bytes),
        cmocka_unit_test(wrong_features),
        cmocka_unit_test(wrong_descriptions),
        cmocka_unit_test(many_features),
        cmocka_unit_test(batches),
        cmocka_unit_test(specs),
        cmocka_unit_test(failures_in_a_pipeline),
        cmocka_unit_test(empty_batch),
        cmocka_unit_test(strings_outlive_the_examples),
        cmocka_unit_test(serialized),
        cmocka_unit_test(mutated_bytes),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
