/* SPDX-License-Identifier: Apache-2.0
 * See examples.h. */
#include "tests/unit/input/examples.h"

#include "cadre/sources.h"
#include "cadre/transformations.h"
#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"

cadre_example_parser *make_parser(const cadre_feature features[], size_t count)
{
    cadre_example_parser *parser = NULL;
    if (cadre_example_parser_create(features, count, &parser) != CADRE_OK) {
        fail_msg("%s", cadre_error_message());
    }
    return parser;
}

cadre_tensor *ints(int64_t count, const int64_t *values)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_I64, 1, &count, values, &tensor), CADRE_OK);
    return tensor;
}

cadre_tensor *strings(int64_t count, const cadre_string *values)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, &count, values, &tensor), CADRE_OK);
    return tensor;
}

cadre_dataset *dataset_of(const cadre_string examples[], int64_t count)
{
    cadre_tensor *tensor = NULL;
    assert_int_equal(cadre_tensor_from_data(CADRE_STRING, 1, &count, examples, &tensor), CADRE_OK);
    cadre_dataset *data = cadre_dataset_tensor_slices(&tensor, 1);
    cadre_tensor_release(tensor);
    return data;
}

void expect_parsed(const cadre_feature features[], size_t feature_count,
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
    cadre_example_parser_release(parser);
}
