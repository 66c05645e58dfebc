/* SPDX-License-Identifier: Apache-2.0
 * Names of components: where they come from, what keeps them, and what functions of the program
 * find by them. */
#include <stdio.h>
#include <string.h>

#include "cadre/example.h"
#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/inner_datasets.h"
#include "worker/library/input/node/component_names.h"

static const char *const image_and_label[] = {"image", "label"};

static cadre_dataset *pairs(void)
{
    cadre_dataset *const both[] = {cadre_dataset_range(0, 6, 1), cadre_dataset_range(10, 16, 1)};
    return cadre_dataset_named(cadre_dataset_zip(both, 2), image_and_label, 2);
}

/* Consumes `data`. */
static void expect_names(cadre_dataset *data, const char *expected)
{
    cadre_element_spec spec;
    char text[NAMES_TEXT_BYTES];
    if (cadre_dataset_spec(data, &spec) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    assert_string_equal(component_names_text(spec.names, spec.count, text), expected);
    cadre_dataset_release(data);
}

static int64_t number(const cadre_element *element, const char *name)
{
    cadre_tensor *tensor = NULL;
    if (cadre_element_named(element, name, &tensor) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    return *(const int64_t *)cadre_tensor_const_data(tensor);
}

/* --- what has which --- */

static void names_go_through_what_changes_no_component(void **state)
{
    (void)state;
    const char *both = "'image', 'label'";
    expect_names(pairs(), both);
    expect_names(cadre_dataset_batch(pairs(), 4, false), both);
    expect_names(cadre_dataset_padded_batch(pairs(), 4, NULL, false), both);
    expect_names(cadre_dataset_unbatch(cadre_dataset_batch(pairs(), 4, false)), both);
    expect_names(cadre_dataset_shuffle(pairs(), CADRE_SHUFFLE_ALL, 1, NULL), both);
    expect_names(cadre_dataset_shuffle(pairs(), 3, 1, NULL), both);
    expect_names(cadre_dataset_repeat(cadre_dataset_skip(pairs(), 1), 2), both);
    expect_names(cadre_dataset_prefetch(cadre_dataset_cache(pairs(), NULL), 2), both);
    expect_names(cadre_dataset_concatenate(pairs(), pairs()), both);
    expect_names(in_order_only(pairs()), both);
}

static void tuples_are_named_by_their_numbers(void **state)
{
    (void)state;
    cadre_dataset *const plain[] = {cadre_dataset_range(0, 6, 1), cadre_dataset_range(6, 12, 1)};
    expect_names(cadre_dataset_zip(plain, 2), "'0', '1'");
    cadre_dataset *const nested[] = {pairs(), cadre_dataset_range(6, 12, 1)};
    expect_names(cadre_dataset_zip(nested, 2), "'0/image', '0/label', '1'");
    cadre_dataset *const tuple[] = {
        cadre_dataset_enumerate(cadre_dataset_range(0, 6, 1), 0), cadre_dataset_range(6, 12, 1)};
    expect_names(cadre_dataset_zip(tuple, 2), "'0/0', '0/1', '1'");
    expect_names(cadre_dataset_enumerate(pairs(), 5), "'0', '1/image', '1/label'");
}

static void the_last_names_hold(void **state)
{
    (void)state;
    static const char *const other[] = {"x", NULL};
    static const char *const none[] = {NULL, NULL};
    expect_names(cadre_dataset_named(pairs(), other, 2), "'x'");
    expect_names(cadre_dataset_named(pairs(), none, 2), "none has a name");
}

static void features_are_components_of_their_name(void **state)
{
    (void)state;
    const cadre_feature features[] = {
        {.name = "image/encoded", .dtype = CADRE_STRING},
        {.name = "ids", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64},
    };
    cadre_example_parser *parser = NULL;
    cadre_element_spec spec;
    char text[NAMES_TEXT_BYTES];
    assert_int_equal(cadre_example_parser_create(features, 2, &parser), CADRE_OK);
    assert_int_equal(cadre_example_parser_spec(parser, &spec), CADRE_OK);
    assert_string_equal(
        component_names_text(spec.names, spec.count, text), "'image/encoded', 'ids'");
    assert_int_equal(cadre_example_parser_batch_spec(parser, &spec), CADRE_OK);
    assert_string_equal(component_names_text(spec.names, spec.count, text),
        "'image/encoded', 'ids/values', 'ids/row_splits'");
    cadre_example_parser_release(parser);
}

/* --- functions of the program --- */

static cadre_status difference(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    int64_t value = number(in, "label") - number(in, "image");
    ret_out->names = image_and_label; /* not read here */
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 0, NULL, &value, &ret_out->tensors[0]);
}

static cadre_status image_is_even(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = number(in, "image") % 2 == 0;
    return CADRE_OK;
}

static cadre_status range_to_image(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    *ret_data = cadre_dataset_range(0, number(in, "image"), 1);
    return CADRE_OK;
}

static cadre_status add_labels(
    const cadre_element *state, const cadre_element *in, cadre_element *ret_state, void *user)
{
    (void)user;
    int64_t sum = *(const int64_t *)cadre_tensor_const_data(state->tensors[0]);
    sum += number(in, "label");
    ret_state->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 0, NULL, &sum, &ret_state->tensors[0]);
}

static void functions_find_components_by_name(void **state)
{
    (void)state;
    expect_elements(cadre_dataset_map(pairs(), difference, NULL, NULL), "10 10 10 10 10 10");
    expect_elements(
        cadre_dataset_map(in_order_only(pairs()), difference, NULL, NULL), "10 10 10 10 10 10");
    const cadre_map_options parallel = {.parallel = 3};
    expect_elements(cadre_dataset_map(in_order_only(pairs()), difference, NULL, &parallel),
        "10 10 10 10 10 10");
    expect_elements(
        cadre_dataset_batch(cadre_dataset_map(pairs(), difference, NULL, &parallel), 6, false),
        "[10 10 10 10 10 10]");
    expect_names(cadre_dataset_map(pairs(), difference, NULL, NULL), "none has a name");
    expect_elements(cadre_dataset_filter(pairs(), image_is_even, NULL), "(0, 10) (2, 12) (4, 14)");
    expect_elements(cadre_dataset_flat_map(cadre_dataset_take(pairs(), 4), range_to_image, NULL),
        "0 0 1 0 1 2");
    int64_t zero = 0;
    cadre_element sum = {.count = 1};
    assert_int_equal(cadre_tensor_from_data(CADRE_I64, 0, NULL, &zero, &sum.tensors[0]), CADRE_OK);
    cadre_dataset *data = pairs();
    assert_int_equal(cadre_dataset_reduce(data, &sum, add_labels, NULL), CADRE_OK);
    assert_int_equal(*(const int64_t *)cadre_tensor_const_data(sum.tensors[0]), 75);
    cadre_element_release(&sum);
    cadre_dataset_release(data);
}

/* A map and a generator declare what their elements are, and how components are called. */
static void what_is_declared_has_names(void **state)
{
    (void)state;
    static const char *const name[] = {"distance"};
    const cadre_element_spec output = {
        .count = 1, .tensors = {{.dtype = CADRE_I64}}, .names = name};
    const cadre_map_options options = {.output = &output};
    expect_names(
        cadre_dataset_batch(cadre_dataset_map(pairs(), difference, NULL, &options), 2, false),
        "'distance'");
}

static void elements_that_are_read_have_names(void **state)
{
    (void)state;
    cadre_dataset *data = in_order_only(cadre_dataset_range(0, 3, 1));
    static const char *const name[] = {"place"};
    cadre_iterator *iterator = NULL;
    cadre_element element;
    data = cadre_dataset_named(data, name, 1); /* read through the iterator of what is below it */
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
        assert_int_equal(number(&element, "place"), i);
        cadre_element_release(&element);
    }
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OUT_OF_RANGE);
    assert_null(element.names);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

/* --- errors --- */

static void a_missing_name_is_an_error_that_lists_the_names(void **state)
{
    (void)state;
    cadre_dataset *data = pairs();
    cadre_iterator *iterator = NULL;
    cadre_element element;
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_dataset_iterate(data, 0, &iterator), CADRE_OK);
    assert_int_equal(cadre_iterator_next(iterator, &element), CADRE_OK);
    assert_int_equal(cadre_element_named(&element, "lable", &tensor), CADRE_NOT_FOUND);
    assert_string_equal(cadre_error_message(),
        "cadre_element_named: no component is called 'lable'; of the 2 that there are: 'image', "
        "'label'");
    assert_null(tensor);
    element.names = NULL;
    assert_int_equal(cadre_element_named(&element, "image", &tensor), CADRE_NOT_FOUND);
    assert_non_null(strstr(cadre_error_message(), "none has a name"));
    assert_int_equal(cadre_element_named(NULL, "image", &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_element_named(&element, NULL, &tensor), CADRE_INVALID_ARGUMENT);
    assert_int_equal(cadre_element_named(&element, "image", NULL), CADRE_INVALID_ARGUMENT);
    cadre_element_release(&element);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

static void wrong_names_are_refused(void **state)
{
    (void)state;
    static const char *const empty[] = {"image", ""};
    static const char *const twice[] = {"image", "image"};
    static const char *const three[] = {"a", "b", "c"};
    expect_failure(cadre_dataset_named(pairs(), empty, 2), CADRE_INVALID_ARGUMENT,
        "named: the name of component 1 is empty");
    expect_failure(cadre_dataset_named(pairs(), twice, 2), CADRE_INVALID_ARGUMENT,
        "named: components 0 and 1 are both called 'image'");
    expect_failure(cadre_dataset_named(pairs(), NULL, 2), CADRE_INVALID_ARGUMENT, "named: 2 names");
    expect_failure(
        cadre_dataset_named(pairs(), empty, 0), CADRE_INVALID_ARGUMENT, "named: 0 names");
    cadre_element_spec spec;
    cadre_dataset *data = cadre_dataset_named(pairs(), three, 3);
    assert_int_equal(cadre_dataset_spec(data, &spec), CADRE_INVALID_ARGUMENT);
    assert_non_null(strstr(cadre_error_message(), "3 names were given to elements of 2"));
    cadre_dataset_release(data);
}

/* Lists that are too long to be shown end where there is no more room. */
static void many_names_are_cut(void **state)
{
    (void)state;
    char names[CADRE_ELEMENT_TENSORS_MAX][32];
    const char *all[CADRE_ELEMENT_TENSORS_MAX];
    char text[NAMES_TEXT_BYTES];
    for (int i = 0; i < CADRE_ELEMENT_TENSORS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "component-%d", i);
        all[i] = names[i];
    }
    component_names_text(all, CADRE_ELEMENT_TENSORS_MAX, text);
    assert_in_range(strlen(text), NAMES_TEXT_BYTES / 2, NAMES_TEXT_BYTES - 1);
}

static cadre_status any_vector(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const int64_t size = *(const int64_t *)cadre_tensor_const_data(in->tensors[0]);
    ret_out->count = 1;
    return cadre_tensor_create(CADRE_I64, 1, &size, &ret_out->tensors[0]);
}

/* Ragged and sparse values are several components, parts of what they were made of. */
static void parts_of_composite_values(void **state)
{
    (void)state;
    const char *const names[] = {"words"};
    const cadre_tensor_spec any = {.rank = 1, .dims = {CADRE_DIMENSION_ANY}};
    cadre_dataset *data = cadre_dataset_map(cadre_dataset_range(0, 4, 1), any_vector, NULL, NULL);
    data = cadre_dataset_named(data, names, 1);
    expect_names(cadre_dataset_sparse_batch(cadre_dataset_retain(data), 2, &any, false),
        "'words/indices', 'words/values', 'words/dense_shape'");
    cadre_dataset *const both[] = {cadre_dataset_range(0, 4, 1), cadre_dataset_retain(data)};
    expect_names(cadre_dataset_ragged_batch(cadre_dataset_zip(both, 2), 2, false),
        "'0', '1/words/values', '1/words/row_splits'");
    data = cadre_dataset_ragged_batch(data, 2, false);
    expect_names(cadre_dataset_retain(data), "'words/values', 'words/row_splits'");
    expect_names(cadre_dataset_unbatch(data), "'words'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_composite_values),
        cmocka_unit_test(names_go_through_what_changes_no_component),
        cmocka_unit_test(tuples_are_named_by_their_numbers),
        cmocka_unit_test(the_last_names_hold),
        cmocka_unit_test(features_are_components_of_their_name),
        cmocka_unit_test(functions_find_components_by_name),
        cmocka_unit_test(what_is_declared_has_names),
        cmocka_unit_test(elements_that_are_read_have_names),
        cmocka_unit_test(a_missing_name_is_an_error_that_lists_the_names),
        cmocka_unit_test(wrong_names_are_refused),
        cmocka_unit_test(many_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
