/* SPDX-License-Identifier: Apache-2.0
 * Parsers of examples: descriptions, batches of different lengths, pipelines, memory. */
#include "tests/unit/input/cmocka_unit.h"

#include <stdio.h>
#include <string.h>

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "common/base/fault.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/examples.h"
#include "tests/unit/input/reading.h"

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
        {{{.name = "a", .dtype = CADRE_I64}}, 0, "1 to 64 can be had"},
        {{{.name = "a", .dtype = CADRE_I64}}, 65, "1 to 64 can be had"},
        {{{.dtype = CADRE_I64}}, 1, "feature 0 has no name"},
        {{{.name = "a"}}, 1, "is wanted as none"},
        {{{.name = "a", .dtype = CADRE_U8}}, 1, "is wanted as u8"},
        {{{.name = "a", .dtype = CADRE_I64, .kind = 4}}, 1, "4 is no kind"},
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
        {{{.name = "a", .dtype = CADRE_STRING, .kind = 3, .default_value = word}}, 1,
            "is SPARSE and has a default"},
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
    cadre_example_parser_release(NULL);
}

/* Many names that hash alike; all are found, others are not. */
static void many_features(void **state)
{
    (void)state;
    char names[CADRE_ELEMENT_TENSORS_MAX][16];
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
    cadre_element_release(&element);
    cadre_example_parser_release(parser);
    parser = make_parser(features, 32);
    assert_int_equal(
        cadre_example_parse(parser, text->bytes, text->size, &element), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), names[31]));
    cadre_example_parser_release(parser);
    cadre_tensor_release(example);
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        cadre_tensor_release(tensors[i]);
    }
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
        "([[[1 2] [-1 -1]] [[-1 -1] [-1 -1]] [[1 2] [3 4]]], [a bb a bb ccc dddd], [0 2 2 6], "
        "[- - -])");
    const cadre_feature sparse[] = {
        {.name = "s", .kind = CADRE_FEATURE_SPARSE, .dtype = CADRE_STRING},
        {.name = "k", .dtype = CADRE_I64, .default_value = minus},
    };
    expect_parsed(sparse, 2, examples, 3,
        "([[0] [1]], [a bb], [2], 2) ([], [], [0], -1) "
        "([[0] [1] [2] [3]], [a bb ccc dddd], [4], 4)",
        "([[0 0] [0 1] [2 0] [2 1] [2 2] [2 3]], [a bb a bb ccc dddd], [3 4], [2 -1 4])");
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
    cadre_dataset *data = dataset_of(&TEXT(LABEL_BYTES), 1);
    data = cadre_dataset_map(data, cadre_example_map, parser, &options);
    expect_spec(data, "f32 [2, 3] i64 [?, 4] string [?]");
    cadre_dataset_release(data);
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_OK);
    data = cadre_dataset_batch(dataset_of(&TEXT(LABEL_BYTES), 1), 8, false);
    data = cadre_dataset_map(data, cadre_example_map, parser, &options);
    expect_spec(data, "f32 [?, 2, 3] i64 [?, ?, 4] string [?] i64 [?]");
    cadre_dataset_release(data);
    cadre_example_parser_release(parser);
    cadre_feature many[CADRE_ELEMENT_TENSORS_MAX] = {{0}};
    char names[CADRE_ELEMENT_TENSORS_MAX][16];
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        many[i] =
            (cadre_feature){.name = names[i], .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_F32};
    }
    parser = make_parser(many, CADRE_ELEMENT_TENSORS_MAX);
    assert_int_equal(cadre_example_parser_spec(parser, &spec), CADRE_OK);
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "128 components"));
    cadre_example_parser_release(parser);
}

/* Parsing a batch leaves its size to be found, as TensorFlow's parse-example does; another function
 * does not. */
static void the_batch_size_is_found(void **state)
{
    (void)state;
    const cadre_feature features[] = {{.name = "label", .dtype = CADRE_I64}};
    cadre_example_parser *parser = make_parser(features, 1);
    const cadre_string examples[3] = {TEXT(LABEL_BYTES), TEXT(LABEL_BYTES), TEXT(LABEL_BYTES)};
    cadre_element_spec declared = {0};
    cadre_element_spec spec = {0};
    assert_int_equal(cadre_example_parser_batch_spec(parser, &declared), CADRE_OK);
    for (int i = 0; i < 4; i++) {
        const cadre_map_options options = {
            .output = i % 2 == 0 ? &declared : NULL, .parallel = i / 2 * 2};
        cadre_dataset *data = cadre_dataset_batch(dataset_of(examples, 3), 2, false);
        data = cadre_dataset_map(data, cadre_example_map, parser, &options);
        data = cadre_dataset_prefetch(data, 2);
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
        assert_int_equal(dataset_batch_size(data, &spec), 2);
        data = cadre_dataset_map(data, copy_element, NULL, &options);
        assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
        assert_int_equal(dataset_batch_size(data, &spec), CADRE_CARDINALITY_UNKNOWN);
        cadre_dataset_release(data);
    }
    cadre_dataset *data =
        cadre_dataset_map(dataset_of(examples, 3), cadre_example_map, parser, NULL);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_OK);
    assert_int_equal(dataset_batch_size(data, &spec), CADRE_CARDINALITY_UNKNOWN);
    cadre_dataset_release(data);
    cadre_example_parser_release(parser);
}

/* The errors that a reader of a pipeline gets. */
static void failures_in_a_pipeline(void **state)
{
    (void)state;
    const cadre_feature label = {.name = "label", .dtype = CADRE_I64};
    const cadre_string examples[] = {TEXT(LABEL_BYTES), TEXT(LABEL_BYTES), TEXT("")};
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
    cadre_example_parser_release(parser);
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
        assert_int_equal(cadre_tensor_dim(element.tensors[i], 0), i == 3 ? 1 : 0);
    }
    cadre_element_release(&element);
    cadre_tensor_release(examples);
    cadre_example_parser_release(parser);
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
    cadre_example_parser_release(parser);
    assert_int_equal(parsed->size, sizeof long_text);
    assert_memory_equal(parsed->bytes, long_text, sizeof long_text);
    assert_memory_equal(word->bytes, "word", 4);
    cadre_element_release(&out);
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
}

/* Every allocation that can be made to fail gives an error and leaves nothing behind. */
static void without_memory(void **state)
{
    (void)state;
    const cadre_feature features[] = {
        {.name = "name", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_STRING},
        {.name = "absent", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
    };
    cadre_tensor *examples = strings(1, &TEXT(ALL_BYTES));
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
        cadre_element_release(&element);
        cadre_example_parser_release(parser);
    }
    cadre_tensor_release(examples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_descriptions),
        cmocka_unit_test(many_features),
        cmocka_unit_test(batches),
        cmocka_unit_test(specs),
        cmocka_unit_test(the_batch_size_is_found),
        cmocka_unit_test(failures_in_a_pipeline),
        cmocka_unit_test(empty_batch),
        cmocka_unit_test(strings_outlive_the_examples),
        cmocka_unit_test(without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
